package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
)

// SeriesUse is what a series has and what is free of it now.
type SeriesUse struct {
	Series     string   `json:"series"`
	Nodes      int      `json:"nodes"`
	Usable     int      `json:"usable_nodes"`
	FreeNodes  int      `json:"free_nodes"` // wholly free
	Devices    int      `json:"devices"`
	Free       int      `json:"free_devices"` // on usable nodes
	PerNode    int      `json:"devices_per_node"`
	Partitions []string `json:"partitions"`
}

// Use counts nodes and devices of every series.
func Use(registry *site.Registry, snap *slurm.Snapshot) []SeriesUse {
	var out []SeriesUse
	for _, name := range registry.Names() {
		s, err := registry.Find(name)
		if err != nil {
			continue
		}
		u := SeriesUse{Series: s.Name, PerNode: s.Devices, Partitions: s.Partitions}
		gres, typ, _ := strings.Cut(s.GRES, ":")
		for _, n := range snap.Nodes {
			if !s.Has(n) {
				continue
			}
			has, used := slurm.Count(n.GRES, gres, typ), slurm.Count(n.GRESUsed, gres, typ)
			u.Nodes++
			u.Devices += has
			if n.Usable() {
				u.Usable++
				u.Free += max(0, has-used)
				if n.CPUsUsed == 0 && used == 0 {
					u.FreeNodes++
				}
			}
		}
		out = append(out, u)
	}
	return out
}

// Series writes one line per series.
func Series(w io.Writer, registry *site.Registry, snap *slurm.Snapshot) {
	rows := [][]string{{"series", "nodes", "usable", "wholly free", "devices free", "per node", "partitions"}}
	for _, u := range Use(registry, snap) {
		rows = append(rows, []string{u.Series, fmt.Sprint(u.Nodes), fmt.Sprint(u.Usable), fmt.Sprint(u.FreeNodes),
			fmt.Sprintf("%d of %d", u.Free, u.Devices), fmt.Sprint(u.PerNode), strings.Join(u.Partitions, ",")})
	}
	ui.Table(w, "", rows)
}

// Partitions writes one line per partition.
func Partitions(w io.Writer, snap *slurm.Snapshot) {
	rows := [][]string{{"partition", "state", "nodes", "max time", "default time", "accounts", "QOS"}}
	for _, p := range snap.Partitions {
		name := p.Name
		if p.Default {
			name += " (default)"
		}
		rows = append(rows, []string{name, p.State, p.Nodes, limit(p.MaxTime), limit(p.DefaultTime), allowed(p.AllowAccounts, p.DenyAccounts), allowed(p.AllowQOS, p.DenyQOS)})
	}
	ui.Table(w, "", rows)
}

// Nodes writes one line per node that cannot be used, with its reason.
func Nodes(w io.Writer, snap *slurm.Snapshot) {
	rows := [][]string{{"node", "state", "reason"}}
	for _, n := range snap.Nodes {
		if !n.Usable() {
			rows = append(rows, []string{n.Name, strings.Join(append([]string{n.State}, n.Flags...), "+"), n.Reason})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		ui.Table(w, "", rows)
	}
}

func limit(m slurm.Minutes) string {
	if m == 0 {
		return "none"
	}
	return m.String()
}

func allowed(allow, deny []string) string {
	switch {
	case len(allow) > 0:
		return strings.Join(allow, ",")
	case len(deny) > 0:
		return "not " + strings.Join(deny, ",")
	}
	return "all"
}
