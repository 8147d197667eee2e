package recipes

import (
	"fmt"
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
	Plain:      {"bash"},
	Torchrun:   {"bash", "python3"},
	Accelerate: {"bash", "accelerate"},
	Ray:        {"bash", "python3", "ray", "timeout", "od", "df"},
	MPI:        {"bash"},
}

// startTimeout is how long Ray's nodes and servers may take, in seconds, unless
// the recipe has a parameter start_timeout: a server reads its model first, and
// a model of 700 GB takes 12 minutes at 1 GB/s.
const startTimeout = "900"

// launch writes the shell text of each role: assignments of quoted values,
// then the launcher, which is plain bash and knows them by name.
func (c *composer) launch(params map[string]string, overrides string) error {
	if params["start_timeout"] == "" {
		params["start_timeout"] = startTimeout
	}
	driver, err := c.driver(params, overrides)
	if err != nil {
		return err
	}
	if c.recipe.Launcher == Ray {
		return c.launchRay(driver, params)
	}
	for _, name := range c.roles {
		role := driver
		switch s := c.recipe.Server; {
		case name == c.recipe.Driver:
		case s != nil && s.Role == name:
			role, err = c.server(params)
		default:
			role, err = c.plain(name)
		}
		if err != nil {
			return err
		}
		c.spec.Roles = append(c.spec.Roles, role)
	}
	return nil
}

// driver is the role whose end is the run's. Its body has what the launchers
// need: tp_target are Python's words (a file or -m and a module, with
// arguments), tp_command is the whole command.
func (c *composer) driver(params map[string]string, overrides string) (spec.Role, error) {
	name := c.recipe.Driver
	file, err := c.script(name)
	if err != nil {
		return spec.Role{}, err
	}
	gate, err := c.gate(params)
	if err != nil {
		return spec.Role{}, err
	}
	r := spec.Role{Name: name, Driver: true, Needs: needs[c.recipe.Launcher], Files: []string{c.exp.Rel + "/" + file}}
	if c.recipe.Launcher == Plain {
		body, err := launcherText("plain")
		r.Body = gate + "tp_script=" + shell.Quote(file) + "\n" + body
		return r, err
	}
	target := shell.Quote(file)
	if c.recipe.Config == YAMLFlat {
		target += ` --config config.yaml --output-dir "$TP_OUT_DIR" --overrides-json ` + shell.Quote(overrides)
		r.Files = append(r.Files, c.exp.Rel+"/"+configName)
	}
	interpreter := "python3"
	if strings.HasSuffix(file, ".sh") {
		interpreter = "bash"
	}
	b := gate
	switch c.recipe.Launcher {
	case Torchrun, Accelerate:
		b += "tp_procs=" + shell.Quote(params["procs_per_node"]) + "\n"
		b += fmt.Sprintf("tp_ip=%s tp_port=%s\n", roleVar(name, "IP"), roleVar(name, "PORT"))
		if c.recipe.Launcher == Accelerate {
			b += "tp_config=" + shell.Quote(params["accelerate_config"]) + "\n"
		}
		b += "tp_target=(" + target + ")\n"
	case MPI:
		r.MPI = &spec.MPI{Plugin: "pmix"}
		if params["mpi"] != "" {
			r.MPI.Plugin = params["mpi"]
		}
		if n := params["procs_per_node"]; n != "" {
			fmt.Sscan(n, &r.MPI.Tasks)
		}
		fallthrough
	default:
		b += "tp_command=(" + interpreter + " " + target + ")\n"
		r.Needs = append([]string{interpreter}, r.Needs...)
	}
	if c.recipe.Launcher != Ray {
		body, err := launcherText(string(c.recipe.Launcher))
		if err != nil {
			return r, err
		}
		b += body
	}
	r.Body = b
	return r, nil
}

// launcherText is a file of launch/, shell unless it has another extension.
func launcherText(name string) (string, error) {
	if path.Ext(name) == "" {
		name += ".sh"
	}
	text, err := fs.ReadFile(files, "launch/"+name)
	return string(text), err
}

// plain is a role that runs its own script.
func (c *composer) plain(name string) (spec.Role, error) {
	file, err := c.script(name)
	if err != nil {
		return spec.Role{}, err
	}
	body, err := launcherText("plain")
	return spec.Role{
		Name: name, Needs: needs[Plain], Files: []string{c.exp.Rel + "/" + file},
		Body: "tp_script=" + shell.Quote(file) + "\n" + body,
	}, err
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
