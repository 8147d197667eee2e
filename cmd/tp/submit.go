package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/track"
	"github.com/tuneplane/tp/internal/view"
	"github.com/tuneplane/tp/slurm"
)

type submitCmd struct {
	jobFlags
	Plan string   `placeholder:"DIGEST" help:"Submit a plan that tp plan showed, and nothing else."`
	Once string   `placeholder:"KEY" help:"Same key, same run: for scripts that may run twice."`
	Yes  bool     `short:"y" help:"Do not ask."`
	Test bool     `help:"Ask the scheduler whether it takes the job and when it would start; queue and upload nothing."`
	Show []string `placeholder:"PART" help:"Also print script, request, manifest, env, spec, config or provenance."`
}

func (c *submitCmd) Run(ctx context.Context, a *app) error {
	if c.Test {
		return c.test(ctx, a)
	}
	begin, err := c.begin(ctx, a)
	if err != nil || begin == nil {
		return err
	}
	r, err := a.walk(ctx, c.jobFlags, *begin)
	if err != nil {
		return err
	}
	if c.Plan != "" {
		if err := c.unchanged(a, r); err != nil {
			return err
		}
	}
	if err := a.show(r.plan, c.Show); err != nil {
		return err
	}
	if _, err := plan.Confirm(r.plan, a.now()); err != nil {
		return err
	}
	if r.cluster == nil {
		return fault.New(fault.Unreachable, "the cluster cannot be asked, so nothing is submitted").WithHint("tp doctor")
	}
	if err := a.keep(r); err != nil {
		return err
	}
	if yes, err := c.agreed(ctx, a, r.plan); err != nil || !yes {
		return err
	}
	staged, err := a.stage(ctx, r)
	if err != nil {
		return err
	}
	return a.submit(ctx, r.cluster, staged)
}

// begin says with which run id the road starts. A nil start means that the run
// exists already and has been reported.
func (c *submitCmd) begin(ctx context.Context, a *app) (*start, error) {
	s := start{runID: plan.NewRunID()}
	if _, err := a.site(); err != nil {
		return nil, err
	}
	if c.Plan != "" {
		if c.Once != "" {
			return nil, fault.New(fault.Usage, "--plan and --once exclude each other: a plan is one run already")
		}
		issued, err := a.book().Load(c.Plan)
		if err != nil {
			return nil, err
		}
		if done, err := a.again(ctx, ledger.ID(issued.Plan.Fixed.RunID), issued.Plan.Fixed.RunDir); done || err != nil {
			return nil, err
		}
		if err := c.recall(issued, &s); err != nil {
			return nil, err
		}
		a.cli.Fleet = issued.Plan.Fixed.Fleet
		return &s, nil
	}
	if c.Experiment == "" {
		return nil, fault.New(fault.Usage, "which experiment? tp ls lists them").WithHint("tp submit EXPERIMENT --profile SERIES:GPUS")
	}
	if c.Once != "" {
		l, err := a.ledger()
		if err != nil {
			return nil, err
		}
		winner, err := l.Once(c.Once, ledger.ID(s.runID))
		if err != nil {
			return nil, err
		}
		if string(winner) != s.runID {
			s.runID = string(winner)
			if r, err := l.Find(s.runID); err == nil {
				_, err := a.again(ctx, r.ID, r.Dir)
				return nil, err
			}
		}
	}
	return &s, nil
}

// recall brings back what the plan was made from.
func (c *submitCmd) recall(issued plan.Issued, s *start) error {
	c.jobFlags = jobFlags{}
	if err := json.Unmarshal(issued.Options, &c.jobFlags); err != nil {
		return fmt.Errorf("plan %s: %w", issued.Plan.Short(), err)
	}
	var env []spec.EnvVar
	if err := json.Unmarshal(issued.Env, &env); err != nil {
		return fmt.Errorf("plan %s: %w", issued.Plan.Short(), err)
	}
	s.runID, s.env, s.lab, s.shown = issued.Plan.Fixed.RunID, env, issued.Lab, true
	s.asked = issued.Plan.Issued
	return nil
}

