package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
	slurmcli "github.com/tuneplane/tp/slurm/cli"
)

// tester asks the scheduler itself about a job, without queueing it. REST has
// no such request: the key test_only of 22.05 submits the job.
type tester interface {
	Test(context.Context, *slurm.Request) (slurm.Estimate, error)
}

// trial is what tp submit --test --json prints. Accepted means nothing unless
// the scheduler was asked.
type trial struct {
	Cluster   string          `json:"cluster"`
	Asked     bool            `json:"asked"`
	Via       string          `json:"via,omitempty"`
	Accepted  bool            `json:"accepted"`
	Start     time.Time       `json:"start,omitzero"`
	Nodes     string          `json:"nodes,omitempty"`
	Partition string          `json:"partition,omitempty"`
	CPUs      int             `json:"cpus,omitempty"`
	Text      string          `json:"text"` // the scheduler's own words, or why it cannot be asked
	Verdicts  []gates.Verdict `json:"verdicts"`
}

// test shows the plan and what the scheduler says of it: nothing is queued,
// staged or uploaded.
func (c *submitCmd) test(ctx context.Context, a *app) error {
	if c.Plan != "" || c.Once != "" {
		return fault.New(fault.Usage, "--test queues nothing, so it goes with neither --plan nor --once").WithHint("tp submit EXPERIMENT --test")
	}
	r, err := a.preview(ctx, c.jobFlags)
	if err != nil {
		return err
	}
	if err := a.show(r.plan, c.Show); err != nil {
		return err
	}
	if err := a.keep(r); err != nil {
		return err
	}
	t := trial{Verdicts: r.plan.Observed.Verdicts}
	failed := t.ask(ctx, r)
	if a.cli.JSON {
		if err := a.printJSON(t); err != nil {
			return err
		}
	} else if t.Asked && t.Accepted {
		fmt.Fprintf(a.Out, "%s\n", ui.Clean(t.sentence()))
	}
	if failed != nil {
		return failed
	}
	_, blocked := plan.Confirm(r.plan, a.now())
	if blocked == nil {
		a.talk("Nothing was queued. tp submit --plan %s", r.plan.Short())
	}
	return blocked
}

// ask fills in the scheduler's answer. The error is a refusal, or says why
// there is none.
func (t *trial) ask(ctx context.Context, r *road) error {
	who, via, err := asker(ctx, r.cluster)
	if err != nil {
		t.Text = err.Error()
		return fault.New(fault.Unreachable, "the scheduler cannot be asked: %w; the verdicts above are tp's own", err).
			WithHint("tp submit %s --test on a login node of the cluster", r.flags.Experiment)
	}
	t.Cluster, t.Via = r.cluster.info.Cluster, via
	e, err := who.Test(ctx, r.plan.Fixed.Request)
	var refused *slurm.Error
	switch {
	case errors.As(err, &refused):
		t.Asked, t.Text = true, refused.Text
		return fault.New(fault.Refused, "%s refuses it: %s", via, refused.Text)
	case err != nil:
		t.Text = err.Error()
		return reach(err, r.cluster.fleet)
	}
	t.Asked, t.Accepted = true, true
	t.Start, t.Nodes, t.Partition, t.CPUs, t.Text = e.Start, e.Nodes, e.Partition, e.CPUs, e.Text
	return nil
}

func (t trial) sentence() string {
	s := t.Via + " accepts it"
	if !t.Start.IsZero() {
		s += " and would start it " + t.Start.Local().Format("2006-01-02 15:04")
	}
	if t.Nodes != "" {
		s += " on " + t.Nodes
	}
	if t.Partition != "" {
		s += " in partition " + t.Partition
	}
	if t.Start.IsZero() || t.Nodes == "" { // else its words say the same again
		s += ": " + t.Text
	}
	return s
}

// asker is the transport where it can test, else sbatch here where it talks to
// the same cluster.
func asker(ctx context.Context, c *cluster) (tester, string, error) {
	switch {
	case c == nil:
		return nil, "", errors.New("no cluster could be reached")
	case c.info.Local:
		return nil, "", errors.New("this machine has none, and nothing waits on it")
	}
	if t, ok := c.Client.(tester); ok {
		return t, c.choice.Transport, nil
	}
	tools := slurmcli.Tools{Dir: c.fleet.Tools}
	here, err := tools.ClusterName(ctx)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s has no such request, and there is no sbatch that works here (%w)", c.choice.Transport, err)
	case here != c.info.Cluster:
		return nil, "", fmt.Errorf("%s has no such request, and sbatch here talks to cluster %s, not to %s", c.choice.Transport, here, c.info.Cluster)
	}
	return slurmcli.New(slurmcli.Options{Tools: tools, Known: c.info}), "sbatch --test-only", nil
}

// config asks for slurm.conf through the commands here, if they are the cluster's.
func config(ctx context.Context, c *cluster) func() slurm.Record {
	return func() slurm.Record {
		r, err := slurmcli.Tools{Dir: c.fleet.Tools, Timeout: factsTimeout}.Config(ctx)
		if err != nil || r.Get("ClusterName") != c.info.Cluster {
			return nil
		}
		return r
	}
}
