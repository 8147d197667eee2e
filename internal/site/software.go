package site

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Software is where jobs get theirs from, as far as the site file says.
type Software struct {
	Runtimes  []Runtime // in the order of the file
	Container spec.Containers
	Mounts    []spec.Mount // of every container
	Allow     []string     // patterns of images that jobs may name
	AllowSet  bool         // an empty list that is set allows none
	Origin    string       // file
}

// Runtime is an entry of the registry: a framework at some versions, and the
// image, modules or environment that have it.
type Runtime struct {
	spec.Runtime
	Framework string
	Versions  []string // none: every version
	Default   bool     // goes before the one that a recipe names
}

// runtimeName is "verl-0.9.0": framework and version.
var runtimeName = regexp.MustCompile(`^([a-z][a-z0-9.-]*?)-([0-9][A-Za-z0-9.+_-]*)$`)

// serves reports whether the runtime has the framework.
func (r Runtime) serves(f spec.Framework) bool {
	return r.Framework == f.Kind && (len(r.Versions) == 0 || slices.Contains(r.Versions, f.Version))
}

// Names are those of the registry, in the order of the file.
func (s Software) Names() []string {
	var names []string
	for _, r := range s.Runtimes {
		names = append(names, r.Name)
	}
	return names
}

// Find is the runtime of a framework: the site's default for it, else the one
// that the recipe names, else the one with the catalogue's name, else any.
func (s Software) Find(f spec.Framework) (Runtime, bool) {
	for _, fits := range []func(Runtime) bool{
		func(r Runtime) bool { return r.Default && r.serves(f) },
		func(r Runtime) bool { return r.Name == f.RuntimeID && r.Framework == f.Kind },
		func(r Runtime) bool { return r.Name == f.Kind+"-"+f.Version },
		func(r Runtime) bool { return r.serves(f) },
	} {
		if i := slices.IndexFunc(s.Runtimes, fits); i >= 0 {
			return s.Runtimes[i], true
		}
	}
	return Runtime{}, false
}

// Choose says what a job runs in: the image that was asked for, else the
// framework's runtime, else the node itself. Found is false where the registry
// has runtimes and none for a framework that needs one: all but custom, whose
// software is what its script makes of the node.
func (s Software) Choose(f spec.Framework, image, origin string) (r spec.Runtime, found bool, err error) {
	own, registered := s.Find(f)
	if image == "" {
		return own.Runtime, registered || len(s.Runtimes) == 0 || f.Kind == "custom", nil
	}
	i, err := spec.ParseImage(image)
	if err != nil {
		return r, false, fault.New(fault.Usage, "%s: %w", origin, err)
	}
	r = spec.Runtime{Origin: origin, Image: i, Home: own.Home, GPU: own.GPU, Mounts: own.Mounts}
	r.Container, err = s.starter(i, own)
	if r.Container == own.Container { // another's have another form
		r.Credentials = own.Credentials
	}
	return r, true, err
}

// starter is what starts an image that was asked for by name: what the site
// says, else what the framework's own runtime uses, else what any does, and
// always something that can.
func (s Software) starter(i spec.Image, own Runtime) (spec.Containers, error) {
	said := []spec.Containers{s.Container, own.Container}
	for _, r := range s.Runtimes {
		said = append(said, r.Container)
	}
	if i.File() { // there is one only
		said = []spec.Containers{spec.Pyxis, spec.Apptainer, spec.OCI}
	} else if i.Kind == spec.OrasImage {
		said = append(said, spec.Apptainer)
	}
	for _, how := range said {
		if slices.Contains(how.Starts(), i.Kind) {
			return how, nil
		}
	}
	return "", fault.Gate("admission.container", "image %s: this site does not say what starts containers from a registry", i).
		WithHint(`container = "pyxis" or "apptainer" under [images] in the site file, or --image /PATH/TO/IMAGE.sqsh or .sif`)
}

// software reads [images] and [runtimes].
func (c *Config) software(o Options, f *tomlfile.File, k siteKeys) error {
	s := &c.Software
	s.Origin, s.Allow = f.Name, k.Images.Allow
	_, s.AllowSet = f.Find("images", "allow")
	var err error
	if s.Container, err = containers(f, []string{"images", "container"}, k.Images.Container); err != nil {
		return err
	}
	if s.Mounts, err = mounts(o, f, []string{"images", "mounts"}, k.Images.Mounts); err != nil {
		return err
	}
	for _, key := range f.Keys() {
		if len(key.Path) != 2 || key.Path[0] != "runtimes" {
			continue
		}
		r, err := newRuntime(o, f, key.Path[1], k.Runtimes[key.Path[1]], s.Container)
		if err != nil {
			return err
		}
		for _, other := range s.Runtimes {
			if r.Default && other.Default && other.Framework == r.Framework && overlap(other.Versions, r.Versions) {
				return f.Errorf([]string{"runtimes", r.Name, "default"}, "runtime %s is the default of %s already", other.Name, r.Framework)
			}
		}
		s.Runtimes = append(s.Runtimes, r)
	}
	return nil
}

func overlap(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(v string) bool { return slices.Contains(b, v) })
}

