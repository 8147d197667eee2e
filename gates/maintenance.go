package gates

import (
	"fmt"
	"slices"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Maintenance waits when a maintenance reservation covers the time a pool needs.
type Maintenance struct{}

// Name is "maintenance".
func (Maintenance) Name() string { return "maintenance" }

// Check compares each MAINT reservation with now + time limit. A reservation
// that leaves enough other nodes free is no reason to wait.
func (Maintenance) Check(s Subject) []Verdict {
	var out []Verdict
	for _, r := range s.Snapshot.Reservations {
		if !slices.Contains(r.Flags, "MAINT") || r.End.Before(s.Now) {
			continue
		}
		hosts, err := slurm.Expand(r.Nodes)
		if err != nil {
			continue
		}
		covered := map[string]bool{}
		for _, h := range hosts {
			covered[h] = true
		}
		for _, p := range s.Pools {
			limit := time.Duration(p.TimeMinutes) * time.Minute
			if p.TimeMinutes > 0 && s.Now.Add(limit).Before(r.Start) {
				continue
			}
			left := 0
			for _, n := range s.Snapshot.NodesIn(p.Partition) {
				if shaped(n, p) && n.Usable() && !covered[n.Name] {
					left++
				}
			}
			if left < p.Nodes {
				limit := "for " + slurm.Minutes(p.TimeMinutes).String()
				if p.TimeMinutes < 0 {
					limit = "without a time limit, which nothing before it is long enough for,"
				}
				remedy := "it waits until the maintenance is over"
				if before := int(r.Start.Sub(s.Now).Minutes()); before > 1 {
					remedy = s.option("--time", p, slurm.Minutes(before-1)) + " fits before it"
				}
				out = append(out, Verdict{Gate: "maintenance", Code: "maintenance", Level: Wait, Pool: p.Name,
					Asked: fmt.Sprintf("%d nodes %s", p.Nodes, limit),
					Found: fmt.Sprintf("reservation %s from %s to %s leaves %d", r.Name, r.Start.Format("2006-01-02 15:04"), r.End.Format("2006-01-02 15:04"), left),
					Until: r.End, Remedy: remedy})
			}
		}
	}
	return out
}
