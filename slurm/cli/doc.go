// Package cli reaches a cluster through Slurm's own commands, where there is
// no slurmrestd: sbatch, squeue, scontrol, sacct and scancel of Slurm 22.05 to
// 26.05. [Client] is a whole slurm.Client; [Tools] alone finds a token or the
// caller's own jobs for slurm/rest.
//
//	client := cli.New(cli.Options{Tools: cli.Tools{Dir: "/opt/slurm/bin"}})
//	sub, err := client.Submit(ctx, request)
//
// A command gets an environment of its own: no SLURM_, SBATCH_ or SQUEUE_
// variable of the caller acts as an option, and the job gets the environment of
// the request and none of the command's. Options travel as --name=value, one
// element of argv each, so that no value can be taken for another option.
package cli
