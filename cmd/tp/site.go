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
	"github.com/tuneplane/tp/internal/shell"
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
	if named := os.Getenv("TP_SITE"); named != "" {
		if _, err := os.Stat(named); errors.Is(err, fs.ErrNotExist) {
			os.Unsetenv("TP_SITE") // it is to be written now
		}
	}
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
	facts, why := a.facts(ctx, cl)
	if why != "" {
		a.talk("slurm.conf is not in it: %s", why)
	}
	text := site.Example(snap, facts)
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
	} else if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Usage, "%s: %s is no directory", path, filepath.Dir(path)).WithHint("mkdir -p %s", shell.Quote(filepath.Dir(path)))
	} else if err != nil {
		return fault.New(fault.Internal, "the site file cannot be written: %w", err)
	}
	fmt.Fprintln(a.Out, ui.Clean(path))
	a.talk("export TP_SITE=%s, or install it as /etc/tp/site.toml", path)
	return nil
}

type siteCheckCmd struct {
	File string `arg:"" optional:"" help:"File to check; the one in use without it."`
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
	list := siteFile(conf)
	if l, err := a.ledger(); err != nil {
		return err
	} else if err := l.Ready(); err != nil {
		list = append(list, found(site.Bad, "run root", "run_root in the site file or in ~/.config/tp/user.toml", "%v", err))
	}
	lives := a.lives(ctx, conf, false)
	var answered []site.Live
	for _, l := range lives {
		list = append(list, l.reached())
		if l.err == nil && !l.Snap.Info.Local { // the site file speaks of clusters
			answered = append(answered, l.Live)
		}
	}
	return a.findings(append(list, conf.Check(answered)...))
}

// siteFile says which files are read.
func siteFile(conf *site.Config) []site.Finding {
	list := []site.Finding{found(site.Note, "site file", "tp site init", "none: everything comes from the cluster and from defaults")}
	if conf.SitePath != "" {
		list[0] = found(site.Good, "site file", "", "%s is well formed", conf.SitePath)
	}
	if conf.UserPath != "" {
		list = append(list, found(site.Good, "user file", "", "%s is well formed", conf.UserPath))
	}
	for _, note := range conf.Notes {
		list = append(list, found(site.Note, "site file", "", "%s", note))
	}
	return list
}

// reached says how a fleet is talked to, or why not.
func (l live) reached() site.Finding {
	topic := "fleet " + l.name
	if l.err != nil {
		fix := "tp doctor"
		var f *fault.Error
		if errors.As(l.err, &f) && f.Hint != "" {
			fix = f.Hint
		}
		return found(site.Bad, topic, fix, "%v", l.err)
	}
	return found(site.Good, topic, "", "answers: %s", l.cl.choice.Transport)
}
