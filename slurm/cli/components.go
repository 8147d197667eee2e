package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
)

// spread are the options that a component of sbatch's command line takes from
// any other one that has them, also from a later one: sbatch reads the whole
// line before it looks at components (22.05.8, 24.11.5 and 26.05.5: with
// "-p a : -p b --qos=high" both have the QOS high). #SBATCH lines only hand
// down, see [slurm.Request.HandedDown].
var spread = []string{
	"account", "exclude", "exclusive", "mem", "mem-per-cpu", "mem-per-gpu", "oversubscribe", "prefer", "qos", "time", "time-min",
}

// apart reports whether the components are told apart by the script's own
// #SBATCH lines, so that the command line must not repeat them. An error says
// that no way is left to tell sbatch what the request wants.
func apart(r *slurm.Request, components [][]slurm.Option) (inScript bool, err error) {
	if len(components) == 1 {
		return false, nil
	}
	for i := range components {
		if fields := r.HandedDown(i); len(fields) > 0 {
			return false, fmt.Errorf("component %d leaves %s to Slurm, and sbatch would take it from an earlier component: set it for every role or for none, or use another transport", i, strings.Join(fields, " and "))
		}
	}
	if stated(r.Script, components) {
		return true, nil
	}
	for _, name := range spread {
		has := func(list []slurm.Option) bool {
			return slices.ContainsFunc(list, func(o slurm.Option) bool { return o.Name == name })
		}
		missing := func(list []slurm.Option) bool { return !has(list) }
		if slices.ContainsFunc(components, has) && slices.ContainsFunc(components, missing) {
			return false, fmt.Errorf("sbatch would give --%s of one component to all of them, unless the script has the request's own #SBATCH lines", name)
		}
	}
	return false, nil
}

// stated reports whether the script's #SBATCH lines are the request's, each
// component's in order, as slurm/script writes them.
func stated(script string, components [][]slurm.Option) bool {
	var want, have []string
	for i, list := range components {
		if i > 0 {
			want = append(want, "#SBATCH hetjob")
		}
		for _, o := range list {
			line := "#SBATCH --" + o.Name
			if !o.Bare {
				line += "=" + shell.Directive(o.Value)
			}
			want = append(want, line)
		}
	}
	for _, line := range header(script) {
		if strings.HasPrefix(line, "#SBATCH") && line != "#SBATCH --export=NIL" {
			have = append(have, line)
		}
	}
	return slices.Equal(want, have)
}
