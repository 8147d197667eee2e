package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/track"
	"github.com/tuneplane/tp/internal/view"
)

type statusCmd struct{}

func (c *statusCmd) Run(ctx context.Context, a *app) error {
	runs, cl, err := a.refreshed(ctx, ledger.Filter{Active: true})
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(runs)
	}
	if len(runs) == 0 {
		fmt.Fprintln(a.Out, "no run is waiting or running")
	} else {
		if err := view.Runs(a.Streams, runs, a.now()); err != nil {
			return err
		}
	}
	if cl == nil {
		return nil
	}
	snap, err := cl.Snapshot(ctx)
	if err != nil {
		return reach(err, cl.fleet)
	}
	fmt.Fprintln(a.Out)
	view.Series(a.Out, a.registry(cl.fleet, snap), snap)
	return nil
}

// refreshed lists runs after asking the cluster about those that are not
// final. A cluster that does not answer is said; the runs are shown as they
// were known, and the cluster returned is nil.
func (a *app) refreshed(ctx context.Context, f ledger.Filter) ([]*ledger.Run, *cluster, error) {
	l, err := a.ledger()
	if err != nil {
		return nil, nil, err
	}
	runs, err := l.List(f)
	if err != nil {
		return nil, nil, err
	}
	cl, err := a.refresh(ctx, runs)
	if err != nil {
		a.warn(fmt.Sprintf("states are as they were last known: %v", err))
		return runs, nil, nil
	}
	if f.Active {
		var active []*ledger.Run
		for _, r := range runs {
			if !r.State.Final() {
				active = append(active, r)
			}
		}
		runs = active
	}
	return runs, cl, nil
}

// refresh brings runs up to date, fleet by fleet; one that does not answer keeps
// no other from it. It returns the cluster of the default fleet.
func (a *app) refresh(ctx context.Context, runs []*ledger.Run) (*cluster, error) {
	me, err := a.user()
	if err != nil {
		return nil, err
	}
	byFleet := map[string][]*ledger.Run{}
	for _, r := range runs {
		if !r.State.Final() {
			byFleet[r.Fleet] = append(byFleet[r.Fleet], r)
		}
	}
	cl, failed := a.connect(ctx, a.cli.Fleet)
	for fleet, list := range byFleet {
		c, err := cl, error(nil)
		if fleet != "" && (cl == nil || fleet != cl.fleet.Name) {
			c, err = a.connect(ctx, fleet)
		}
		if err != nil {
			failed = cmp.Or(failed, err)
		} else if c != nil {
			t := track.Tracker{Client: c, Cluster: c.info.Cluster, Ledger: a.record, User: me}
			if err := t.Refresh(ctx, list); err != nil {
				failed = cmp.Or(failed, reach(err, c.fleet))
			}
		}
	}
	return cl, failed
}

// current is find, brought up to date where the cluster answers.
func (a *app) current(ctx context.Context, id string) (*ledger.Run, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	_, err = a.update(ctx, r)
	return r, err
}

// update brings a run up to date. Silence of the cluster is said and returned
// beside what makes it senseless to go on.
func (a *app) update(ctx context.Context, r *ledger.Run) (silence, err error) {
	if r.Fleet != "" {
		a.cli.Fleet = r.Fleet
	}
	if r.State.Final() {
		return nil, nil
	}
	cl, err := a.connected(ctx, a.cli.Fleet)
	if err != nil {
		a.warn(fmt.Sprintf("the state is as it was last known: %v", err))
		return err, nil
	}
	if r.State == ledger.NotSubmitted {
		q, err := a.queue(cl)
		if err != nil {
			return nil, err
		}
		if _, err := q.Adopt(ctx, r); err != nil {
			a.warn(err.Error())
		}
	}
	me, err := a.user()
	if err != nil {
		return nil, err
	}
	t := track.Tracker{Client: cl, Cluster: cl.info.Cluster, Ledger: a.record, User: me}
	if silence = t.Refresh(ctx, []*ledger.Run{r}); silence != nil {
		a.warn(fmt.Sprintf("the state is as it was last known: %v", silence))
		delete(a.reached, a.cli.Fleet) // another way may work
	}
	return silence, nil
}

// connected is connect, once for each fleet: a loop that watches a run must not
// find its way anew each time.
func (a *app) connected(ctx context.Context, fleet string) (*cluster, error) {
	if cl := a.reached[fleet]; cl != nil {
		return cl, nil
	}
	cl, err := a.connect(ctx, fleet)
	if err != nil {
		return nil, err
	}
	if a.reached == nil {
		a.reached = map[string]*cluster{}
	}
	a.reached[fleet] = cl
	return cl, nil
}

// failed is the exit code of a command that reports a run that did not succeed.
func failed(r *ledger.Run) error {
	if r.State.Final() && r.State != ledger.Succeeded {
		return fault.New(fault.RunFailed, "run %s is %s: %s", r.ID, r.State, r.Reason).WithHint("tp job logs %s", r.ID)
	}
	return nil
}
