package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Profile is one --profile expression: [ROLE[,ROLE…]=]SERIES[:N|:NODESxPER].
type Profile struct {
	Roles   []string `json:"roles,omitempty"` // empty: every role of the recipe
	Series  string   `json:"series"`
	Devices int      `json:"devices,omitempty"` // total; 0 when not given
	Nodes   int      `json:"nodes,omitempty"`   // only from NODESxPER
	PerNode int      `json:"per_node,omitempty"`
}

// String is the expression again.
func (p Profile) String() string {
	s := p.Series
	if len(p.Roles) > 0 {
		s = strings.Join(p.Roles, ",") + "=" + s
	}
	switch {
	case p.Nodes > 0:
		s += fmt.Sprintf(":%dx%d", p.Nodes, p.PerNode)
	case p.Devices > 0:
		s += ":" + strconv.Itoa(p.Devices)
	}
	return s
}

// MaxDevices bounds what one expression may ask for; more is a typing error.
const MaxDevices = 1 << 20

// ParseProfile reads one expression. It knows no registry: whether the series
// exists and the number fits is decided by the hardware registry.
func ParseProfile(text string) (Profile, error) {
	bad := func(why string) (Profile, error) {
		return Profile{}, fmt.Errorf("--profile %q: %s; expected [ROLE[,ROLE]=]SERIES[:GPUS] or SERIES:NODESxGPUS, such as train=h200:8", text, why)
	}
	var p Profile
	rest := text
	if roles, series, ok := strings.Cut(text, "="); ok {
		for _, r := range strings.Split(roles, ",") {
			r = strings.TrimSpace(r)
			if r == "" {
				return bad("a role is empty")
			}
			p.Roles = append(p.Roles, r)
		}
		rest = series
	}
	name, count, hasCount := strings.Cut(rest, ":")
	p.Series = strings.TrimSpace(name)
	if p.Series == "" {
		return bad("the series is missing")
	}
	if strings.ContainsAny(p.Series, "=,: \t") {
		return bad("the series has a character that no series has")
	}
	if !hasCount {
		return p, nil
	}
	if nodes, per, ok := strings.Cut(count, "x"); ok {
		n, err1 := strconv.Atoi(nodes)
		g, err2 := strconv.Atoi(per)
		if err1 != nil || err2 != nil || n < 1 || g < 1 || n > MaxDevices || g > MaxDevices || n*g > MaxDevices {
			return bad(fmt.Sprintf("%q is no NODESxGPUS", count))
		}
		p.Nodes, p.PerNode, p.Devices = n, g, n*g
		return p, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxDevices {
		return bad(fmt.Sprintf("%q is no count of devices", count))
	}
	p.Devices = n
	return p, nil
}
