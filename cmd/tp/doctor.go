package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm/connect"
)

type doctorCmd struct{}

// Run checks tools, files, object store and cluster. Nothing is left behind.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	var list []finding
	for _, t := range []struct{ name, hint string }{
		{"git", "install git: bundles are what git lists"},
		{"bash", "install bash"},
	} {
		path, err := exec.LookPath(t.name)
		list = append(list, finding{err == nil, t.name + ": " + either(err == nil, path, "not found"), either(err == nil, "", t.hint)})
	}
	conf, err := a.site()
	if err != nil {
		return a.findings(append(list, finding{false, err.Error(), "tp site check"}))
	}
	fleet, err := conf.Fleet(a.cli.Fleet)
	if err == nil && fleet.Kind == site.Local {
		for _, name := range []string{"tar", "zstd", "sha256sum"} { // jobs unpack their code here
			path, err := exec.LookPath(name)
			list = append(list, finding{err == nil, name + ": " + either(err == nil, path, "not found"), either(err == nil, "", "install "+name+": jobs unpack their code with it")})
		}
	} else if err == nil {
		list = append(list, a.checkWays(ctx, fleet)...)
		for _, name := range []string{"squeue", "scontrol"} {
			path, err := exec.LookPath(name)
			list = append(list, finding{true, name + ": " + either(err == nil, path, "not found; jobs are looked up through slurmrestd and accounting only"), ""})
		}
	}
	list = append(list, finding{true, "site file: " + either(conf.SitePath != "", conf.SitePath, "none"), ""})
	list = append(list, a.checkRunRoot(), a.checkStore(ctx))
	list = append(list, a.checkFleets(ctx, conf)...)
	return a.findings(list)
}

// checkWays tries every way to the cluster; one is enough, and checkFleets says
// whether there is one.
func (a *app) checkWays(ctx context.Context, fleet site.Fleet) []finding {
	f, err := a.reaching(fleet)
	if err != nil {
		return []finding{{false, err.Error(), ""}}
	}
	var list []finding
	for _, way := range connect.Survey(ctx, f, a.circumstances(fleet, a.known(fleet).load())) {
		text := way.What + " works"
		if way.Err != nil {
			text = "not by " + way.String()
		}
		list = append(list, finding{true, fmt.Sprintf("way %s of fleet %s: %s", way.Way, fleet.Name, text), ""})
	}
	return list
}

// checkRunRoot makes a run directory's parent and looks at its file system.
func (a *app) checkRunRoot() finding {
	l, err := a.ledger()
	if err != nil {
		return finding{false, "run root: " + err.Error(), ""}
	}
	if err := l.Probe(); err != nil {
		return finding{false, "run root " + a.conf.RunRoot + ": " + err.Error(), "run_root in ~/.config/tp/user.toml"}
	}
	return finding{true, "run root " + a.conf.RunRoot + " takes exclusive files; all nodes must share it", ""}
}

// checkStore writes, finds and removes a small object.
func (a *app) checkStore(ctx context.Context) finding {
	st, err := a.objects()
	if err != nil {
		return finding{false, err.Error(), "[objects] in the site file"}
	}
	name := "probe-" + plan.NewRunID()
	if err := st.Put(ctx, name, []byte("tp doctor\n")); err != nil {
		return finding{false, fmt.Sprintf("object store %s: %v", st, err), "[objects] in the site file"}
	}
	has, err := st.Has(ctx, []string{name})
	if derr := st.Delete(ctx, name); err == nil {
		err = derr
	}
	if err != nil || !has[0] {
		return finding{false, fmt.Sprintf("object store %s: an object could be written but not found and removed: %v", st, err), ""}
	}
	return finding{true, fmt.Sprintf("object store %s: written, found, removed", st), ""}
}

func either(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}
