package main

import (
	"context"
	"fmt"

	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/view"
)

type fleetCmd struct {
	Ls   fleetLsCmd   `cmd:"" help:"List the fleets of the site file."`
	Show fleetShowCmd `cmd:"" default:"withargs" help:"Show series, partitions and nodes of one fleet."`
}

type fleetLsCmd struct{}

func (c *fleetLsCmd) Run(ctx context.Context, a *app) error {
	conf, err := a.site()
	if err != nil {
		return err
	}
	type row struct {
		Name      string `json:"name"`
		Kind      string `json:"kind"`
		URL       string `json:"url,omitempty"`
		Reachable bool   `json:"reachable"`
		Transport string `json:"transport,omitempty"`
		Release   string `json:"release,omitempty"`
		Error     string `json:"error,omitempty"`
	}
	var rows []row
	for _, name := range conf.Names() {
		f, err := conf.Fleet(name)
		if err != nil {
			return err
		}
		r := row{Name: f.Name, Kind: f.Kind, URL: f.URL}
		if cl, err := a.connect(ctx, name); err != nil {
			r.Error = err.Error()
		} else {
			r.Reachable, r.Transport, r.Release = true, cl.choice.Transport, cl.info.Release
		}
		rows = append(rows, r)
	}
	if a.cli.JSON {
		return a.printJSON(rows)
	}
	t := ui.Grid{Head: []string{"fleet", "kind", "Slurm", "way"}}
	for _, r := range rows {
		way := r.Transport
		if r.Error != "" {
			way = r.Error
		}
		t.Add(r.Name, r.Kind, r.Release, way)
	}
	return t.Print(a.Streams)
}

type fleetShowCmd struct {
	Name string `arg:"" optional:"" help:"Fleet; the default one without it."`
}

func (c *fleetShowCmd) Run(ctx context.Context, a *app) error {
	if c.Name == "" {
		c.Name = a.cli.Fleet
	}
	cl, err := a.connect(ctx, c.Name)
	if err != nil {
		return err
	}
	snap, err := cl.Snapshot(ctx)
	if err != nil {
		return reach(err, cl.fleet)
	}
	registry := a.registry(cl.fleet, snap)
	if a.cli.JSON {
		return a.printJSON(map[string]any{"fleet": cl.fleet.Name, "info": snap.Info, "series": view.Use(registry, snap), "partitions": snap.Partitions, "nodes": snap.Nodes, "reservations": snap.Reservations})
	}
	release := ""
	if snap.Info.Release != "" {
		release = ", Slurm " + snap.Info.Release
	}
	fmt.Fprintf(a.Out, "%s\n\n", ui.Clean(fmt.Sprintf("%s: cluster %s%s, %s", cl.fleet.Name, snap.Info.Cluster, release, cl.choice.Transport)))
	view.Series(a.Out, registry, snap)
	fmt.Fprintln(a.Out)
	view.Partitions(a.Out, snap)
	view.Nodes(a.Out, snap)
	return nil
}
