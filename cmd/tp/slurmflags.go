package main

import (
	"github.com/alecthomas/kong"

	"github.com/tuneplane/tp/recipes"
)

// slurmFlags are the rest of what sbatch can be asked for, under its names.
type slurmFlags struct {
	Begin        string   `placeholder:"TIME" help:"Not before: now+2h, 20:00, 2026-12-01T20:00."`
	Deadline     string   `placeholder:"TIME" help:"Remove the job when it cannot end by then."`
	After        []string `sep:"none" placeholder:"ID" help:"Only once this job or run has ended well (repeat)."`
	Dependency   []string `sep:"none" placeholder:"TYPE:ID" help:"As in sbatch, a run's id for a job's: afterany:run-4f2a91 (repeat)."`
	Hold         bool     `help:"Queue it held."`
	Nice         *int     `placeholder:"N" help:"Lower the priority by N."`
	Priority     *int     `placeholder:"N" help:"The priority itself; Slurm takes it from operators."`
	Nodelist     []string `sep:"none" placeholder:"[ROLE=]NODES" help:"These nodes among others: h200-[1-2]."`
	ExcludeNodes []string `sep:"none" placeholder:"[ROLE=]NODES" help:"Not these nodes; sbatch --exclude."`
	Prefer       []string `sep:"none" placeholder:"[ROLE=]FEATURES" help:"Node features that are better to have."`
	Exclusive    optional `placeholder:"[ROLE=]WHO" help:"Nodes alone. --exclusive=user, mcs or topo: with one's like; =oversubscribe: with anybody; =ROLE=WHO."`
	TimeMin      []string `sep:"none" placeholder:"[ROLE=]TIME" help:"The least that Slurm may cut --time to, to start sooner."`
	MemPerCPU    []string `name:"mem-per-cpu" sep:"none" placeholder:"[ROLE=]SIZE" help:"Memory for each CPU instead of --mem."`
	MemPerGPU    []string `name:"mem-per-gpu" sep:"none" placeholder:"[ROLE=]SIZE" help:"Memory for each GPU instead of --mem."`
	Licenses     string   `placeholder:"NAME[:N],.." help:"Licences, for the driver's pool."`
	Switches     []string `sep:"none" placeholder:"[ROLE=]N[@TIME]" help:"Span at most N leaf switches; wait so long for them."`
	Segment      []string `sep:"none" placeholder:"[ROLE=]N" help:"Nodes of a block that belong together (topology/block)."`
	Network      []string `sep:"none" placeholder:"[ROLE=]TEXT" help:"Interconnect options."`
	Signal       string   `placeholder:"SIGNAL@SECONDS" help:"Send USR1 or USR2 to the roles so long before the time limit."`
	MailType     []string `sep:"none" placeholder:"TYPE,.." help:"Mail from Slurm: BEGIN, END, FAIL, REQUEUE, TIME_LIMIT_80, ALL."`
	MailUser     string   `placeholder:"ADDRESS" help:"Who gets it."`
	WCKey        string   `name:"wckey" placeholder:"KEY" help:"Workload key of accounting."`
	Comment      string   `placeholder:"TEXT" help:"Text behind tp's own in the job's comment."`
	Extra        string   `placeholder:"TEXT" help:"Free text that a site's plugins read."`
}

func (f *slurmFlags) options() recipes.Slurm {
	o := recipes.Slurm{
		MemPerCPU: f.MemPerCPU, MemPerGPU: f.MemPerGPU, TimeMin: f.TimeMin, Prefer: f.Prefer, NodeList: f.Nodelist, ExcludeNodes: f.ExcludeNodes,
		Exclusive: f.Exclusive, Switches: f.Switches, Segment: f.Segment, Network: f.Network,
		Begin: f.Begin, Deadline: f.Deadline, Licenses: f.Licenses, Signal: f.Signal, MailUser: f.MailUser, WCKey: f.WCKey, Extra: f.Extra,
		Comment: f.Comment, Dependency: f.Dependency, After: f.After, MailType: f.MailType, Nice: f.Nice, Priority: f.Priority,
	}
	if f.Hold {
		o.Hold = &f.Hold
	}
	return o
}

// optional is a flag whose value may be left out, as sbatch's --exclusive:
// "--exclusive user" would be ambiguous, so the value follows a "=".
type optional []string

// Decode takes the value that is glued to the flag, and none else.
func (o *optional) Decode(ctx *kong.DecodeContext) error {
	value := "true"
	if next := ctx.Scan.Peek(); next.Type == kong.FlagValueToken {
		value, _ = ctx.Scan.Pop().Value.(string)
	}
	*o = append(*o, value)
	return nil
}

// IsBool tells kong that the flag stands alone.
func (o *optional) IsBool() bool { return true }
