package gates

import (
	"fmt"
	"strings"
)

// Offline blocks a pool whose series has no node that is up.
type Offline struct{}

// Name is "offlineSeries".
func (Offline) Name() string { return "offlineSeries" }

// Check needs at least one usable node per pool.
func (Offline) Check(s Subject) []Verdict {
	var out []Verdict
	for _, p := range s.Pools {
		suited, usable, why := 0, 0, ""
		for _, n := range s.Snapshot.NodesIn(p.Partition) {
			if !shaped(n, p) {
				continue
			}
			suited++
			if n.Usable() {
				usable++
			} else if why == "" {
				why = fmt.Sprintf("%s is %s", n.Name, strings.Join(append([]string{n.State}, n.Flags...), "+"))
				if n.Reason != "" {
					why += " (" + n.Reason + ")"
				}
			}
		}
		if suited > 0 && usable == 0 {
			out = append(out, Verdict{Gate: "offlineSeries", Code: "offlineSeries", Level: Block, Pool: p.Name,
				Asked: "series " + p.Series, Found: fmt.Sprintf("none of its %d nodes is up; %s", suited, why), Remedy: "tp fleet show"})
		}
	}
	return out
}
