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
// TestParity of contrib/e2e compares the jobs of both; what it found on 22.05.8,
// 24.11.5 and 26.05.5, and what became of it:
//
//	SLURM_SUBMIT_DIR, _HOST, SLURM_JOB_NAME   set
//	SLURM_NTASKS, _NPROCS, _NTASKS_PER_NODE,
//	_CPUS_PER_TASK                            set; by _HET_GROUP_n for a het job, and
//	                                          by _PACK_GROUP_n, its name until 20.02
//	SRUN_CPUS_PER_TASK                        set, which sbatch does not: srun of 22.05
//	                                          and 23.02 ignores the one above
//	SLURM_UMASK                               set to 0077, where sbatch has its caller's:
//	                                          else slurmd's makes a log that all can read
//	SLURM_RLIMIT_*                            not set: those of a login node (locked
//	                                          memory, open files) are too small for a job
//	SLURM_PRIO_PROCESS                        not set: the submitting shell's nice value
//	SLURM_TRES_PER_TASK (24.11)               not set: says CPUS_PER_TASK again, which is
//	                                          what srun of every release understands
//	HYDRA_*, I_MPI_HYDRA_*, *_plm_slurm_args  not set: for an mpirun in the batch script;
//	                                          steps do not get them from sbatch either
//	SLURM_DISTRIBUTION, _MEM_BIND, …          not set by sbatch either, unless asked for
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
	if !slices.ContainsFunc(out, func(v slurm.EnvVar) bool { return v.Name == "SLURM_UMASK" }) {
		add("SLURM_UMASK", "0077")
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
			shape(add, &p.r.Components[i], fmt.Sprintf("_PACK_GROUP_%d", i))
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
