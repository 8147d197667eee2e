package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
)

// Software is what a job's roles run in, and what the site says about it. The
// zero value is the node itself where nothing is said.
type Software struct {
	Framework  spec.Framework
	Runtime    spec.Runtime
	Missing    bool     // the registry has none for the framework
	Registered []string // names of the registry
	Allow      []string // patterns of images that jobs may name
	AllowSet   bool
	Place      string // of registry and list: the site file
	Absent     error  // why the image's file is not seen here; nil when it is, or was not looked for
}

// Offline are the verdicts that need no cluster.
func (Admission) Offline(s Subject) []Verdict { return s.Software.verdicts() }

func (w Software) verdicts() []Verdict {
	var out []Verdict
	add := func(level Level, code, asked, found, remedy string) {
		out = append(out, Verdict{Gate: "admission", Code: "admission." + code, Level: level, Asked: asked, Found: found, Remedy: remedy})
	}
	framework := w.Framework.Kind + " " + w.Framework.Version
	if w.Missing {
		add(Block, "runtime", framework, fmt.Sprintf("%s has no runtime for it; registered: %s", w.Place, strings.Join(w.Registered, ", ")), w.instead())
	}
	r := w.Runtime
	if r.Image.Kind == spec.NoImage {
		return out
	}
	if r.Name == "" && w.AllowSet && !slices.ContainsFunc(w.Allow, r.Image.Matches) {
		add(Block, "image", "image "+r.Image.String(), fmt.Sprintf("it is not on the list of %s: %s", w.Place, listed(w.Allow)), "--image with one of them; or leave it out for the runtime of "+framework)
	}
	if w.Absent != nil {
		level := Block
		if r.Name != "" { // the site may keep it on the nodes' own disks
			level = Warn
		}
		add(level, "imageMissing", "image "+r.Image.String(), fmt.Sprintf("it cannot be seen from here: %v", w.Absent), "a path that login and compute nodes share")
	}
	return out
}

// instead is what to type where the framework has a runtime of another version.
func (w Software) instead() string {
	var near []string
	for _, name := range w.Registered {
		if strings.HasPrefix(name, w.Framework.Kind+"-") {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return fmt.Sprintf("a recipe of %s, or --image REFERENCE", strings.Join(near, ", "))
	}
	return "--image REFERENCE, or ask whoever keeps " + w.Place
}

func listed(list []string) string {
	if len(list) == 0 {
		return "it allows none"
	}
	return strings.Join(list, ", ")
}

// onMachine refuses what Slurm's own parts start, where there is no Slurm.
func (w Software) onMachine() []Verdict {
	switch c := w.Runtime.Container; c {
	case spec.Pyxis, spec.OCI:
		return []Verdict{{Gate: "admission", Code: "admission.container", Level: Block, Asked: fmt.Sprintf("image %s by %s", w.Runtime.Image, c),
			Found: "this machine has no Slurm, which starts it", Remedy: "an image that Apptainer starts, or a Slurm fleet with --fleet NAME (tp fleet ls)"}}
	}
	return nil
}
