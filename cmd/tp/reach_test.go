package main

import (
	"slices"
	"testing"

	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/connect"
)

// The site file, which may not import connect, knows the same ways.
func TestTransportsAreWays(t *testing.T) {
	var names []string
	for _, w := range connect.Ways {
		names = append(names, string(w))
	}
	if !slices.Equal(names, site.Transports) {
		t.Errorf("%q and %q", names, site.Transports)
	}
}

// What --transport finds is for one command: it steers no later one, and may
// begin with what the others know.
func TestForcedWayHasItsOwnMemory(t *testing.T) {
	a := &app{cli: &cli{}, conf: &site.Config{StateDir: t.TempDir()}}
	fleet := site.Fleet{Name: "lab"}
	plain := connect.Memory{Info: slurm.Info{Cluster: "far", Dialect: "v0.0.42"}, Way: connect.Socket}
	a.known(fleet).save(plain)
	a.cli.Transport = "cli"
	if got := a.known(fleet).load(); got.Info != plain.Info || got.Way != "" {
		t.Errorf("a forced way begins with %+v", got)
	}
	forced := connect.Memory{Info: slurm.Info{Cluster: "near"}, CLIFilter: "cli_filter/lua"}
	a.known(fleet).save(forced)
	if got := a.known(fleet).load(); !got.Same(forced) {
		t.Errorf("a forced way forgets: %+v", got)
	}
	a.cli.Transport = ""
	if got := a.known(fleet).load(); !got.Same(plain) {
		t.Errorf("after a forced way: %+v", got)
	}
}
