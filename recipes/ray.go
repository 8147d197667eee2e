package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
)

// rayRole is the name of the step that runs Ray on a pool's nodes.
func rayRole(pool string) string { return "ray-" + pool }

// rayTexts are what every node runs first, then what those that join run and
// what the head runs.
var rayTexts = [3]string{"ray", "ray-node", "ray-head"}

// launchRay makes one Ray cluster of all pools. The driver's role is the head
// and runs on the first node of its pool; a role per pool runs Ray on its
// nodes. The recipe's other roles are processes that Ray starts.
func (c *composer) launchRay(driver spec.Role, params map[string]string) error {
	var text [3]string
	for i, name := range rayTexts {
		var err error
		if text[i], err = launcherText(name); err != nil {
			return err
		}
	}
	pools := c.pools()
	pins, shim, err := c.pins(pools)
	if err != nil {
		return err
	}
	node := func(pool, isDriver, role string) string {
		return pins + fmt.Sprintf("tp_driver=%s tp_timeout=%s tp_addresses=%s tp_port=%s tp_resources=%s\ntp_head=%s tp_head_ip=%s tp_head_port=%s\n",
			shell.Quote(isDriver), shell.Quote(params["start_timeout"]), roleVar(role, "ADDRS"), roleVar(role, "PORT"), shell.Quote(c.resources(pool, pools)),
			roleVar(driver.Name, "HEAD"), roleVar(driver.Name, "IP"), roleVar(driver.Name, "PORT"))
	}
	driver.Nodes = spec.FirstNode
	driver.Body = "tp_pools=(" + strings.Join(pools, " ") + ")\n" + driver.Body + node(pools[0], "1", driver.Name) + text[0] + shim + text[2]
	c.spec.Roles = append(c.spec.Roles, driver)
	for _, name := range c.roles {
		if name != driver.Name {
			c.spec.Roles = append(c.spec.Roles, spec.Role{Name: name})
		}
	}
	for i, pool := range pools {
		r := spec.Role{Name: rayRole(pool), Beside: pool, Needs: needs[Ray]}
		if i == 0 {
			r.Nodes = spec.LaterNodes
		}
		r.Body = c.prelude() + node(pool, "", r.Name) + text[0] + text[1]
		c.spec.Roles = append(c.spec.Roles, r)
	}
	c.warnOfPinning(pools)
	return nil
}

// pools are the names that the plan will give to the pools, the driver's first.
func (c *composer) pools() []string {
	var names []string
	for _, p := range c.spec.Profiles {
		roles := p.Roles
		if len(roles) == 0 {
			roles = c.roles
		}
		if slices.Contains(roles, c.recipe.Driver) {
			names = append([]string{roles[0]}, names...)
		} else {
			names = append(names, roles[0])
		}
	}
	return names
}

// resources are those of a node beside tp_pool_<pool>, as the rest of a JSON
// object. NeMo-RL fills the domain with the lowest topo_rank first.
func (c *composer) resources(pool string, pools []string) string {
	if c.recipe.Pinning != PinDomains || len(pools) < 2 {
		return ""
	}
	return fmt.Sprintf(`, "nvlink_domain_%s": 1, "topo_rank": %d`, pool, slices.Index(pools, pool)+1)
}

// pins are what every node needs for [PinGroups], and what the head does.
func (c *composer) pins(pools []string) (all, head string, err error) {
	if c.recipe.Pinning != PinGroups || len(pools) < 2 {
		return "", "", nil
	}
	var list []string
	for _, prefix := range slices.Sorted(maps.Keys(c.recipe.Pins)) {
		if pool := c.poolName(c.recipe.Pins[prefix]); pool != "" {
			list = append(list, prefix+"="+pool)
		}
	}
	text, err := launcherText("pins.py")
	all = "export TP_RAY_PINS=" + shell.Quote(strings.Join(list, " ")) + "\n" +
		"export PYTHONPATH=\"$TP_RUN_DIR/pins${PYTHONPATH:+:$PYTHONPATH}\"\n"
	head = "mkdir -p \"$TP_RUN_DIR/pins\"\ncat >\"$TP_RUN_DIR/pins/sitecustomize.py\" <<'PY'\n" + text + "PY\n"
	return all, head, err
}

// poolName is the pool that a role runs on; "" where it has none.
func (c *composer) poolName(role string) string {
	for _, p := range c.spec.Profiles {
		roles := p.Roles
		if len(roles) == 0 {
			roles = c.roles
		}
		if slices.Contains(roles, role) {
			return roles[0]
		}
	}
	return ""
}

// warnOfPinning says what keeps roles on their pools, where there are several.
func (c *composer) warnOfPinning(pools []string) {
	if len(pools) < 2 {
		return
	}
	all := strings.Join(pools, ", ")
	switch c.recipe.Pinning {
	case PinDomains:
		c.warn(fmt.Sprintf("pools %s are shown to %s as NVLink domains, which it fills in this order; they must have equally many GPUs per node", all, c.recipe.Framework.Kind))
	case PinGroups:
		c.warn(fmt.Sprintf("%s knows no pools: a shim in Python keeps its placement groups %s on theirs (TP_RAY_PINS)", c.recipe.Framework.Kind, strings.Join(slices.Sorted(maps.Keys(c.recipe.Pins)), ", ")))
	case PinResources:
	default:
		c.warn(fmt.Sprintf("%s places its workers by free GPUs and knows no pools: with %s nothing keeps a role on its pool but different numbers of GPUs per node, where they let it fit on one pool only", c.recipe.Framework.Kind, all))
	}
}
