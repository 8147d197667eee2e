package cli

import (
	"cmp"
	"fmt"

	"github.com/tuneplane/tp/slurm"
)

// since are the options that not every release of sbatch from 22.05 on has.
// slurm/rest has the like of this table for the dialects of slurmrestd.
var since = []struct {
	option, value string // value "" for any
	from          major
	instead       string // what an older sbatch does with it
}{
	{option: "extra", from: major{23, 2}, instead: "takes --extra for --extra-node-info"}, // getopt_long completes names
	{option: "segment", from: major{24, 5}},
	{option: "exclusive", value: "topo", from: major{24, 5}},
}

// supported refuses what sbatch of the release lacks: a field that is left out
// is no answer to who asked for it.
func supported(list []slurm.Option, version string) error {
	have := release(version)
	for _, o := range list {
		for _, s := range since {
			if s.option != o.Name || s.value != "" && s.value != o.Value || !have.before(s.from) {
				continue
			}
			lacks := "has no --" + s.option
			if s.value != "" {
				lacks += "=" + s.value
			}
			return fmt.Errorf("%s: sbatch of Slurm %s %s; Slurm %s is the first that can", o.Field, version, cmp.Or(s.instead, lacks), s.from)
		}
	}
	return nil
}