// unchanged refuses when the plan does not resolve to what was shown. What was
// only observed then may differ; the issue time and expiry stay.
func (c *submitCmd) unchanged(a *app, r *road) error {
	issued, err := a.book().Load(c.Plan)
	if err != nil {
		return err
	}
	if changes := plan.Changes(issued.Plan, r.plan); changes != nil {
		text := ""
		for _, change := range changes {
			text += "\n  " + change
		}
		return fault.New(fault.Changed, "plan %s is no longer what was shown; changed since:%s", issued.Plan.Short(), text).WithHint("tp plan %s", r.flags.Experiment)
	}
	r.plan.Issued, r.plan.Expires = issued.Plan.Issued, issued.Plan.Expires
	return nil
}

// agreed asks. Without a terminal nobody can be asked: the flag is named.
func (c *submitCmd) agreed(ctx context.Context, a *app, p *plan.Plan) (bool, error) {
	if c.Yes || c.Plan != "" {
		return true, nil
	}
	if !a.InTTY {
		return false, fault.New(fault.Usage, "nobody can be asked without a terminal, and --yes is not given; nothing was submitted").
			WithHint("tp submit --plan %s, or --yes", p.Short())
	}
	yes, err := a.ask(ctx, "Submit?")
	if err == nil && !yes {
		a.talk("Nothing was submitted. The plan is kept until %s: tp submit --plan %s", p.Expires.Local().Format("15:04"), p.Short())
	}
	return yes, err
}

// ask is Confirm that an interrupt ends. Reading a terminal cannot be called
// off, so the reader is left to the end of the process.
func (a *app) ask(ctx context.Context, prompt string) (bool, error) {
	type answer struct {
		yes bool
		err error
	}
	got := make(chan answer, 1)
	go func() {
		yes, err := a.Confirm(prompt)
		got <- answer{yes, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Err) // the prompt's line has no end
		return false, ctx.Err()
	case x := <-got:
		return x.yes, x.err
	}
}

// again reports a run that exists already, after finding out what became of it
// if its submission was cut off.
func (a *app) again(ctx context.Context, id ledger.ID, dir string) (bool, error) {
	l, err := a.ledger()
	if err != nil {
		return false, err
	}
	r, err := l.Load(dir)
	if err != nil || r.ID != id {
		return false, nil
	}
	if r.Fleet != "" {
		a.cli.Fleet = r.Fleet
	}
	staged, err := run.Resume(l, r)
	if err != nil {
		return false, err
	}
	cl, err := a.connect(ctx, a.cli.Fleet)
	if err != nil {
		return false, err
	}
	a.talk("This is run %s already; nothing is submitted twice.", id)
	return true, a.submit(ctx, cl, staged)
}

// submission is what tp submit --json prints.
type submission struct {
	RunID       ledger.ID    `json:"run_id"`
	JobID       uint32       `json:"job_id"`
	State       ledger.State `json:"state"`
	Gate        string       `json:"gate,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Existed     bool         `json:"existed"` // somebody confirmed this plan or key before
	RunDir      string       `json:"run_dir"`
	PlanDigest  string       `json:"plan_digest"`
	Differences []string     `json:"differences,omitempty"` // between plan and job
}

// submit queues a staged run, reads the job back and prints the result.
func (a *app) submit(ctx context.Context, cl *cluster, staged run.Staged) error {
	q, err := a.queue(cl)
	if err != nil {
		return err
	}
	r, err := q.Submit(ctx, staged)
	if err != nil {
		return err
	}
	out := submission{RunID: r.ID, JobID: uint32(r.JobID()), RunDir: r.Dir, PlanDigest: r.PlanDigest, Existed: staged.Existed}
	if jobs, err := cl.Jobs(ctx, r.JobID()); err != nil {
		a.warn(fmt.Sprintf("the job is queued but could not be read back: %v", err))
	} else if len(jobs) > 0 {
		if p, err := run.Plan(r); err == nil {
			for _, d := range slurm.Compare(p.Fixed.Request, jobs) {
				out.Differences = append(out.Differences, d.String())
			}
		}
		t := track.Tracker{Client: cl, Cluster: cl.info.Cluster, Ledger: q.Ledger, User: q.User}
		if err := t.Record(r, jobs); err != nil {
			a.warn(fmt.Sprintf("the job is queued but its state could not be written down: %v", err))
		}
	}
	for _, d := range out.Differences {
		a.warn(d)
	}
	out.State, out.Gate, out.Reason = r.State, r.Gate, r.Reason
	if a.cli.JSON {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.Out, "%s %s %s\n", r.ID, r.JobID(), view.State(r))
	a.talk("tp job logs %s", r.ID)
	return nil
}
