package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/version"
	"github.com/tuneplane/tp/recipes"
)

type initCmd struct {
	Dir   string `arg:"" optional:"" default:"my-lab" help:"Directory of the new lab."`
	Name  string `help:"Project name; the directory's name without it."`
	NoGit bool   `help:"No git repository and no first commit."`
}

func (c *initCmd) Run(ctx context.Context, a *app) error {
	l, err := lab.Init(ctx, c.Dir, lab.InitOptions{Name: c.Name, NoGit: c.NoGit})
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(map[string]string{"root": l.Root, "name": l.Name})
	}
	fmt.Fprintln(a.Out, ui.Clean(l.Root))
	a.talk("cd %s && tp new my-first --method custom/custom", c.Dir)
	return nil
}

type newCmd struct {
	Name   string `arg:"" help:"Name of the experiment."`
	Method string `short:"m" default:"custom/custom" help:"Recipe to start from: tp methods."`
	Preset string `placeholder:"PRESET" help:"Fill the recipe's configuration in for a purpose: tp methods NAME lists them."`
	From   string `placeholder:"EXPERIMENT" help:"Copy another experiment instead."`
}

func (c *newCmd) Run(a *app) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	var from *lab.Experiment
	if c.From != "" {
		if from, err = l.Experiment(c.From); err != nil {
			return err
		}
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	e, err := recipes.NewExperiment(l, catalog, c.Name, recipes.New{Recipe: c.Method, Preset: c.Preset, From: from, Version: version.Version})
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(map[string]string{"experiment": e.Name, "dir": e.Dir})
	}
	fmt.Fprintln(a.Out, ui.Clean(e.Dir))
	a.talk("git add and commit it, then: tp submit %s --profile SERIES:GPUS", c.Name)
	return nil
}

type lsCmd struct{}

func (c *lsCmd) Run(a *app) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	list, err := l.Experiments()
	if err != nil {
		return err
	}
	type row struct {
		Experiment  string `json:"experiment"`
		Recipe      string `json:"recipe"`
		Lock        string `json:"lock"`
		Description string `json:"description,omitempty"`
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	var rows []row
	for _, e := range list {
		r := row{Experiment: e.Name}
		if whole, err := l.Experiment(e.Name); err == nil && whole.Job != nil {
			r.Description = whole.Job.Description
		}
		if lock, err := recipes.ReadLock(&e); err != nil {
			r.Lock = string(recipes.Malformed)
		} else {
			state, _ := catalog.Check(lock)
			r.Recipe, r.Lock = lock.Recipe.Name, string(state)
		}
		rows = append(rows, r)
	}
	if a.cli.JSON {
		return a.printJSON(rows)
	}
	t := ui.Grid{Head: []string{"experiment", "recipe", "lock", "about"}}
	for _, r := range rows {
		t.Add(r.Experiment, r.Recipe, r.Lock, r.Description)
	}
	return t.Print(a.Streams)
}

type methodsCmd struct {
	Name string `arg:"" optional:"" help:"Show this recipe whole."`
}

func (c *methodsCmd) Run(a *app) error {
	l, err := a.anyLab()
	if err != nil {
		return err
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	if c.Name == "" {
		if a.cli.JSON {
			return a.printJSON(catalog.Recipes())
		}
		_, err := io.WriteString(a.Out, catalog.List())
		return err
	}
	r, err := catalog.Get(c.Name)
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(r)
	}
	_, err = io.WriteString(a.Out, r.Describe())
	return err
}

type validateCmd struct{ jobFlags }

// Run checks everything that needs no cluster: lock, parameters, roles, and
// what would be packed.
func (c *validateCmd) Run(ctx context.Context, a *app) error {
	if c.Experiment == "" {
		return fault.New(fault.Usage, "which experiment? tp ls lists them").WithHint("tp validate EXPERIMENT")
	}
	s, how, err := a.compose(c.jobFlags)
	if err != nil {
		return err
	}
	l, err := a.lab()
	if err != nil {
		return err
	}
	sel, err := bundle.Select(ctx, bundle.Source{Root: l.Root, Dirs: s.Dirs, Exclude: s.Exclude})
	if err != nil {
		return err
	}
	man, err := bundle.Digest(ctx, sel, a.cacheDir())
	if err != nil {
		return err
	}
	if err := packed(s.Roles, man); err != nil {
		return err
	}
	warnings := append(how.Warnings, notes(sel, man)...)
	for _, w := range warnings {
		a.warn(w)
	}
	if a.cli.JSON {
		return a.printJSON(map[string]any{"experiment": s.Experiment, "valid": true, "warnings": warnings, "spec": s})
	}
	fmt.Fprintf(a.Out, "%s is valid: %s %s, roles %s, %d files\n", ui.Clean(s.Experiment), s.Recipe.Name, ui.Clean(s.Recipe.Version), roleNames(s.Roles), len(man.Files))
	return nil
}

// compose reads an experiment without regard to hardware: where no profile is
// given, any will do.
func (a *app) compose(f jobFlags) (*spec.Spec, *recipes.Composition, error) {
	conf, err := a.site()
	if err != nil {
		return nil, nil, err
	}
	l, err := a.lab()
	if err != nil {
		return nil, nil, err
	}
	e, err := l.Experiment(f.Experiment)
	if err != nil {
		return nil, nil, err
	}
	if f.UpgradeRecipe {
		if err := a.upgrade(l, e); err != nil {
			return nil, nil, err
		}
	}
	o, err := f.options(conf, a.cli.Fleet)
	if err != nil {
		return nil, nil, err
	}
	if o.Catalog, err = a.catalog(l); err != nil {
		return nil, nil, err
	}
	o.Draft = true
	if len(o.Profiles) > 0 || e.Job != nil && len(e.Job.Profile) > 0 {
		return recipes.Compose(l, e, o)
	}
	o.Profiles = []string{"any"}
	s, how, err := recipes.Compose(l, e, o)
	if err == nil { // nobody has set it
		how.Settings = slices.DeleteFunc(how.Settings, func(x recipes.Setting) bool { return x.Key == "profile" })
	}
	return s, how, err
}

// upgrade rewrites a stale lock to the recipe as it is now.
func (a *app) upgrade(l *lab.Lab, e *lab.Experiment) error {
	old, err := recipes.ReadLock(e)
	if err != nil {
		return err
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	if state, _ := catalog.Check(old); state != recipes.Stale {
		return nil
	}
	u, err := catalog.PlanUpgrade(l, e, recipes.UpgradeOptions{Version: version.Version})
	if err != nil {
		return err
	}
	if err := recipes.Apply([]*recipes.Upgrade{u}); err != nil {
		return err
	}
	a.talk("%s", rewritten(catalog, u))
	return nil
}

type versionCmd struct{}

func (c *versionCmd) Run(a *app) error {
	if a.cli.JSON {
		return json.NewEncoder(a.Out).Encode(map[string]string{"version": version.Version})
	}
	_, err := fmt.Fprintln(a.Out, "tp", version.Version)
	return err
}
