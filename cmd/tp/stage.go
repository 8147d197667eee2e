package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/view"
)

// linkTTL is how long a node may fetch through signed links: the most that S3
// allows. A run that waits longer gets new links from tp tick.
const linkTTL = 7 * 24 * time.Hour

// stage confirms the plan and makes its bundle and run directory durable.
func (a *app) stage(ctx context.Context, r *road) (run.Staged, error) {
	approved, err := plan.Confirm(r.plan, a.now())
	if err != nil {
		return run.Staged{}, err
	}
	l, err := a.ledger()
	if err != nil {
		return run.Staged{}, err
	}
	return run.Stage(ctx, approved, r.objects(a), l)
}

// objects makes the bundle durable and returns the files for the run directory.
func (r *road) objects(a *app) func(context.Context) (map[string][]byte, error) {
	return func(ctx context.Context) (map[string][]byte, error) {
		progress := a.Progress()
		stored, err := bundle.Put(ctx, r.manifest, r.lab.Root, r.store, a.cacheDir(), func(done, total int64) {
			progress.Set(fmt.Sprintf("packing %s of %s", view.Bytes(done), view.Bytes(total)))
		})
		progress.Done()
		if err != nil {
			return nil, err
		}
		fetch, err := bundle.NewFetch(ctx, r.manifest, r.store, stored, linkTTL)
		if err != nil {
			return nil, err
		}
		manifest, err := json.Marshal(r.manifest)
		if err != nil {
			return nil, err
		}
		fetch.Files["manifest.json"] = manifest
		return fetch.Files, nil
	}
}
