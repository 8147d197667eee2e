package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"github.com/tuneplane/tp/recipes"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/local"
	"github.com/tuneplane/tp/slurm/script"
)

// road is the way from a lab to a plan, with what staging needs afterwards.
type road struct {
	lab      *lab.Lab
	spec     *spec.Spec
	registry *site.Registry // nil until it is measured, where no site file has one
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
	shown bool          // --plan
	asked time.Time     // when the plan was first asked for; zero: now
}

// walk resolves a plan. Nothing is written but caches; everything that a flag
// or file can get wrong is found before files are packed.
func (a *app) walk(ctx context.Context, f jobFlags, s start) (*road, error) {
	r := &road{flags: f, env: s.env}
	if s.lab != "" {
		a.cli.Dir = s.lab
	}
	how, err := a.want(r)
	if err != nil {
		return nil, a.suggestSeries(ctx, err)
	}
	facts, err := a.gather(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := packed(r.spec.Roles, r.manifest); err != nil {
		return nil, err
	}
	// A plan that was shown is compared whole; what changed is said in its words.
	if len(facts.git.Changed) > 0 && !f.AllowDirty && !s.shown {
		return nil, dirty(facts.git)
	}
	in, err := a.input(ctx, r, how, facts, s.runID)
	if err != nil {
		return nil, err
	}
	in.Asked = s.asked
	var met []string
	if in.Dependency, met, err = a.dependency(ctx, r.cluster, r.spec.Job.After, s.shown); err != nil {
		return nil, err
	}
	in.Warnings = append(in.Warnings, met...)
	if r.plan, err = plan.Resolve(in); err != nil || r.cluster == nil {
		return r, err
	}
	return r, r.cluster.expressible(ctx, r.plan)
}

// want reads the lab and says what is wanted; profiles are held against the
// site's hardware registry where there is one.
func (a *app) want(r *road) (*recipes.Composition, error) {
	conf, err := a.site()
	if err != nil {
		return nil, err
	}
	if l, err := a.ledger(); err != nil {
		return nil, err
	} else if err := l.Ready(); err != nil {
		return nil, err
	}
	if r.lab, err = a.lab(); err != nil {
		return nil, err
	}
	exp, err := r.lab.Experiment(r.flags.Experiment)
	if err != nil {
		return nil, err
	}
	if r.flags.UpgradeRecipe {
		if err := a.upgrade(r.lab, exp); err != nil {
			return nil, err
		}
	}
	options, err := r.flags.options(conf, a.cli.Fleet)
	if err != nil {
		return nil, err
	}
	if options.Catalog, err = a.catalog(r.lab); err != nil {
		return nil, err
	}
	var how *recipes.Composition
	if r.spec, how, err = recipes.Compose(r.lab, exp, options); err != nil {
		return nil, err
	}
	r.registry = conf.Registry()
	if fleet, err := conf.Fleet(a.cli.Fleet); err == nil && fleet.Kind == site.Local {
		r.registry = nil // measured, see app.registry
	}
	if r.registry != nil {
		for _, p := range r.spec.Profiles {
			if _, _, _, err := r.registry.Resolve(p); err != nil {
				return nil, err
			}
		}
	}
	if r.env == nil {
		r.env = a.callerEnv(conf)
	}
	r.store, err = a.objects()
	return how, err
}

// facts are what git, the files and the cluster say now.
type facts struct {
	snapshot  *slurm.Snapshot // nil when the cluster was not asked
	rights    gates.Rights
	git       spec.Provenance
	selection *bundle.Selection
	upload    bundle.Upload
}

// gather asks git, the files and the cluster at the same time. When several
// fail, the cluster's error is told first.
func (a *app) gather(ctx context.Context, r *road) (facts, error) {
	var (
		f     facts
		group errgroup.Group
		asked error
	)
	group.Go(func() (err error) {
		if r.cluster, err = a.connect(ctx, a.cli.Fleet); err == nil {
			var rights sync.WaitGroup
			rights.Go(func() { f.rights = a.rights(ctx, r.cluster) })
			f.snapshot, err = r.cluster.Snapshot(ctx)
			rights.Wait()
		}
		asked = err
		return nil
	})
	group.Go(func() (err error) { f.git, err = lab.Git(ctx, r.lab.Root, r.spec.Dirs); return err })
	group.Go(func() (err error) {
		if f.selection, err = bundle.Select(ctx, bundle.Source{Root: r.lab.Root, Dirs: r.spec.Dirs, Exclude: r.spec.Exclude}); err != nil {
			return err
		}
		if r.manifest, err = bundle.Digest(ctx, f.selection, a.cacheDir()); err != nil {
			return err
		}
		f.upload, err = bundle.Plan(ctx, r.manifest, r.store, a.cacheDir())
		return err
	})
	failed := group.Wait()
	if asked != nil && (r.registry == nil || !r.flags.Offline) {
		fleet, _ := a.conf.Fleet(a.cli.Fleet)
		return f, reach(asked, fleet)
	}
	if failed != nil {
		return f, failed
	}
	if err := lab.Nested(ctx, r.lab.Root, f.selection.Nested, &f.git); err != nil {
		return f, err
	}
	if f.selection.Git { // what is untracked and left out does not travel
		f.git.Untracked = f.selection.Untracked[:min(len(f.selection.Untracked), lab.MaxListed)]
	}
	a.provenance(&f.git)
	return f, nil
}

// input puts everything together that a plan is resolved from.
func (a *app) input(ctx context.Context, r *road, how *recipes.Composition, f facts, runID string) (plan.Input, error) {
	if r.registry == nil {
		r.registry = a.conf.Measured(f.snapshot)
	}
	access, err := r.store.Fetch(ctx, nil, linkTTL)
	if err != nil {
		return plan.Input{}, err
	}
	me, err := a.user()
	if err != nil {
		return plan.Input{}, err
	}
	in := plan.Input{
		Spec: r.spec, Registry: r.registry, Snapshot: f.snapshot, Fleet: a.fleetName(r.cluster),
		Bundle:   plan.Bundle{Digest: r.manifest.Digest.String(), Files: len(r.manifest.Files), Bytes: f.upload.Bytes, Segments: f.upload.Total, Store: r.store.String()},
		NewBytes: f.upload.NewBytes, StageIn: bundle.FetchScript(r.manifest.Digest, access),
		RunID: runID, RunDir: ledger.Dir(a.conf.RunRoot, me, r.spec.Experiment, ledger.ID(runID)),
		User: me, Env: r.env, Network: script.Network(a.conf.Network), Software: a.conf.Software, Stat: seen, Git: f.git,
		Settings: settings(how.Settings), Warnings: slices.Concat(a.conf.Notes, how.Warnings, notes(f.selection, r.manifest)),
		Now: a.now(), TTL: a.conf.PlanTTL,
	}
	if r.cluster != nil {
		in.Transport = r.cluster.choice.Transport
		in.OtherWays, in.AbsentWays = r.cluster.choice.Others()
		if !r.cluster.info.Local {
			in.Config = config(ctx, r.cluster)
			in.Rights, in.Parents, in.Licenses = f.rights, parents(ctx, r.cluster), licenses(ctx, r.cluster)
			in.Warnings = append(in.Warnings, a.filters(ctx, r.cluster)...)
		}
		if here, ok := r.cluster.Client.(*local.Client); ok {
			in.PathFirst, in.Network.Interface = here.Commands(), ""
		}
		in.Warnings = append(in.Warnings, r.cluster.choice.Warnings...)
	}
	return in, nil
}

// seen says why a path is not there. A directory that this user may not look
// into here may be open on the nodes, so nothing else counts.
func seen(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errors.New("no such file or directory")
	}
	return nil
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
func reach(err error, fleet site.Fleet) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	if refused := refusedToken(err, fleet); refused != nil {
		return refused
	}
	return fault.New(fault.Unreachable, "%w", err).WithHint("tp doctor")
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

// suggestTimeout bounds a question to the cluster that only makes an error
// message better.
const suggestTimeout = 3 * time.Second

// suggestSeries names this cluster's own series where no profile was given: the
// site file's, else those that the cluster reports.
func (a *app) suggestSeries(ctx context.Context, err error) error {
	var f *fault.Error
	if !errors.Is(err, recipes.ErrNoProfile) || !errors.As(err, &f) {
		return err
	}
	registry := a.conf.Registry()
	fleet, ferr := a.conf.Fleet(a.cli.Fleet)
	if ferr != nil {
		return ferr
	}
	if registry == nil || fleet.Kind == site.Local {
		ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
		defer cancel()
		cl, cerr := a.connect(ctx, a.cli.Fleet)
		if cerr != nil {
			return err
		}
		snap, serr := cl.Snapshot(ctx)
		if serr != nil {
			return err
		}
		registry = a.registry(cl.fleet, snap)
	}
	names := registry.Names()
	if len(names) == 0 {
		return err
	}
	example := names[0]
	for _, s := range registry.Series {
		if s.Devices > 0 {
			example = fmt.Sprintf("%s:%d", s.Name, s.Devices)
			break
		}
	}
	better := *f
	better.Hint = fmt.Sprintf("--profile %s; the series here are %s (tp fleet show)", example, strings.Join(names, ", "))
	return &better
}
