package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/recipes"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/connect"
	"github.com/tuneplane/tp/slurm/local"
)

// app is one command's surroundings: streams, and files that are read when
// they are first needed.
type app struct {
	*ui.Streams
	cli    *cli
	args   []string
	conf   *site.Config
	record *ledger.Ledger
	me     string
	// clients may have started something; close ends it.
	clients []slurm.Client

	printed bool // the one JSON document is out

	mu      sync.Mutex          // guards clients
	reached map[string]*cluster // of watches
}

func (a *app) site() (*site.Config, error) {
	if a.conf == nil {
		c, err := site.Load(site.Options{})
		if err != nil {
			return nil, err
		}
		a.conf = c
	}
	return a.conf, nil
}

// user is who runs tp, by uid: $USER may say anything.
func (a *app) user() (string, error) {
	if a.me == "" {
		u, err := user.Current()
		if err != nil {
			return "", fault.New(fault.Internal, "who runs tp is not known: %w", err)
		}
		a.me = u.Username
	}
	return a.me, nil
}

func (a *app) ledger() (*ledger.Ledger, error) {
	if a.record != nil {
		return a.record, nil
	}
	c, err := a.site()
	if err != nil {
		return nil, err
	}
	name, err := a.user()
	if err != nil {
		return nil, err
	}
	a.record, err = ledger.Open(ledger.Options{Roots: []string{c.RunRoot}, User: name, StateDir: c.StateDir})
	return a.record, err
}

func (a *app) close() error {
	for _, c := range a.clients {
		connect.Close(c)
	}
	if a.record != nil {
		return a.record.Close()
	}
	return nil
}

