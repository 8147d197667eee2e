package main

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm"
	slurmcli "github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/connect"
)

// factsTimeout bounds each of Slurm's commands: the answers are good to have
// and nothing waits for them.
const factsTimeout = 1500 * time.Millisecond

// facts are what Slurm's commands tell of a fleet, else what accounting does
// over REST. Why slurm.conf is not among them is said; facts are never nil.
func (a *app) facts(ctx context.Context, cl *cluster) (f *slurm.Facts, why string) {
	tools := slurmcli.Tools{Dir: cl.fleet.Tools, Timeout: factsTimeout}
	f, why = a.factsOf(ctx, cl, tools)
	if f != nil && f.Config != nil {
		return f, ""
	}
	f = &slurm.Facts{}
	if rest, ok := cl.Client.(interface {
		Facts(context.Context, string) (*slurm.Facts, error)
	}); ok {
		if over, err := rest.Facts(ctx, a.me); err == nil {
			f = over
		}
	}
	return f, why
}

func (a *app) factsOf(ctx context.Context, cl *cluster, tools slurmcli.Tools) (*slurm.Facts, string) {
	if _, err := exec.LookPath(tools.Path("scontrol")); err != nil {
		return nil, "scontrol is not here"
	}
	f, err := tools.Facts(ctx, a.me)
	if err != nil {
		return nil, err.Error()
	}
	if here := f.Config.Get("ClusterName"); here != cl.info.Cluster {
		return nil, fmt.Sprintf("the commands here belong to cluster %s, not to %s", here, cl.info.Cluster)
	}
	return f, ""
}

// live is a fleet as it answered, or why it did not.
type live struct {
	site.Live
	name string
	cl   *cluster
	ways []connect.Attempt // every way there, for doctor
	why  string            // slurm.conf is not known
	err  error
}

// lives reaches every fleet that matters, all at once; all says to try every
// way to each.
func (a *app) lives(ctx context.Context, conf *site.Config, all bool) []live {
	names := conf.Names()
	if a.cli.Fleet != "" {
		names = []string{a.cli.Fleet}
	}
	list := make([]live, len(names))
	if _, err := a.user(); err != nil {
		return []live{{name: names[0], err: err}}
	}
	var group errgroup.Group
	group.SetLimit(8)
	for i, name := range names {
		group.Go(func() error {
			l := &list[i]
			l.name = name
			var others sync.WaitGroup
			defer others.Wait()
			if all {
				others.Go(func() { l.ways = a.ways(ctx, conf, name) })
			}
			if l.cl, l.err = a.connect(ctx, name); l.err != nil {
				return nil
			}
			l.Fleet = l.cl.fleet.Name
			others.Go(func() { l.Facts, l.why = a.facts(ctx, l.cl) })
			l.Snap, l.err = l.cl.Snapshot(ctx)
			return nil
		})
	}
	_ = group.Wait() // each says its own error
	return list
}

// ways tries every way to a fleet.
func (a *app) ways(ctx context.Context, conf *site.Config, name string) []connect.Attempt {
	fleet, err := conf.Fleet(name)
	if err != nil || fleet.Kind == site.Local {
		return nil
	}
	f, err := a.reaching(fleet)
	if err != nil {
		return nil // connect says it
	}
	return connect.Survey(ctx, f, a.circumstances(fleet, a.known(fleet).load()))
}
