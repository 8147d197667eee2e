package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/view"
	"github.com/tuneplane/tp/recipes"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/local"
)

// road is the way from a lab to a plan, with what staging needs afterwards.
type road struct {
	lab      *lab.Lab
	spec     *spec.Spec
	flags    jobFlags
	env      []spec.EnvVar
	manifest *bundle.Manifest
	store    store.Store
	cluster  *cluster
	plan     *plan.Plan
}

// start is where a road begins: new for a new plan, as it was for --plan.
type start struct {
	runID string
	env   []spec.EnvVar // nil: this process's
	lab   string        // root; empty: where we are
}

// walk resolves a plan. Nothing is written but caches; everything that a flag
// or file can get wrong is found before files are packed.
func (a *app) walk(ctx context.Context, f jobFlags, s start) (*road, error) {
	conf, err := a.site()
	if err != nil {
		return nil, err
	}
	r := &road{flags: f, env: s.env}
	if s.lab != "" {
		a.cli.Dir = s.lab
	}
	if r.lab, err = a.lab(); err != nil {
		return nil, err
	}
	exp, err := r.lab.Experiment(f.Experiment)
	if err != nil {
		return nil, err
	}
	if f.UpgradeRecipe {
		if err := a.upgrade(exp); err != nil {
			return nil, err
		}
	}
	options, err := f.options(conf, a.cli.Fleet)
	if err != nil {
		return nil, err
	}
	wanted, how, err := recipes.Compose(r.lab, exp, options)
	if err != nil {
		return nil, err
	}
	if err := plan.Runnable(wanted); err != nil {
		return nil, err
	}
	r.spec = wanted
	registry := conf.Registry()
	if fleet, err := conf.Fleet(a.cli.Fleet); err == nil && fleet.Kind == site.Local {
		registry = nil // measured, see app.registry
	}
	if registry != nil {
		for _, p := range r.spec.Profiles {
			if _, _, _, err := registry.Resolve(p); err != nil {
				return nil, err
			}
		}
	}
	if r.store, err = a.objects(); err != nil {
		return nil, err
	}
	if r.env == nil {
		r.env = a.callerEnv(conf)
	}

	// Git, the bundle and the cluster do not wait for each other.
	var (
		group    errgroup.Group
		snapshot *slurm.Snapshot
		git      spec.Provenance
		upload   bundle.Upload
		sel      *bundle.Selection
		asked    error // the cluster's error comes first when several fail
	)
	group.Go(func() (err error) {
		if r.cluster, err = a.connect(ctx, a.cli.Fleet); err == nil {
			snapshot, err = r.cluster.Snapshot(ctx)
		}
		asked = err
		return nil
	})
	group.Go(func() (err error) { git, err = lab.Git(ctx, r.lab.Root, r.spec.Dirs); return err })
	group.Go(func() (err error) {
		if sel, err = bundle.Select(ctx, bundle.Source{Root: r.lab.Root, Dirs: r.spec.Dirs, Exclude: r.spec.Exclude}); err != nil {
			return err
		}
		if r.manifest, err = bundle.Digest(ctx, sel, a.cacheDir()); err != nil {
			return err
		}
		upload, err = bundle.Plan(ctx, r.manifest, r.store, a.cacheDir())
		return err
	})
	failed := group.Wait()
	if asked != nil && (registry == nil || !f.Offline) {
		return nil, reach(asked)
	}
	if failed != nil {
		return nil, failed
	}
	if err := packed(r.spec.Roles, r.manifest); err != nil {
		return nil, err
	}
	if registry == nil {
		registry = site.FromSnapshot(snapshot)
	}
	if err := lab.Nested(ctx, r.lab.Root, sel.Nested, &git); err != nil {
		return nil, err
	}
	if sel.Git { // what is untracked and left out does not travel
		git.Untracked = sel.Untracked[:min(len(sel.Untracked), lab.MaxListed)]
	}
	a.provenance(&git)
	if len(git.Changed) > 0 && !f.AllowDirty {
		return nil, dirty(git)
	}
	access, err := r.store.Fetch(ctx, nil, linkTTL)
	if err != nil {
		return nil, err
	}
	me, err := a.user()
	if err != nil {
		return nil, err
	}
	in := plan.Input{
		Spec: r.spec, Registry: registry, Snapshot: snapshot, Fleet: a.fleetName(r.cluster),
		Bundle:   plan.Bundle{Digest: r.manifest.Digest.String(), Files: len(r.manifest.Files), Bytes: upload.Bytes, Segments: upload.Total, Store: r.store.String()},
		NewBytes: upload.NewBytes, StageIn: bundle.FetchScript(r.manifest.Digest, access),
		RunID: s.runID, RunDir: filepath.Join(conf.RunRoot, ledger.Slug(me), ledger.Slug(exp.Name), s.runID),
		User: me, Env: r.env, Interface: conf.Interface, Git: git,
		Settings: settings(how.Settings), Warnings: slices.Concat(conf.Notes, how.Warnings, notes(sel, r.manifest)),
		Now: a.now(), TTL: conf.PlanTTL,
	}
	if r.cluster != nil {
		in.Transport = r.cluster.choice.Transport
		if here, ok := r.cluster.Client.(*local.Client); ok {
			in.PathFirst, in.Interface = here.Commands(), ""
		}
		in.Warnings = append(in.Warnings, r.cluster.choice.Warnings...)
	}
	if r.plan, err = plan.Resolve(in); err != nil || r.cluster == nil {
		return r, err
	}
	return r, r.cluster.expressible(ctx, r.plan)
}

// expressible asks the transport whether it can say everything the plan wants,
// and adds what it will leave out to the warnings. A gate's objection comes first.
func (c *cluster) expressible(ctx context.Context, p *plan.Plan) error {
	if gates.Worst(p.Observed.Verdicts) == gates.Block {
		return nil
	}
	checker, ok := c.Client.(interface {
		Check(context.Context, *slurm.Request) ([]string, error)
	})
	if !ok {
		return nil
	}
	warnings, err := checker.Check(ctx, p.Fixed.Request)
	if err != nil {
		return fault.New(fault.Usage, "%s cannot carry this job: %w", c.choice.Transport, err)
	}
	p.Observed.Warnings = append(p.Observed.Warnings, warnings...)
	return nil
}

// reach makes a refusal or silence of the cluster a fault.
func reach(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.New(fault.Unreachable, "%w", err).WithHint("tp doctor")
}

// linkTTL is how long a node may fetch through signed links: the most that S3
// allows. A run that waits longer gets new links from tp tick.
const linkTTL = 7 * 24 * time.Hour

// stage makes the bundle durable and returns the files for the run directory.
func (r *road) stage(a *app) func(context.Context) (map[string][]byte, error) {
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

// keep writes the plan down, so that it can be confirmed by its digest.
func (a *app) keep(r *road) error {
	options, err := json.Marshal(r.flags)
	if err != nil {
		return err
	}
	env, err := json.Marshal(r.env)
	if err != nil {
		return err
	}
	return a.book().Save(plan.Issued{Plan: r.plan, Lab: r.lab.Root, Options: options, Env: env}, a.now())
}

func (a *app) book() plan.Book { return plan.Book{Dir: filepath.Join(a.conf.StateDir, "plans")} }

func (a *app) cacheDir() string { return filepath.Join(a.conf.StateDir, "cache") }