func (a *app) lab() (*lab.Lab, error) {
	dir := a.cli.Dir
	if dir == "" {
		dir = "."
	}
	var o lab.Options
	if a.cli.TrustLab {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		for at := path; ; at = filepath.Dir(at) {
			o.Trust = append(o.Trust, at)
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return lab.Find(dir, o)
}

// anyLab is the lab that tp was called in, nil where there is none.
func (a *app) anyLab() (*lab.Lab, error) {
	l, err := a.lab()
	if errors.Is(err, lab.ErrNone) {
		return nil, nil
	}
	return l, err
}

// catalog is what tp can launch: built-in recipes, the site's and the lab's. The
// lab may be nil.
func (a *app) catalog(l *lab.Lab) (*recipes.Catalog, error) {
	conf, err := a.site()
	if err != nil {
		return nil, err
	}
	c := recipes.Embedded()
	if conf.Recipes != "" {
		dir, err := filepath.EvalSymlinks(conf.Recipes)
		if err != nil {
			return nil, fault.New(fault.Usage, "%s: recipes: %w", conf.SitePath, err)
		}
		if c, err = c.With(dir, "site, "+conf.Recipes); err != nil {
			return nil, err
		}
	}
	if l == nil {
		return c, nil
	}
	return c.With(filepath.Join(l.Root, "recipes"), "lab, recipes/")
}

// objects is where this user's bundles are kept: a place of their own, for an
// object's name says what should be inside, not who wrote it.
func (a *app) objects() (store.Store, error) {
	c, err := a.site()
	if err != nil {
		return nil, err
	}
	name, err := a.user()
	if err != nil {
		return nil, err
	}
	o := c.Objects
	cfg := store.Config{
		Kind: store.Kind(o.Kind), Path: o.Path, Endpoint: o.Endpoint, Bucket: o.Bucket, Region: o.Region,
		Prefix: o.Prefix + ledger.Slug(name) + "/", Credentials: o.Credentials,
	}
	if c.Origin("objects.path_style") != "" {
		cfg.PathStyle = &o.PathStyle
	}
	switch {
	case cfg.Kind == "" || cfg.Kind == store.KindDir && cfg.Path == "":
		cfg.Kind, cfg.Path = store.KindDir, filepath.Join(c.RunRoot, ledger.Slug(name), ".objects")
	case cfg.Kind == store.KindDir:
		cfg.Path = filepath.Join(cfg.Path, ledger.Slug(name))
	}
	st, err := store.Open(cfg)
	if err != nil {
		return nil, fault.New(fault.Usage, "object store: %w", err).WithHint("tp doctor")
	}
	return st, nil
}

// cluster is a fleet that answered.
type cluster struct {
	slurm.Client
	fleet  site.Fleet
	choice connect.Choice
	info   slurm.Info
	memory known
}

// connect reaches the fleet that --fleet or the site file names.
func (a *app) connect(ctx context.Context, name string) (*cluster, error) {
	c, err := a.site()
	if err != nil {
		return nil, err
	}
	fleet, err := c.Fleet(name)
	if err != nil {
		return nil, err
	}
	if fleet.Kind == site.Local {
		return a.here(ctx, fleet)
	}
	f, err := a.reaching(fleet)
	if err != nil {
		return nil, err
	}
	fleet.TokenFile, fleet.TokenCommand = f.TokenFile, f.TokenCommand // what advice names
	memory := a.known(fleet)
	last := memory.load()
	o := a.circumstances(fleet, last)
	client, choice, err := connect.Open(ctx, f, o)
	if err != nil {
		if !choice.Memory.Same(last) {
			memory.save(choice.Memory)
		}
		return nil, unreached(err, fleet)
	}
	a.mu.Lock() // doctor reaches several fleets at once
	a.clients = append(a.clients, client)
	a.mu.Unlock()
	found, err := client.Info(ctx)
	if err != nil {
		return nil, reach(err, fleet)
	}
	if choice.Memory.Info = found; !choice.Memory.Same(last) {
		memory.save(choice.Memory)
	}
	return &cluster{client, fleet, choice, found, memory}, nil
}

// here is this machine as a fleet.
func (a *app) here(ctx context.Context, fleet site.Fleet) (*cluster, error) {
	client, err := local.Open(local.Options{Dir: filepath.Join(a.conf.StateDir, "local")})
	if err != nil {
		return nil, fault.New(fault.Usage, "fleet %s: %w", fleet.Name, err).WithHint("state_dir in ~/.config/tp/user.toml")
	}
	info, err := client.Info(ctx)
	return &cluster{Client: client, fleet: fleet, choice: connect.Choice{Transport: info.Transport}, info: info}, err
}

// registry is the hardware of a fleet: that of the site file, else what the
// fleet reports. The site file speaks of clusters, not of this machine.
func (a *app) registry(f site.Fleet, snap *slurm.Snapshot) *site.Registry {
	if r := a.conf.Registry(); r != nil && f.Kind != site.Local {
		return r.Counted(snap)
	}
	return a.conf.Measured(snap)
}

// queue submits to a cluster under this user's ledger.
func (a *app) queue(cl *cluster) (*run.Queue, error) {
	l, err := a.ledger()
	if err != nil {
		return nil, err
	}
	q := &run.Queue{Client: cl, Cluster: cl.info.Cluster, Ledger: l, User: cl.user(a), Warn: a.warn, Keeper: &durable.Keeper{Owner: "tp", Memory: filepath.Join(a.conf.StateDir, "leases")}}
	if text := os.Getenv("TP_TEST_SERVER_TIMEOUT"); text != "" { // a minute for each repetition is long for a test
		if q.ServerTimeout, err = time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// talk says something to the person; stdout is kept for results.
func (a *app) talk(format string, args ...any) {
	fmt.Fprintln(a.Err, ui.CleanLines(fmt.Sprintf(format, args...)))
}

func (a *app) warn(text string) { a.talk("warning: %s", text) }

func (a *app) now() time.Time { return a.Now() }

func (a *app) fleetName(c *cluster) string {
	if c != nil {
		return c.fleet.Name
	}
	return a.cli.Fleet
}
