package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
)

// owns is the entry of a key that tp sets in this run. A key that a flag could
// set, but does not, is the configuration's.
func (c *composer) owns(path string) (Owned, bool) {
	path, _ = addsKey(path)
	for _, o := range c.recipe.Owned {
		if o.Path == path && c.holds(o) {
			return o, true
		}
	}
	return Owned{}, false
}

func (c *composer) holds(o Owned) bool {
	switch {
	case !at(o.Versions, c.version),
		o.Role != "" && !slices.Contains(c.roles, o.Role),
		o.With != "" && c.inputs[o.With].value == "",
		o.Unless != "" && c.inputs[o.Unless].value != "":
		return false
	case slices.Contains(inputNames, o.From):
		return c.inputs[o.From].value != ""
	}
	return true
}

// ownedBy says where an owned key gets its value from.
func (c *composer) ownedBy(o Owned) string {
	switch {
	case slices.Contains(inputNames, o.From):
		return "from " + c.inputs[o.From].origin
	case o.From == "nodes", o.From == "gpus_per_node", o.From == "all_nodes":
		return "from --profile"
	case o.From == "host", o.From == "port", o.From == "group_port":
		return "from the pool of " + o.Role
	case o.From != "":
		return "within the run's directory"
	case o.With != "":
		return "for " + c.inputs[o.With].origin
	case o.Role != "":
		return "for the pool of " + o.Role
	}
	return fmt.Sprintf("always to %s", o.Value)
}

// own says which values of the configuration are not used, because tp sets
// the key.
func (c *composer) own(wrong *problems) {
	for _, v := range c.targets.config.Values {
		o, ok := c.owns(v.Path)
		if !ok || v.File != "" || o.Value != "" && o.Value == v.Text {
			continue
		}
		c.warn(fmt.Sprintf("%s: %s: %s is not used: tp sets it, %s", c.targets.config.Place(v), v.Path, v.Text, c.ownedBy(o)))
	}
	for _, o := range c.recipe.Owned {
		if c.holds(o) && c.recipe.Keys != nil && c.recipe.Config == Hydra {
			if _, ok := c.recipe.Keys.at(c.version)[o.Path]; !ok && !strings.HasPrefix(o.Path, "hydra.") {
				wrong.add(fault.New(fault.Internal, "%s owns %s, which %s %s does not have", c.recipe.Name, o.Path, c.recipe.Framework.Kind, c.version))
			}
		}
	}
}

// ownedPair is KEY=VALUE of an owned key as a bash word. Text and path write
// texts and the run's directories in the framework's quoting.
func (c *composer) ownedPair(key string, o Owned, path func(variable, rest string) string, text func(string) string) string {
	switch in, given := c.inputs[o.From]; {
	case o.From == "":
		return shell.Quote(key + "=" + o.Value)
	case given:
		return shell.Quote(key + "=" + text(in.value))
	}
	return shell.Quote(key+"=") + c.ownedWord(o, path)
}

// ownedWord is a value that only the job knows, as a bash word.
func (c *composer) ownedWord(o Owned, path func(variable, rest string) string) string {
	role := o.Role
	if role == "" {
		role = c.recipe.Driver
	}
	name := "TP_ROLE_" + envName(role)
	switch o.From {
	case "nodes":
		return `"$` + name + `_NNODES"`
	case "gpus_per_node":
		return `"$` + name + `_GPUS_PER_NODE"`
	case "all_nodes":
		var sum []string
		for _, r := range c.separate() {
			sum = append(sum, "TP_ROLE_"+envName(r)+"_NNODES")
		}
		return `"$((` + strings.Join(sum, " + ") + `))"`
	case "host": // these three come from the launcher, which waits for the server
		return `"$TP_SERVER_HOST"`
	case "port":
		return `"$TP_SERVER_PORT"`
	case "group_port":
		return `"$TP_SERVER_GROUP_PORT"`
	case "output":
		return path("TP_OUT_DIR", "")
	}
	return path("TP_OUT_DIR", "/"+o.From) // checkpoints and logs
}

// separate is one role of each pool, the driver's first.
func (c *composer) separate() []string {
	var roles []string
	seen := map[string]bool{}
	for _, role := range c.roles {
		if pool := c.poolOf[role]; !seen[pool] {
			seen[pool], roles = true, append(roles, role)
		}
	}
	return roles
}
