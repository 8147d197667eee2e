package rest

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tuneplane/tp/slurm"
)

// environment is the request's environment and the variables that sbatch sets
// on its side and slurmrestd does not (sbatch/opt.c, set_envs). Without the
// _HET_GROUP_n ones, "srun --het-group=n" starts a wrong number of tasks.
func environment(p part) []slurm.EnvVar {
	out := slices.Clone(p.r.Env)
	add := func(name, value string) {
		at := slices.IndexFunc(out, func(v slurm.EnvVar) bool { return v.Name == name })
		if at < 0 {
			out = append(out, slurm.EnvVar{Name: name, Value: value})
		} else {
			out[at].Value = value
		}
	}
	add("SLURM_SUBMIT_DIR", p.r.WorkDir)
	if p.host != "" {
		add("SLURM_SUBMIT_HOST", p.host)
	}
	if p.r.Name != "" {
		// slurmrestd sets it too, but not in 23.02 to 24.05.1.
		add("SLURM_JOB_NAME", p.r.Name)
	}
	if len(p.r.Components) == 1 {
		shape(add, p.Component, "")
		if p.CPUsPerTask > 0 {
			// srun of 22.05 and 23.02 reads only this one.
			add("SRUN_CPUS_PER_TASK", strconv.Itoa(p.CPUsPerTask))
		}
	} else if p.index == 0 {
		for i := range p.r.Components {
			shape(add, &p.r.Components[i], fmt.Sprintf("_HET_GROUP_%d", i))
		}
	}
	return out
}

func shape(add func(name, value string), c *slurm.Component, suffix string) {
	add("SLURM_NTASKS"+suffix, strconv.Itoa(c.Tasks()))
	add("SLURM_NPROCS"+suffix, strconv.Itoa(c.Tasks()))
	add("SLURM_NTASKS_PER_NODE"+suffix, strconv.Itoa(max(1, c.TasksPerNode)))
	if c.CPUsPerTask > 0 {
		add("SLURM_CPUS_PER_TASK"+suffix, strconv.Itoa(c.CPUsPerTask))
	}
}
