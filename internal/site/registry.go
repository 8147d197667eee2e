package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Registry is the hardware of a cluster.
type Registry struct {
	Series []Series
	Origin string // "/etc/tp/site.toml", or "cluster" when it was asked
}

// Registry is that of the site file, nil when it has no [series].
func (c *Config) Registry() *Registry {
	if len(c.Series) == 0 {
		return nil
	}
	return &Registry{Series: c.Series, Origin: c.SitePath}
}

// Counted is the registry with the nodes of each series that a cluster has.
func (r *Registry) Counted(snap *slurm.Snapshot) *Registry {
	if snap == nil {
		return r
	}
	out := *r
	out.Series = slices.Clone(r.Series)
	for i := range out.Series {
		s := &out.Series[i]
		s.Exist = 0
		for _, n := range snap.Nodes {
			if s.Has(n) {
				s.Exist++
			}
		}
	}
	return &out
}

// Measured is the registry of what a cluster reports, asked for as the site
// file wants.
func (c *Config) Measured(snap *slurm.Snapshot) *Registry {
	r := FromSnapshot(snap).Counted(snap)
	for i := range r.Series {
		r.Series[i].Ways = c.Requests
	}
	return r
}

// Names are the series, in order.
func (r *Registry) Names() []string {
	names := make([]string, len(r.Series))
	for i, s := range r.Series {
		names[i] = s.Name
	}
	return names
}

// Find looks a series up by its name, else without regard to case by name,
// alias or GRES type, else by what the type is shortened to (h200 for
// nvidia_h200). A name that fits several, or one whole and others as their
// beginning (h100 beside h100nvl), is refused by the gate admission: nothing is
// guessed.
func (r *Registry) Find(name string) (Series, error) {
	for _, s := range r.Series {
		if s.Name == name {
			return s, nil
		}
	}
	var said, short, begins []Series
	want := strings.ToLower(name)
	for _, s := range r.Series {
		_, typ, _ := strings.Cut(s.GRES, ":")
		names := append([]string{s.Name, typ}, s.Aliases...)
		for i, n := range names {
			names[i] = strings.ToLower(n)
		}
		shorter := []string{shorten(s.Name), shorten(typ)}
		switch {
		case slices.Contains(names, want):
			said = append(said, s)
		case slices.Contains(shorter, want):
			short = append(short, s)
		case slices.ContainsFunc(append(names, shorter...), func(n string) bool { return strings.HasPrefix(n, want) }):
			begins = append(begins, s)
		}
	}
	if len(said) == 1 {
		return said[0], nil
	}
	if len(said) == 0 && len(short) == 1 && len(begins) == 0 {
		return short[0], nil
	}
	if several := slices.Concat(said, short, begins); len(several) > 1 {
		names := (&Registry{Series: several}).Names()
		return Series{}, fault.Gate("admission", "series %q could be %s", name, strings.Join(names, " or ")).WithHint("--profile %s", names[0])
	}
	return Series{}, r.unknown(name, begins)
}

// unknown says what there is instead.
func (r *Registry) unknown(name string, begins []Series) error {
	msg := fmt.Sprintf("series %q is not in the hardware registry", name)
	near := ""
	if len(begins) == 1 {
		near = begins[0].Name
	} else {
		near = fault.Nearest(strings.ToLower(name), r.Names())
	}
	if near != "" {
		msg += fmt.Sprintf("; did you mean %s?", near)
	}
	if known := r.Names(); len(known) > 0 {
		msg += "; known: " + strings.Join(known, ", ")
	}
	for _, s := range r.Series {
		if s.GRES != "" && !strings.Contains(s.GRES, ":") {
			msg += fmt.Sprintf(" (%s: its devices have no type here)", s.Name)
		}
	}
	return fault.Gate("admission", "%s", msg).WithHint("tp fleet show")
}

// Resolve says what a profile means here: nodes, devices on each (0 for a
// series without devices) and the series.
//
//	h200        the default shape
//	h200:4      four devices of one node
//	h200:16     whole nodes; above one node only multiples
//	h200:4x2    four nodes, two devices on each
//	cpu:2       two nodes
func (r *Registry) Resolve(p spec.Profile) (nodes, perNode int, s Series, err error) {
	if s, err = r.Find(p.Series); err != nil {
		var f *fault.Error
		if errors.As(err, &f) && strings.HasPrefix(f.Hint, "--profile ") { // with the roles and the count that were given
			p.Series = strings.TrimPrefix(f.Hint, "--profile ")
			f.Hint = "--profile " + p.String()
		}
		return 0, 0, s, err
	}
	nodes, perNode, err = s.shape(p)
	if err != nil {
		err = fault.Gate("admission", "profile %s: %w", p, err).WithHint("tp fleet show")
	}
	return nodes, perNode, s, err
}

func (s Series) shape(p spec.Profile) (nodes, perNode int, err error) {
	switch d := s.Devices; {
	case p.Devices == 0:
		return s.Nodes, s.PerNode, nil
	case d == 0 && p.Nodes > 0:
		return 0, 0, fmt.Errorf("%s has no devices, so %s:N counts nodes; nearest: %s:%d", s.Name, s.Name, s.Name, p.Nodes)
	case d == 0:
		return p.Devices, 0, nil
	case p.Nodes > 0 && p.PerNode > d:
		return 0, 0, fmt.Errorf("a node of %s has %d devices, not %d; nearest: %s", s.Name, d, p.PerNode,
			s.nearest(func(nodes int) string { return fmt.Sprintf("%s:%dx%d", s.Name, nodes, d) }, p.Nodes, (p.Devices+d-1)/d))
	case p.Nodes > 0:
		return p.Nodes, p.PerNode, nil
	case p.Devices <= d:
		return 1, p.Devices, nil
	case p.Devices%d != 0:
		low := p.Devices / d
		return 0, 0, fmt.Errorf("%d is no multiple of %d, the devices of a node; nearest: %s", p.Devices, d,
			s.nearest(func(nodes int) string { return fmt.Sprint(nodes * d) }, low, low+1))
	default:
		return p.Devices / d, d, nil
	}
}

// nearest offers shapes of so many nodes, as far as there are so many.
func (s Series) nearest(shape func(nodes int) string, nodes ...int) string {
	var out []string
	for _, n := range nodes {
		if s.Exist > 0 && n > s.Exist {
			n = s.Exist
		}
		if text := shape(n); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	text := strings.Join(out, " or ")
	if s.Exist > 0 && slices.Max(nodes) > s.Exist {
		text += fmt.Sprintf(" (the cluster has %d nodes of %s)", s.Exist, s.Name)
	}
	return text
}
