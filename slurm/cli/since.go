package cli

import (
	"fmt"

	"github.com/tuneplane/tp/slurm"
)

// since are the options that not every release of sbatch from 22.05 on has.
// slurm/rest has the like of this table for the dialects of slurmrestd.
var since = []struct {
	option, value string // value "" for any
	from          major
	harmless      bool // the job is the same without it: dropped with a warning
}{
	{option: "extra", from: major{23, 2}, harmless: true},
	{option: "segment", from: major{24, 5}},
	{option: "exclusive", value: "topo", from: major{24, 5}},
}

// supported drops what sbatch of the release lacks and the job can do without,
// each with a warning, and refuses the rest. It changes list.
func supported(list []slurm.Option, version string) (kept []slurm.Option, warnings []string, err error) {
	have := release(version)
	for _, o := range list {
		lost := false
		for _, s := range since {
			if s.option != o.Name || s.value != "" && s.value != o.Value || !have.before(s.from) {
				continue
			}
			what := fmt.Sprintf("%s: sbatch of Slurm %s has no --%s; Slurm %s is the first", o.Field, version, s.option, s.from)
			if s.value != "" {
				what = fmt.Sprintf("%s: sbatch of Slurm %s has no --%s=%s; Slurm %s is the first", o.Field, version, s.option, s.value, s.from)
			}
			if !s.harmless {
				return nil, nil, fmt.Errorf("%s", what)
			}
			warnings = append(warnings, what+": it is left out")
			lost = true
		}
		if !lost {
			kept = append(kept, o)
		}
	}
	return kept, warnings, nil
}
