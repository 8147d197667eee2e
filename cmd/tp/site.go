package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/ui"
)

type siteCmd struct {
	Init  siteInitCmd  `cmd:"" help:"Write a site file by asking the cluster."`
	Check siteCheckCmd `cmd:"" help:"Read the site file and compare it with the cluster."`
}

type siteInitCmd struct {
	File string `arg:"" optional:"" help:"File to write; stdout without it. An existing one is left alone."`
}

func (c *siteInitCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx, a.cli.Fleet)
	if err != nil {
		return err
	}
	snap, err := cl.Snapshot(ctx)
	if err != nil {
		return reach(err, cl.fleet)
	}
	if snap.Info.Local {
		return fault.New(fault.Usage, "fleet %s is this machine alone and needs no site file", cl.fleet.Name).WithHint("tp site init --fleet NAME, where a Slurm cluster is reached")
	}
	text := site.Example(snap)
	if c.File == "" {
		_, err := a.Out.Write(text)
		return err
	}
	path, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	if err := durable.Create(path, text, 0o644); errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "%s exists and is left as it is", path).WithHint("tp site init prints to stdout without a file name")
	} else if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, ui.Clean(path))
	a.talk("export TP_SITE=%s, or install it as /etc/tp/site.toml", path)
	return nil
}

type siteCheckCmd struct {
	File string `arg:"" optional:"" help:"File to check; the one in use without it."`
}

// finding is one line of a check.
type finding struct {
	OK   bool   `json:"ok"`
	What string `json:"what"`
	Hint string `json:"hint,omitempty"`
}

func (c *siteCheckCmd) Run(ctx context.Context, a *app) error {
	if c.File != "" {
		path, err := filepath.Abs(c.File)
		if err != nil {
			return err
		}
		os.Setenv("TP_SITE", path)
	}
	conf, err := a.site()
	if err != nil {
		return err
	}
	var list []finding
	if conf.SitePath == "" {
		list = append(list, finding{true, "no site file: everything comes from the cluster and from defaults", "tp site init"})
	} else {
		list = append(list, finding{true, conf.SitePath + " is well formed", ""})
	}
	for _, note := range conf.Notes {
		list = append(list, finding{true, note, ""})
	}
	list = append(list, a.checkFleets(ctx, conf)...)
	return a.findings(list)
}

// checkFleets compares every series with what each fleet reports, or the one
// that --fleet names.
func (a *app) checkFleets(ctx context.Context, conf *site.Config) []finding {
	var list []finding
	names := conf.Names()
	if a.cli.Fleet != "" {
		names = []string{a.cli.Fleet}
	}
	for _, name := range names {
		cl, err := a.connect(ctx, name)
		if err != nil {
			list = append(list, finding{false, "fleet " + name + ": " + err.Error(), "tp doctor"})
			continue
		}
		list = append(list, finding{true, "fleet " + cl.fleet.Name + " answers: " + cl.choice.Transport, ""})
		for _, other := range cl.choice.Others() {
			list = append(list, finding{true, "fleet " + cl.fleet.Name + " not by " + other, ""})
		}
		for _, text := range cl.choice.Warnings {
			list = append(list, finding{true, text, ""})
		}
		snap, err := cl.Snapshot(ctx)
		if err != nil {
			list = append(list, finding{false, "fleet " + cl.fleet.Name + ": " + err.Error(), ""})
			continue
		}
		for _, s := range conf.Series {
			if snap.Info.Local {
				break // the site file speaks of clusters
			}
			nodes := 0
			for _, n := range snap.Nodes {
				if s.Has(n) {
					nodes++
				}
			}
			f := finding{nodes > 0, fmt.Sprintf("series %s (%s): %d nodes on fleet %s", s.Name, s.Origin, nodes, cl.fleet.Name), ""}
			if nodes == 0 {
				f.Hint = "tp fleet show: compare gres, partitions and feature"
			}
			list = append(list, f)
			for _, p := range s.Partitions {
				if _, ok := snap.Partition(p); !ok {
					list = append(list, finding{false, fmt.Sprintf("series %s names partition %s, which fleet %s does not have", s.Name, p, cl.fleet.Name), "tp fleet show"})
				}
			}
		}
	}
	return list
}

// findings prints a check; one that is not ok makes the command fail.
func (a *app) findings(list []finding) error {
	bad := 0
	for _, f := range list {
		if !f.OK {
			bad++
		}
	}
	if a.cli.JSON {
		if err := a.printJSON(list); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			mark := a.Paint(ui.Green, "ok  ")
			if !f.OK {
				mark = a.Paint(ui.Red, "FAIL")
			}
			fmt.Fprintf(a.Out, "%s %s\n", mark, ui.CleanLines(f.What))
			if f.Hint != "" {
				fmt.Fprintf(a.Out, "     → %s\n", ui.Clean(f.Hint))
			}
		}
	}
	if bad > 0 {
		return fault.New(fault.Usage, "%d of %d checks failed", bad, len(list))
	}
	return nil
}
