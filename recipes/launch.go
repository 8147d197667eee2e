package recipes

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
)

// needs are the programs a launcher calls on the node.
var needs = map[Launcher][]string{
	Plain:    {"bash"},
	Torchrun: {"bash", "python3"},
}

// launch writes the shell text of each role: assignments of quoted values,
// then the launcher, which is plain bash and knows them by name.
func (c *composer) launch(params map[string]string, overrides string) error {
	text, err := fs.ReadFile(files, "launch/"+string(c.recipe.Launcher)+".sh")
	if err != nil {
		return err
	}
	for _, role := range c.roles {
		script, err := c.script(role)
		if err != nil {
			return err
		}
		r := spec.Role{Name: role, Driver: role == c.recipe.Driver, Needs: needs[c.recipe.Launcher], Files: []string{c.exp.Rel + "/" + script}}
		body := "tp_script=" + shell.Quote(script) + "\n"
		if c.recipe.Launcher == Torchrun {
			body += "tp_procs=" + shell.Quote(params["procs_per_node"]) + "\n"
			body += "tp_overrides=" + shell.Quote(overrides) + "\n"
			r.Files = append(r.Files, c.exp.Rel+"/"+configName)
		}
		r.Body = body + string(text)
		c.spec.Roles = append(c.spec.Roles, r)
	}
	return nil
}

// script is the role's file in the experiment's directory; it must be there.
func (c *composer) script(role string) (string, error) {
	name := role + ".sh"
	if role == c.recipe.Driver {
		entry := c.recipe.Entrypoint
		if entry.Kind != "experiment" {
			return "", fault.New(fault.Usage, "the entry point %s %q cannot be started by %s, which starts files of the experiment", entry.Kind, entry.Value, c.recipe.Name)
		}
		name = entry.Value
	}
	if !filepath.IsLocal(name) || path.Clean(name) != name || strings.HasPrefix(name, "-") || shell.Check("", name) != nil {
		return "", fault.New(fault.Usage, "the entry point %q is no path within the experiment", name)
	}
	info, err := os.Stat(c.exp.Path(name))
	if err != nil || !info.Mode().IsRegular() {
		return "", fault.New(fault.Usage, "%s/%s is missing: it is what %s runs for the role %q", c.exp.Rel, name, c.recipe.Name, role).
			WithHint("write it; tp new shows one that works")
	}
	for _, pattern := range c.spec.Exclude {
		if ok, _ := path.Match(pattern, name); ok {
			return "", fault.New(fault.Usage, "exclude %q leaves out %s/%s, which the role %q runs", pattern, c.exp.Rel, name, role)
		}
	}
	return name, nil
}
