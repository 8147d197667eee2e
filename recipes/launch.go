package recipes

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// launch writes the shell text of each role: its command as an array of
// quoted words, then the launcher, which is plain bash and knows it by name.
func (c *composer) launch() error {
	params := map[string]string{"start_timeout": startTimeout}
	for _, p := range c.spec.Params {
		if p.Path == "" && p.Value != "" {
			params[p.Name] = p.Value
		}
	}
	driver, err := c.driver(params)
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
func (c *composer) driver(params map[string]string) (spec.Role, error) {
	name := c.recipe.Driver
	r := spec.Role{Name: name, Driver: true, Needs: needs[c.recipe.Launcher]}
	var err error
	if r.Files, err = c.files(); err != nil {
		return r, err
	}
	gate, err := c.gate(params)
	if err != nil {
		return r, err
	}
	command := c.recipe.Command
	if len(command) == 0 {
		command = c.ownCommand()
	}
	words, err := c.words(name, command)
	if err != nil {
		return r, err
	}
	b := gate + c.prelude() + c.pathPrelude()
	if c.recipe.OneNode { // cpu:2 is two nodes, which only the hardware registry knows
		b = fmt.Sprintf("if [ \"$TP_NNODES\" -gt 1 ]; then echo \"tp: %s runs on one node, and its pool has $TP_NNODES\" >&2; exit 64; fi\n", c.recipe.Name) + b
	}
	switch c.recipe.Launcher {
	case Torchrun, Accelerate:
		b += "tp_procs=" + shell.Quote(params["procs_per_node"]) + "\n"
		b += fmt.Sprintf("tp_ip=%s tp_port=%s\n", roleVar(name, "IP"), roleVar(name, "PORT"))
		if c.recipe.Launcher == Accelerate {
			b += "tp_config=" + shell.Quote(params["accelerate_config"]) + "\n"
		}
		b += array("tp_target", words)
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
		b += array("tp_command", words)
		first := command[0]
		if c.recipe.Entrypoint.Kind == "program" {
			first = c.recipe.Entrypoint.Value
		}
		if !strings.Contains(first, "{") && !slices.Contains(r.Needs, first) {
			r.Needs = append([]string{first}, r.Needs...)
		}
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

// ownCommand is that of a recipe which starts a file of the experiment and
// says no more: Python unless it is a shell script, with the arguments that
// docs/recipes.md promises.
func (c *composer) ownCommand() []string {
	var words []string
	if c.recipe.Launcher != Torchrun && c.recipe.Launcher != Accelerate {
		words = []string{"python3"}
		if strings.HasSuffix(c.recipe.Entrypoint.Value, ".sh") {
			words[0] = "bash"
		}
	}
	words = append(words, "{entry}")
	if c.recipe.Config == YAMLFlat {
		words = append(words, "--config", configName, "--output-dir", "{output}", "--overrides-json", "{overrides}")
	}
	return words
}

// array is an assignment of words, few on one line and many on a line each.
func array(name string, words []string) string {
	if text := name + "=(" + strings.Join(words, " ") + ")\n"; len(text) < 120 {
		return text
	}
	return name + "=(\n  " + strings.Join(words, "\n  ") + "\n)\n"
}

// prelude is where Python starts and what it imports from: the experiment and
// the lab, for frameworks that load rewards and data of theirs.
func (c *composer) prelude() string {
	if c.recipe.Dir == "" {
		return ""
	}
	dir := "cd \"$TP_CODE_DIR\" || exit"
	if src := c.recipe.Source; c.recipe.Dir == "source" {
		dir = fmt.Sprintf("cd \"${%s:-%s}\" || { echo \"tp: %s is not there; set %s to its source\" >&2; exit 66; }", src.Env, src.Dir, c.recipe.Framework.Kind, src.Env)
	}
	return dir + "\nexport PYTHONPATH=\"$TP_EXP_DIR:$TP_CODE_DIR${PYTHONPATH:+:$PYTHONPATH}\"\n"
}

// param is the value of a parameter without a path; "" where it has none.
func (c *composer) param(name string) string {
	for _, p := range c.spec.Params {
		if p.Name == name && p.Path == "" && p.Value != "" {
			return p.Value
		}
	}
	return ""
}

// files must be packed: what the driver starts, and the configuration with
// its parents.
func (c *composer) files() ([]string, error) {
	var out []string
	if entry := c.recipe.Entrypoint; entry.Kind == "experiment" {
		script, err := c.script(c.recipe.Driver, entry.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, c.exp.Rel+"/"+script)
	}
	if c.recipe.Config != ConfigNone {
		out = append(append(out, c.exp.Rel+"/"+configName), c.parents...)
	}
	return out, nil
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
	file, err := c.script(name, name+".sh")
	if err != nil {
		return spec.Role{}, err
	}
	body, err := launcherText("plain")
	return spec.Role{
		Name: name, Needs: needs[Plain], Files: []string{c.exp.Rel + "/" + file},
		Body: array("tp_command", []string{"bash", shell.Quote(file)}) + body,
	}, err
}

// script is the role's file in the experiment's directory; it must be there.
func (c *composer) script(role, name string) (string, error) {
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
