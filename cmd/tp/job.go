package main

import (
	"context"
	"fmt"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/view"
)

type jobCmd struct {
	Ls     jobLsCmd     `cmd:"" help:"List runs, newest first."`
	Status jobStatusCmd `cmd:"" help:"Show one run."`
	Logs   jobLogsCmd   `cmd:"" help:"Print the logs of all pools and follow them; ends with 0 whatever becomes of the run."`
	Why    jobWhyCmd    `cmd:"" help:"Say why a run waits, or what ended it."`
	Cancel jobCancelCmd `cmd:"" help:"End a run with all its components."`
}

type jobLsCmd struct {
	All bool   `help:"All runs, as with -n 0."`
	Exp string `placeholder:"EXPERIMENT" help:"Only runs of this experiment."`
	N   int    `short:"n" default:"15" help:"At most so many; 0 for all."`
}

func (c *jobLsCmd) Run(ctx context.Context, a *app) error {
	if c.N < 0 {
		return fault.New(fault.Usage, "-n %d: expected how many runs, 0 for all", c.N).WithHint("tp job ls -n 0")
	}
	limit := c.N
	if c.All {
		limit = 0
	}
	runs, _, err := a.refreshed(ctx, ledger.Filter{Experiment: c.Exp, Limit: limit})
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(runs)
	}
	return view.Runs(a.Streams, runs, a.now())
}

type jobStatusCmd struct {
	ID   string `arg:"" optional:"" help:"Run id or its first digits, or the id of its job; the newest run without it."`
	Wait bool   `help:"Wait until the run has ended; exit code 8 when it failed."`
}

func (c *jobStatusCmd) Run(ctx context.Context, a *app) error {
	r, err := a.current(ctx, c.ID)
	if err != nil {
		return err
	}
	for w := a.watch(r); c.Wait && !r.State.Final(); r = w.run {
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	if a.cli.JSON {
		err = a.printJSON(r)
	} else {
		view.Run(a.Out, r, a.now())
	}
	if err == nil && c.Wait {
		return failed(r)
	}
	return err
}

type jobWhyCmd struct {
	ID string `arg:"" optional:"" help:"Run id or its first digits, or the id of its job; the newest run without it."`
}

func (c *jobWhyCmd) Run(ctx context.Context, a *app) error {
	r, err := a.current(ctx, c.ID)
	if err != nil {
		return err
	}
	w := view.Why(r)
	if a.cli.JSON {
		return a.printJSON(map[string]any{"run_id": r.ID, "state": r.State, "gate": w.Gate, "sentence": w.Sentence, "reason": r.Reason})
	}
	if w.Sentence == "" {
		w.Sentence = "nothing to explain"
	}
	fmt.Fprintf(a.Out, "%s %s: %s\n", r.ID, view.State(r), ui.Clean(w.Sentence))
	return nil
}

// cancelLooks is how often the cluster is asked whether a job has ended.
const cancelLooks = 3

type jobCancelCmd struct {
	ID  string `arg:"" optional:"" help:"Run id or its first digits, or the id of its job; the newest run without it, which is asked about."`
	Yes bool   `short:"y" help:"Do not ask about the newest run."`
}

// choose is the run that is meant; nil when the person thought better of it.
// The newest is asked about, for what is newest may change between two commands.
func (c *jobCancelCmd) choose(ctx context.Context, a *app) (*ledger.Run, error) {
	r, err := a.find(ctx, c.ID)
	if err != nil || c.ID != "" {
		return r, err
	}
	if _, err := a.update(ctx, r); err != nil {
		return nil, err
	}
	if r.State.Final() {
		return nil, c.ended(a, r)
	}
	a.talk("%s %s %s, the newest run", r.ID, r.Experiment, view.State(r))
	if c.Yes {
		return r, nil
	}
	if !a.InTTY {
		return nil, fault.New(fault.Usage, "which run? nobody can be asked without a terminal whether it is %s", r.ID).WithHint("tp job cancel %s, or --yes for the newest run", r.ID)
	}
	if yes, err := a.ask(ctx, "Cancel it?"); err != nil || !yes {
		return nil, err
	}
	return r, nil
}

// ended names those that could be meant instead of the newest run.
func (c *jobCancelCmd) ended(a *app, newest *ledger.Run) error {
	open, err := a.record.List(ledger.Filter{Active: true})
	if err != nil {
		return err
	}
	for _, r := range open {
		if r.State != ledger.NotSubmitted {
			return fault.New(fault.Usage, "the newest run, %s, is %s already; %s is %s", newest.ID, newest.State, r.ID, view.State(r)).WithHint("tp job cancel %s", r.ID)
		}
	}
	return fault.New(fault.Usage, "the newest run, %s, is %s already, and no other waits or runs", newest.ID, newest.State).WithHint("tp job ls")
}

func (c *jobCancelCmd) Run(ctx context.Context, a *app) error {
	r, err := c.choose(ctx, a)
	if err != nil || r == nil {
		return err
	}
	if r.Fleet != "" {
		a.cli.Fleet = r.Fleet
	}
	cl, err := a.connect(ctx, a.cli.Fleet)
	if err != nil {
		return err
	}
	q, err := a.queue(cl)
	if err != nil {
		return err
	}
	if err := q.Cancel(ctx, r); err != nil {
		return err
	}
	// Slurm takes a moment to end the steps; its word is what is shown. The
	// request is a sign that the state changes, worth a few looks and no more.
	w := a.watch(r)
	w.pace.Sign(a.now())
	for range cancelLooks {
		if r = w.run; r.State.Final() {
			break
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
		r = w.run
	}
	if a.cli.JSON {
		return a.printJSON(r)
	}
	job := "-"
	if id := r.JobID(); id != 0 {
		job = id.String()
	}
	fmt.Fprintf(a.Out, "%s %s %s\n", r.ID, job, view.State(r))
	if !r.State.Final() {
		return fault.New(fault.Internal, "the cluster has taken the request, and the run has not ended yet").WithHint("tp job status %s", r.ID)
	}
	return nil
}
