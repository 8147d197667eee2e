package main

import (
	"context"
	"fmt"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/ui"
)

// settle finds out what became of submissions that were cut off, submits again
// those that certainly have no job, and adopts jobs made by hand. What cannot be
// settled now is said and left for the next tick.
func (a *app) settle(ctx context.Context, runs []*ledger.Run) (settled, adopted int, err error) {
	clusters := map[string]*cluster{}
	for _, r := range runs {
		_, open := r.Unsettled()
		if !open && r.State != ledger.NotSubmitted {
			continue
		}
		cl := clusters[r.Fleet]
		if cl == nil {
			if cl, err = a.connect(ctx, r.Fleet); err != nil {
				return settled, adopted, err
			}
			clusters[r.Fleet] = cl
		}
		q, err := a.queue(cl)
		if err != nil {
			return settled, adopted, err
		}
		if !open {
			found, err := q.Adopt(ctx, r)
			if err != nil {
				a.warn(fmt.Sprintf("%s: %v", r.ID, err))
			}
			if found {
				adopted++
			}
			continue
		}
		staged, err := run.Resume(a.record, r)
		if err != nil {
			a.warn(fmt.Sprintf("%s: %v", r.ID, err))
			continue
		}
		fresh, err := q.Submit(ctx, staged)
		if err != nil {
			a.warn(fmt.Sprintf("%s: %v", r.ID, err))
			continue
		}
		*r = *fresh
		settled++
	}
	return settled, adopted, nil
}

// job are the settings of an experiment with their origins.
func (c *configShowCmd) job(a *app) ([]plan.Setting, error) {
	_, how, err := a.compose(c.jobFlags)
	if err != nil {
		return nil, err
	}
	return settings(how.Settings), nil
}

func settingsTable(rows []plan.Setting) *ui.Grid {
	t := &ui.Grid{Head: []string{"setting", "value", "from"}}
	for _, s := range rows {
		t.Add(s.Key, s.Value, s.Origin)
	}
	return t
}
