package main

import (
	"fmt"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/version"
	"github.com/tuneplane/tp/recipes"
)

type recipeCmd struct {
	Status  recipeStatusCmd  `cmd:"" help:"Show the state of recipe locks; exit code 2 unless all can be submitted."`
	Upgrade recipeUpgradeCmd `cmd:"" help:"Rewrite stale recipe locks: all of those named, or none."`
}

// which are the experiments that a command is about.
type which struct {
	Experiment string `arg:"" optional:"" help:"Experiment: a directory under experiments/."`
	All        bool   `help:"All experiments of the lab."`
}

func (w *which) experiments(a *app, command string) (*lab.Lab, []lab.Experiment, error) {
	l, err := a.lab()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case w.All && w.Experiment != "":
		return nil, nil, fault.New(fault.Usage, "either an experiment or --all")
	case w.All:
		list, err := l.Experiments()
		return l, list, err
	case w.Experiment == "":
		return nil, nil, fault.New(fault.Usage, "which experiment? tp ls lists them").WithHint("tp recipe %s EXPERIMENT, or --all", command)
	}
	e, err := l.Experiment(w.Experiment)
	if err != nil {
		return nil, nil, err
	}
	return l, []lab.Experiment{*e}, nil
}

type recipeStatusCmd struct{ which }

// lockRow is an experiment's lock as tp recipe status shows it.
type lockRow struct {
	Experiment string            `json:"experiment"`
	Recipe     string            `json:"recipe,omitempty"`
	Framework  string            `json:"framework,omitempty"`
	State      recipes.LockState `json:"state"`
	Reasons    []string          `json:"reasons,omitempty"`
	Remedy     string            `json:"remedy,omitempty"`
}

func (c *recipeStatusCmd) Run(a *app) error {
	l, list, err := c.experiments(a, "status")
	if err != nil {
		return err
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	rows, bad := []lockRow{}, 0
	for _, e := range list {
		r := lockState(catalog, &e)
		if r.Remedy != "" {
			bad++
		}
		rows = append(rows, r)
	}
	if a.cli.JSON {
		if err := a.printJSON(rows); err != nil {
			return err
		}
	} else {
		t := ui.Grid{Head: []string{"experiment", "recipe", "framework", "lock", "why"}}
		for _, r := range rows {
			why := ""
			if len(r.Reasons) > 0 {
				why = r.Reasons[0]
			}
			t.Add(r.Experiment, r.Recipe, r.Framework, string(r.State), why)
		}
		if err := t.Print(a.Streams); err != nil {
			return err
		}
	}
	if bad > 0 {
		first := rows[0]
		for _, r := range rows {
			if r.Remedy != "" {
				first = r
				break
			}
		}
		return fault.New(fault.Usage, "%d of %d locks cannot be submitted", bad, len(rows)).WithHint("%s", first.Remedy)
	}
	return nil
}

// lockState is how one lock stands, with what to do about it.
func lockState(catalog *recipes.Catalog, e *lab.Experiment) lockRow {
	r := lockRow{Experiment: e.Rel}
	lock, err := recipes.ReadLock(e)
	if err != nil {
		r.State, r.Reasons, r.Remedy = recipes.Malformed, []string{err.Error()}, fmt.Sprintf("tp recipe upgrade %s --recipe NAME", e.Name)
		return r
	}
	r.State, r.Reasons = catalog.Check(lock)
	r.Recipe, r.Framework = lock.Recipe.Name, lock.Framework.Kind+" "+lock.Framework.Version
	switch r.State {
	case recipes.Stale:
		r.Remedy = "tp recipe upgrade " + e.Name
	case recipes.Removed:
		r.Remedy = "tp recipe upgrade " + e.Name + " --framework-version VERSION"
	case recipes.Malformed:
		r.Remedy = "tp recipe upgrade " + e.Name + " --recipe NAME"
	}
	return r
}

type recipeUpgradeCmd struct {
	which
	DryRun           bool   `help:"Show what would change and write nothing."`
	Recipe           string `placeholder:"NAME" help:"Bind this recipe, also in place of another tool's lock or none."`
	FrameworkVersion string `placeholder:"VERSION" help:"Bind this version of the framework: tp methods NAME lists them."`
}

// Run plans everything before it writes anything.
func (c *recipeUpgradeCmd) Run(a *app) error {
	l, list, err := c.experiments(a, "upgrade")
	if err != nil {
		return err
	}
	if c.All && (c.Recipe != "" || c.FrameworkVersion != "") {
		return fault.New(fault.Usage, "--recipe and --framework-version are for one experiment, not for --all")
	}
	catalog, err := a.catalog(l)
	if err != nil {
		return err
	}
	var all []*recipes.Upgrade
	for i := range list {
		e, err := l.Experiment(list[i].Rel)
		if err != nil {
			return err
		}
		u, err := catalog.PlanUpgrade(l, e, recipes.UpgradeOptions{Recipe: c.Recipe, FrameworkVersion: c.FrameworkVersion, Version: version.Version})
		if err != nil {
			return err
		}
		all = append(all, u)
	}
	if !c.DryRun {
		if err := recipes.Apply(all); err != nil {
			return err
		}
	}
	if a.cli.JSON {
		return a.printJSON(map[string]any{"dry_run": c.DryRun, "locks": all})
	}
	for _, u := range all {
		switch {
		case !u.Needed() && u.State == recipes.Foreign:
			fmt.Fprintf(a.Out, "%s is another tool's and stays; --recipe NAME takes it over\n", ui.Clean(u.Rel))
		case !u.Needed():
			fmt.Fprintf(a.Out, "%s is current\n", ui.Clean(u.Rel))
		case c.DryRun:
			fmt.Fprintf(a.Out, "%s would change:\n", ui.Clean(u.Rel))
			for _, line := range u.Changes {
				fmt.Fprintf(a.Out, "  %s\n", ui.Clean(line))
			}
		default:
			fmt.Fprintln(a.Out, ui.Clean(rewritten(catalog, u)))
		}
	}
	return nil
}

func rewritten(catalog *recipes.Catalog, u *recipes.Upgrade) string {
	r, err := catalog.Get(u.Recipe)
	if err != nil {
		return fmt.Sprintf("%s/%s is rewritten; commit it.", u.Rel, lab.LockName)
	}
	return fmt.Sprintf("%s/%s is rewritten for %s %s; commit it.", u.Rel, lab.LockName, r.Name, r.Version)
}
