package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/view"
	"github.com/tuneplane/tp/slurm/script"
)

type planCmd struct {
	jobFlags
	Show []string `placeholder:"PART" help:"Print only script, request, manifest, env, spec, config or provenance."`
}

func (c *planCmd) Run(ctx context.Context, a *app) error {
	r, err := a.preview(ctx, c.jobFlags)
	if err != nil {
		return err
	}
	if err := a.keep(r); err != nil {
		return err
	}
	_, blocked := plan.Confirm(r.plan, a.now())
	switch {
	case len(c.Show) > 0:
		for _, part := range c.Show {
			if err := a.part(r, part); err != nil {
				return err
			}
		}
	case a.cli.JSON:
		if err := a.printJSON(r.plan); err != nil {
			return err
		}
	default:
		view.Plan(a.Out, a.Width, r.plan, a.now())
		if blocked == nil {
			fmt.Fprintf(a.Out, "\n  tp submit --plan %s\n", r.plan.Short())
		}
	}
	return blocked
}

// preview walks the road for an experiment that must be named.
func (a *app) preview(ctx context.Context, f jobFlags) (*road, error) {
	if f.Experiment == "" {
		return nil, fault.New(fault.Usage, "which experiment? tp ls lists them").WithHint("tp plan EXPERIMENT --profile SERIES:GPUS")
	}
	return a.walk(ctx, f, start{runID: plan.NewRunID()})
}

type renderCmd struct {
	jobFlags
	Explain bool `help:"Say behind each directive where it comes from; the script stays valid."`
}

// Run prints the batch script of a run that is staged and waits for sbatch: the
// bundle is in the store and the run directory exists, so that the script does
// all by itself.
func (c *renderCmd) Run(ctx context.Context, a *app) error {
	if err := a.textOnly("tp render"); err != nil {
		return err
	}
	r, err := a.preview(ctx, c.jobFlags)
	if err != nil {
		return err
	}
	staged, err := a.stage(ctx, r)
	if err != nil {
		return err
	}
	if err := run.Rendered(a.record, staged); err != nil {
		return err
	}
	text := r.plan.Fixed.Request.Script
	if c.Explain {
		if text, err = script.Explain(text, r.plan.Fixed.Request, r.plan.Origin); err != nil {
			return err
		}
	}
	a.talk("Run %s is staged in %s; sbatch of this script starts it.", r.plan.Fixed.RunID, r.plan.Fixed.RunDir)
	_, err = fmt.Fprint(a.Out, text)
	return err
}

// parts of a plan that --show prints.
var parts = []string{"script", "request", "manifest", "env", "spec", "config", "provenance"}

// show prints the preview and the parts asked for on stderr: stdout is for the
// result of what follows.
func (a *app) show(p *plan.Plan, names []string) error {
	view.Plan(a.Err, a.ErrWidth, p, a.now())
	for _, name := range names {
		text, err := partText(p, name, nil)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Err, "\n---- %s\n%s", name, text)
	}
	return nil
}

func (a *app) part(r *road, name string) error {
	text, err := partText(r.plan, name, r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

func partText(p *plan.Plan, name string, r *road) (string, error) {
	var b strings.Builder
	var v any
	switch name {
	case "script":
		return p.Fixed.Request.Script, nil
	case "env":
		origin := map[string]string{}
		for _, e := range p.Fixed.Spec.Env {
			origin[e.Name] = e.Origin
		}
		rows := [][]string{{"variable", "value", "from"}}
		for _, e := range p.Fixed.Request.Env {
			from := origin[e.Name]
			if from == "" {
				from = "caller"
			}
			rows = append(rows, []string{e.Name, e.Value, from})
		}
		ui.Table(&b, "", rows)
		return b.String(), nil
	case "config":
		rows := [][]string{{"setting", "value", "from"}}
		for _, s := range p.Observed.Settings {
			rows = append(rows, []string{s.Key, s.Value, s.Origin})
		}
		ui.Table(&b, "", rows)
		return b.String(), nil
	case "request":
		req := *p.Fixed.Request
		req.Script = fmt.Sprintf("(%d bytes: --show script)", len(req.Script))
		v = req
	case "manifest":
		v = p.Fixed.Bundle
		if r != nil {
			v = r.manifest
		}
	case "spec":
		v = p.Fixed.Spec
	case "provenance":
		v = p.Observed.Provenance
	default:
		err := fault.New(fault.Usage, "--show %q: expected one of %s", name, strings.Join(parts, ", "))
		if near := fault.Nearest(name, parts); near != "" {
			err = err.WithHint("--show %s", near)
		}
		return "", err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	return string(text) + "\n", err
}
