package recipes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/tomlfile"
)

// Launcher is how a recipe's roles are started; launch/<launcher>.sh holds
// the shell text.
type Launcher string

// Launchers.
const (
	Plain      Launcher = "plain"      // the role's own script
	Torchrun   Launcher = "torchrun"   // torch.distributed.run, one task per node
	Accelerate Launcher = "accelerate" // accelerate launch, one task per node
	Ray        Launcher = "ray"        // a Ray cluster of all pools; the driver runs on its head
	MPI        Launcher = "mpi"        // one task per GPU, ranks by PMIx
)

var launchers = []Launcher{Plain, Torchrun, Accelerate, Ray, MPI}

// ConfigKind is what a recipe does with config.yaml.
type ConfigKind string

// Kinds of configuration.
const (
	ConfigNone ConfigKind = "none"      // the experiment's own affair
	YAMLFlat   ConfigKind = "yaml-flat" // every key is a parameter
)

// Manifest is a recipe.toml.
type Manifest struct {
	Name       string           `toml:"name" json:"name"`
	Version    string           `toml:"version" json:"version"`
	Title      string           `toml:"title" json:"title"`
	Summary    string           `toml:"summary" json:"summary"`
	Launcher   Launcher         `toml:"launcher" json:"launcher"`
	Config     ConfigKind       `toml:"config" json:"config"`
	Roles      []string         `toml:"roles" json:"roles"`
	Driver     string           `toml:"driver" json:"driver"`                   // its exit ends the run
	OpenRoles  bool             `toml:"open_roles" json:"open_roles,omitempty"` // job.toml may name further roles
	Serves     []string         `toml:"serves" json:"serves,omitempty"`         // foreign recipes it can launch, as patterns
	Lifecycle  []string         `toml:"lifecycle" json:"lifecycle,omitempty"`   // allowed actions after success: export, eval
	Framework  Versions         `toml:"framework" json:"framework"`
	Entrypoint Entrypoint       `toml:"entrypoint" json:"entrypoint"`
	Metrics    Metrics          `toml:"metrics" json:"metrics"`
	Params     map[string]Param `toml:"params" json:"params,omitempty"`
	Server     *Server          `toml:"server" json:"server,omitempty"`
	Pinning    Pinning          `toml:"pinning" json:"pinning,omitempty"` // of the Ray launcher
	// Pins are beginnings of placement groups' names, and the role whose pool
	// they belong on.
	Pins map[string]string `toml:"pins" json:"pins,omitempty"`
}

// Versions says which releases of a framework a recipe was written for.
type Versions struct {
	Kind     string   `toml:"kind" json:"kind"`
	Versions []string `toml:"versions" json:"versions"`
	Default  string   `toml:"default" json:"default"`
}

// Entrypoint is what the driver runs.
type Entrypoint struct {
	Kind  string `toml:"kind" json:"kind"` // file, module or experiment (a file of the experiment)
	Value string `toml:"value" json:"value"`
}

// Metrics names the curves to show first.
type Metrics struct {
	Primary []string `toml:"primary" json:"primary,omitempty"`
}

var (
	recipeName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*$`)
	roleName   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	paramName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// ParseManifest reads a recipe.toml strictly and checks it against itself.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	f, err := tomlfile.Parse(file, data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := f.Decode(m); err != nil {
		return nil, err
	}
	for name, p := range m.Params {
		p.Default = defaultText(f, name, p.Value)
		p.Value = nil
		m.Params[name] = p
	}
	return m, m.check(f)
}

func defaultText(f *tomlfile.File, name string, value any) *string {
	if value == nil {
		return nil
	}
	text := fmt.Sprint(value)
	if k, ok := f.Find("params", name, "default"); ok && k.Raw != "" {
		text = k.Raw
	}
	return &text
}

func (m *Manifest) check(f *tomlfile.File) error {
	bad := func(key, format string, args ...any) error {
		return f.Errorf(strings.Split(key, "."), format, args...)
	}
	switch {
	case !recipeName.MatchString(m.Name):
		return bad("name", "%q is no <framework>/<method>", m.Name)
	case m.Version == "":
		return bad("version", "is missing")
	case m.Title == "" || m.Summary == "":
		return bad("title", "title and summary are needed")
	case !slices.Contains(launchers, m.Launcher):
		return bad("launcher", "%q is not known; there are %s", m.Launcher, join(launchers))
	case m.Config != ConfigNone && m.Config != YAMLFlat:
		return bad("config", "%q is not known; there are none and yaml-flat", m.Config)
	case len(m.Roles) == 0:
		return bad("roles", "at least one is needed")
	case !slices.Contains(m.Roles, m.Driver):
		return bad("driver", "%q is none of the roles", m.Driver)
	case m.Framework.Kind == "" || len(m.Framework.Versions) == 0:
		return bad("framework", "kind and versions are needed")
	case !slices.Contains(m.Framework.Versions, m.Framework.Default):
		return bad("framework.default", "%q is none of the versions", m.Framework.Default)
	case !slices.Contains([]string{"file", "module", "experiment"}, m.Entrypoint.Kind):
		return bad("entrypoint.kind", "%q is not known; there are file, module and experiment", m.Entrypoint.Kind)
	case m.Entrypoint.Value == "":
		return bad("entrypoint.value", "is missing")
	}
	for i, role := range m.Roles {
		if !roleName.MatchString(role) || slices.Contains(m.Roles[:i], role) {
			return bad("roles", "%q is no role name, or is there twice", role)
		}
	}
	if err := m.checkLaunch(bad); err != nil {
		return err
	}
	for _, action := range m.Lifecycle {
		if action != "export" && action != "eval" {
			return bad("lifecycle", "%q is not known; there are export and eval", action)
		}
	}
	for name, p := range m.Params {
		if !paramName.MatchString(name) {
			return bad("params."+name, "a parameter's name has lower-case letters, digits and _")
		}
		if err := p.check(); err != nil {
			return bad("params."+name, "%w", err)
		}
	}
	return nil
}

// Runtime is the framework at one of its versions.
func (m *Manifest) runtimeID(version string) string { return m.Framework.Kind + "-" + version }