// newRuntime checks one [runtimes."<name>"] table.
func newRuntime(o Options, f *tomlfile.File, name string, k runtimeKeys, common spec.Containers) (Runtime, error) {
	at := func(key string) []string { return []string{"runtimes", name, key} }
	r := Runtime{Framework: k.Framework, Versions: k.Versions, Default: k.Default}
	r.Name, r.Origin, r.Home, r.GPU = name, f.Origin("runtimes", name), k.Home, k.GPU
	if err := shell.Check("", name); err != nil || name == "" || strings.ContainsAny(name, " \t") {
		return r, f.Errorf(at("")[:2], "a runtime has a name without blanks, such as verl-0.9.0")
	}
	if m := runtimeName.FindStringSubmatch(name); m != nil && k.Framework == "" {
		r.Framework = m[1]
		if len(r.Versions) == 0 {
			r.Versions = m[2:]
		}
	}
	if r.Framework == "" {
		return r, f.Errorf(at("")[:2], "framework is missing: the name is not FRAMEWORK-VERSION, such as verl-0.9.0")
	}
	var err error
	if r.Container, err = containers(f, at("container"), k.Container); err != nil {
		return r, err
	}
	if r.Image, err = spec.ParseImage(k.Image); err != nil {
		return r, f.Errorf(at("image"), "%w", err)
	}
	if r.Image.Kind != spec.NoImage && r.Container == "" {
		if r.Container, err = (Software{Container: common}).starter(r.Image, Runtime{}); err != nil {
			return r, f.Errorf(at("image"), "container is missing: pyxis, apptainer or oci?")
		}
	}
	switch {
	case r.Contained() && r.Image.Kind == spec.NoImage:
		return r, f.Errorf(at("container"), "image is missing: which one does %s start?", r.Container)
	case r.Image.Kind != spec.NoImage && !slices.Contains(r.Container.Starts(), r.Image.Kind):
		return r, f.Errorf(at("image"), "%s cannot start %s", r.Container, r.Image)
	case !r.Contained() && (len(k.Mounts) > 0 || k.Home || k.Credentials != ""):
		return r, f.Errorf(at("")[:2], "mounts, home and credentials belong to a container, and %s has none", name)
	}
	if r.Mounts, err = mounts(o, f, at("mounts"), k.Mounts); err != nil {
		return r, err
	}
	if err := oneOf(f, at("gpu"), k.GPU, "nvidia", "amd", "none"); err != nil {
		return r, err
	}
	if k.Credentials != "" {
		path, ok := expand(o, k.Credentials)
		if !ok || shell.Check("", path) != nil {
			return r, f.Errorf(at("credentials"), "%q is no absolute path; the file it names holds them", k.Credentials)
		}
		r.Credentials = path
	}
	return r, r.lines(o, f, at, k)
}

// lines are the prolog of modules and environment, then the runtime's own. They
// run outside strict mode, so that what is missing has to end the job here.
func (r *Runtime) lines(o Options, f *tomlfile.File, at func(string) []string, k runtimeKeys) error {
	// What shellcheck would say of a file that is not on this machine.
	const quiet = "# shellcheck disable=SC1091"
	for _, m := range k.Modules {
		if m == "" || strings.HasPrefix(m, "-") || shell.Check("", m) != nil || strings.ContainsAny(m, " \t") {
			return f.Errorf(at("modules"), "%q is no name of a module", m)
		}
		r.Prolog = append(r.Prolog, fmt.Sprintf("module load %s || { echo \"tp: the module %s cannot be loaded on ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 69; }", shell.Quote(m), plainName.ReplaceAllString(m, "?")))
	}
	if k.Venv != "" {
		path, ok := expand(o, k.Venv)
		if !ok || shell.Check("", path) != nil {
			return f.Errorf(at("venv"), "%q is no absolute path", k.Venv)
		}
		r.Prolog = append(r.Prolog, quiet, fmt.Sprintf("source %s || { echo \"tp: the environment of runtime %s is not on ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 69; }", shell.Quote(path+"/bin/activate"), plainName.ReplaceAllString(r.Name, "?")))
	}
	for _, line := range k.Prolog {
		if strings.ContainsRune(line, 0) {
			return f.Errorf(at("prolog"), "a line has a NUL character")
		}
	}
	r.Prolog = append(r.Prolog, k.Prolog...)
	return nil
}

// plainName keeps what may stand between a script's double quotes.
var plainName = regexp.MustCompile(`[^A-Za-z0-9._/+:@-]`)

func containers(f *tomlfile.File, key []string, text string) (spec.Containers, error) {
	var known []string
	for _, k := range spec.ContainerKinds {
		known = append(known, string(k))
	}
	return spec.Containers(text), oneOf(f, key, text, known...)
}

func mounts(o Options, f *tomlfile.File, key []string, list []string) ([]spec.Mount, error) {
	var out []spec.Mount
	for _, text := range list {
		if strings.HasPrefix(text, "~/") || strings.Contains(text, "{user}") {
			text = strings.ReplaceAll(text, "{user}", o.User)
			text = strings.Replace(text, "~/", o.Home+"/", 1)
		}
		m, err := spec.ParseMount(text)
		if err != nil {
			return nil, f.Errorf(key, "%w", err)
		}
		m.Origin = f.Origin(key...)
		out = append(out, m)
	}
	return out, nil
}
