package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/run"
)

// surplusTime is how long after its end a run is still looked at for a second
// job: longer than any request may lie about in a proxy or server.
const surplusTime = time.Hour

// settle finds out what became of submissions that were cut off, submits again
// those that certainly have no job, and adopts jobs made by hand. What cannot be
// settled now is said and left for the next tick.
func (a *app) settle(ctx context.Context, runs []*ledger.Run) (settled, adopted int, err error) {
	clusters := map[string]*cluster{}
	for _, r := range runs {
		_, open := r.Unsettled()
		if r.State.Final() && !open && a.now().Sub(r.Updated) > surplusTime {
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
		if surplus, err := q.Surplus(ctx, r); err != nil {
			a.warn(fmt.Sprintf("%s: %v", r.ID, err))
		} else {
			for _, id := range surplus {
				a.talk("%s: job %s was a second one of this run and is cancelled", r.ID, id)
			}
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

// renew signs new download links for runs that wait longer than links live.
func (a *app) renew(ctx context.Context, runs []*ledger.Run) error {
	for _, r := range runs {
		if r.State.Final() || r.State == ledger.Running {
			continue
		}
		path := filepath.Join(r.Dir, "bundle.curl")
		links, err := durable.Read(path, 64<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		sums, err := durable.Read(filepath.Join(r.Dir, "bundle.sha256"), 64<<20)
		if err != nil {
			return err
		}
		st, err := a.objects()
		if err != nil {
			return err
		}
		fresh, err := bundle.Renew(ctx, sums, links, st, linkTTL, a.now())
		if err != nil {
			return err
		}
		if fresh != nil {
			if err := durable.WriteFile(path, fresh, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
