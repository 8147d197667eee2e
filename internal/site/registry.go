package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
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

// Names are the series, in order.
func (r *Registry) Names() []string {
	names := make([]string, len(r.Series))
	for i, s := range r.Series {
		names[i] = s.Name
	}
	return names
}

// Find looks a series up by its name, without regard to case, or by what its
// GRES type is shortened to (h200 for nvidia_h200). A name that fits several
// or only begins one is refused by the gate admission: nothing is guessed.
func (r *Registry) Find(name string) (Series, error) {
	for _, s := range r.Series {
		if s.Name == name {
			return s, nil
		}
	}
	var alias, begins []Series
	want := strings.ToLower(name)
	for _, s := range r.Series {
		_, typ, _ := strings.Cut(s.GRES, ":")
		also := []string{strings.ToLower(s.Name), strings.ToLower(typ), shorten(s.Name), shorten(typ)}
		if slices.Contains(also, want) {
			alias = append(alias, s)
		} else if slices.ContainsFunc(also, func(a string) bool { return strings.HasPrefix(a, want) }) {
			begins = append(begins, s)
		}
	}
	if len(alias) == 1 {
		return alias[0], nil
	}
	several := append(alias, begins...)
	if len(several) > 1 {
		names := (&Registry{Series: several}).Names()
		return Series{}, fault.Gate("admission", "series %q could be %s", name, strings.Join(names, " or ")).WithHint("--profile %s", names[0])
	}
	msg := fmt.Sprintf("series %q is not in the hardware registry", name)
	near := ""
	if len(begins) == 1 {
		near = begins[0].Name
	} else {
		near = fault.Nearest(want, r.Names())
	}
	if near != "" {
		msg += fmt.Sprintf("; did you mean %s?", near)
	}
	if known := r.Names(); len(known) > 0 {
		msg += "; known: " + strings.Join(known, ", ")
	}
	return Series{}, fault.Gate("admission", "%s", msg).WithHint("tp fleet show")
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
		return 0, 0, fmt.Errorf("a node of %s has %d devices, not %d; nearest: %s:%dx%d or %s:%dx%d", s.Name, d, p.PerNode,
			s.Name, p.Nodes, d, s.Name, (p.Devices+d-1)/d, d)
	case p.Nodes > 0:
		return p.Nodes, p.PerNode, nil
	case p.Devices <= d:
		return 1, p.Devices, nil
	case p.Devices%d != 0:
		low := p.Devices / d * d
		return 0, 0, fmt.Errorf("%d is no multiple of %d, the devices of a node; nearest: %d or %d", p.Devices, d, low, low+d)
	default:
		return p.Devices / d, d, nil
	}
}
