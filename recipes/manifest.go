package recipes

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tuneplane/tp/internal/tomlfile"
)

// Launcher is how a recipe's roles are started; launch/<launcher>.sh holds
// the shell text.
type Launcher string

// Launchers.
const (
	Plain      Launcher = "plain"      // the command itself
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
	YAMLFlat   ConfigKind = "yaml-flat" // every key is a parameter; what is set travels as JSON
	Hydra      ConfigKind = "hydra"     // every key becomes a word KEY=VALUE of Hydra's grammar
	NeMoYAML   ConfigKind = "nemo-yaml" // a chain of defaults; what is set is added as ++KEY=VALUE
	TRLYAML    ConfigKind = "trl-yaml"  // flat, the fields of a dataclass; what is set travels as JSON
	YAMLArgs   ConfigKind = "yaml-args" // flat; what is set is added as KEY=VALUE
	Flags      ConfigKind = "flags"     // every key becomes --KEY VALUE
)

var configKinds = []ConfigKind{ConfigNone, YAMLFlat, Hydra, NeMoYAML, TRLYAML, YAMLArgs, Flags}

// Manifest is a recipe.toml. docs/recipes.md explains every key.
type Manifest struct {
	Name          string            `toml:"name" json:"name"`
	Version       string            `toml:"version" json:"version"`
	Title         string            `toml:"title" json:"title"`
	Summary       string            `toml:"summary" json:"summary"`
	Checked       string            `toml:"checked" json:"checked,omitempty"` // what the command was checked against, where no schema says so
	Launcher      Launcher          `toml:"launcher" json:"launcher"`
	Config        ConfigKind        `toml:"config" json:"config"`
	Schema        string            `toml:"schema" json:"schema,omitempty"` // ../schema/<schema>.tsv: the keys that the framework knows
	Base          string            `toml:"base" json:"base,omitempty"`     // the framework's own file whose values the schema holds
	Roles         []string          `toml:"roles" json:"roles"`
	OptionalRoles []string          `toml:"optional_roles" json:"optional_roles,omitempty"` // there when a profile names them
	Driver        string            `toml:"driver" json:"driver"`                           // its exit ends the run
	OneNode       bool              `toml:"one_node" json:"one_node,omitempty"`             // the driver knows nothing of other nodes
	OpenRoles     bool              `toml:"open_roles" json:"open_roles,omitempty"`         // job.toml may name further roles
	Serves        []string          `toml:"serves" json:"serves,omitempty"`                 // foreign recipes it can launch, as patterns
	Lifecycle     []string          `toml:"lifecycle" json:"lifecycle,omitempty"`           // allowed actions after success: export, eval
	Dir           string            `toml:"dir" json:"dir,omitempty"`                       // where the command starts: "" (the experiment), lab, source
	Command       []string          `toml:"command" json:"command,omitempty"`               // words, with {entry}, {overrides}, {model} …; none: see words
	Framework     Versions          `toml:"framework" json:"framework"`
	Entrypoint    Entrypoint        `toml:"entrypoint" json:"entrypoint"`
	Source        *Source           `toml:"source" json:"source,omitempty"`
	Inputs        map[string]string `toml:"inputs" json:"inputs,omitempty"` // model, train_data, …: required or optional
	Role          map[string]RoleOf `toml:"role" json:"role,omitempty"`
	Owned         []Owned           `toml:"owned" json:"owned,omitempty"`
	Env           map[string]string `toml:"env" json:"env,omitempty"`
	Metrics       Metrics           `toml:"metrics" json:"metrics"`
	Params        map[string]Param  `toml:"params" json:"params,omitempty"`
	Server        *Server           `toml:"server" json:"server,omitempty"`
	Pinning       Pinning           `toml:"pinning" json:"pinning,omitempty"` // of the Ray launcher
	// Pins are beginnings of placement groups' names, and the role whose pool
	// they belong on.
	Pins map[string]string `toml:"pins" json:"pins,omitempty"`
}

// Versions says which releases of a framework a recipe was checked against.
type Versions struct {
	Kind     string   `toml:"kind" json:"kind"`
	Versions []string `toml:"versions" json:"versions"`
	Default  string   `toml:"default" json:"default"`
}

// Entrypoint is what the driver runs.
type Entrypoint struct {
	Kind  string `toml:"kind" json:"kind"` // file (of the framework's source), module, program or experiment (a file of the experiment)
	Value string `toml:"value" json:"value"`
}

// Source is where the framework's source tree lies on the nodes.
type Source struct {
	Dir string `toml:"dir" json:"dir"` // in the framework's own image
	Env string `toml:"env" json:"env"` // a variable that says otherwise
}

// RoleOf is what a manifest says about one role.
type RoleOf struct {
	Versions []string `toml:"versions" json:"versions,omitempty"` // of the framework that can have the role; none: all
	Doc      string   `toml:"doc" json:"doc,omitempty"`
}

// Owned is a key of the configuration that tp sets, whatever the file says.
type Owned struct {
	Path     string   `toml:"path" json:"path"`
	From     string   `toml:"from" json:"from,omitempty"`     // what it is set to: one of ownedFrom
	Value    string   `toml:"value" json:"value,omitempty"`   // or this text
	Role     string   `toml:"role" json:"role,omitempty"`     // only where that role has a pool of its own, whose shape it is
	Unless   string   `toml:"unless" json:"unless,omitempty"` // only when that input is not given
	With     string   `toml:"with" json:"with,omitempty"`     // only when that input is given
	Flag     string   `toml:"flag" json:"flag,omitempty"`     // an argument of the command sets it, no override
	Versions []string `toml:"versions" json:"versions,omitempty"`
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

// runtimeID names the framework at one of its versions.
func (m *Manifest) runtimeID(version string) string { return m.Framework.Kind + "-" + version }

// at says whether something that names versions is there in one of them.
func at(versions []string, version string) bool {
	return len(versions) == 0 || slices.Contains(versions, version)
}
