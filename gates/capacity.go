package gates

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Capacity asks whether the cluster can ever run the pools together
// (capacity.neverFits blocks), whether it can now (capacity waits), and whether
// its components may keep each other from it (capacity.deadlock warns).
type Capacity struct{}

// Name is "capacity".
func (Capacity) Name() string { return "capacity" }

// Check counts distinct nodes over all pools: components never share a node.
func (Capacity) Check(s Subject) []Verdict {
	var out []Verdict
	for _, p := range s.Pools {
		nodes := 0 // of its component, which is what Slurm limits
		for _, q := range s.Pools {
			if q.Component == p.Component {
				nodes += q.Nodes
			}
		}
		out = append(out, limits(s, p, nodes)...)
	}
	if len(out) > 0 {
		return out
	}
	if v, short := together(s, "capacity.neverFits", Block, "could ever run it", func(n slurm.Node, p spec.Pool) bool { return shaped(n, p) }); short {
		v.Remedy = neverFitsRemedy(s, v.Pool)
		return []Verdict{v}
	}
	warn := deadlock(s)
	if v, short := together(s, "capacity.down", Wait, "usable", func(n slurm.Node, p spec.Pool) bool { return shaped(n, p) && n.Usable() }); short {
		v.Remedy = "tp fleet show"
		return append([]Verdict{v}, warn...)
	}
	if v, short := together(s, "capacity.busy", Wait, "free now", free); short {
		v.Remedy = "it starts when nodes become free"
		if s.Snapshot.Info.Local {
			v = taken(s, v)
		}
		return append([]Verdict{v}, warn...)
	}
	return warn
}

// limits are the rules of one pool that no waiting changes; nodes are those of
// its whole component.
func limits(s Subject, p spec.Pool, nodes int) []Verdict {
	snap := s.Snapshot
	never := func(asked, found, remedy string) Verdict {
		return Verdict{Gate: "capacity", Code: "capacity.neverFits", Level: Block, Pool: p.Name, Asked: asked, Found: found, Remedy: remedy}
	}
	var out []Verdict
	part, ok := snap.Partition(p.Partition)
	if !ok {
		return nil // admission says so
	}
	if part.MaxTime > 0 && (p.TimeMinutes > int(part.MaxTime) || p.TimeMinutes < 0) {
		out = append(out, never("time "+slurm.Minutes(p.TimeMinutes).String(), fmt.Sprintf("partition %s allows %s", p.Partition, part.MaxTime), s.option("--time", p, part.MaxTime)))
	}
	if part.MaxNodes > 0 && nodes > part.MaxNodes {
		out = append(out, never(fmt.Sprintf("%d nodes", nodes), fmt.Sprintf("partition %s allows %d nodes per job", p.Partition, part.MaxNodes), "tp fleet show"))
	}
	if nodes < part.MinNodes {
		out = append(out, never(fmt.Sprintf("%d nodes", nodes), fmt.Sprintf("partition %s takes jobs of at least %d nodes", p.Partition, part.MinNodes), "tp fleet show"))
	}
	if part.MaxCPUsPerNode > 0 && p.CPUsPerNode > part.MaxCPUsPerNode {
		out = append(out, never(fmt.Sprintf("%d CPUs per node", p.CPUsPerNode), fmt.Sprintf("partition %s allows %d (MaxCPUsPerNode)", p.Partition, part.MaxCPUsPerNode),
			s.option("--cpus-per-node", p, part.MaxCPUsPerNode)))
	}
	if part.MaxMemPerNode > 0 && slurm.MiB(p.MemoryMiB) > part.MaxMemPerNode {
		out = append(out, never(slurm.MiB(p.MemoryMiB).String()+" per node", fmt.Sprintf("partition %s allows %s (MaxMemPerNode)", p.Partition, part.MaxMemPerNode),
			s.option("--mem", p, part.MaxMemPerNode)))
	}
	p = counted(p)
	name, typ := gresName(p.GRES)
	var gpus, cpus int
	var mem slurm.MiB
	for _, n := range snap.NodesIn(p.Partition) {
		if p.GPUsPerNode > 0 && slurm.Count(n.GRES, name, typ) == 0 {
			continue
		}
		gpus, cpus, mem = max(gpus, slurm.Count(n.GRES, name, typ)), max(cpus, n.CPUs), max(mem, n.Memory)
	}
	switch {
	case p.GPUsPerNode > gpus:
		found := fmt.Sprintf("a node of partition %s has at most %d", p.Partition, gpus)
		if gpus == 0 {
			found = fmt.Sprintf("no node of partition %s has %s", p.Partition, p.GRES)
		}
		out = append(out, never(fmt.Sprintf("%d × %s per node", p.GPUsPerNode, p.GRES), found, "tp fleet show"))
	case p.CPUsPerNode > cpus:
		out = append(out, never(fmt.Sprintf("%d CPUs per node", p.CPUsPerNode), fmt.Sprintf("a node of series %s has at most %d", p.Series, cpus), s.option("--cpus-per-node", p, cpus)))
	case slurm.MiB(p.MemoryMiB) > mem:
		out = append(out, never(slurm.MiB(p.MemoryMiB).String()+" per node", fmt.Sprintf("a node of series %s has at most %s", p.Series, mem), s.option("--mem", p, mem)))
	}
	return out
}

// together decides by Hall's theorem whether all pools find distinct nodes: for
// every set of pools, the nodes that suit any of them must be as many as they need.
func together(s Subject, code string, level Level, what string, suits func(slurm.Node, spec.Pool) bool) (Verdict, bool) {
	if len(s.Pools) > 16 {
		return Verdict{Gate: "capacity", Code: "capacity.unknown", Level: Unknown, Found: "more than 16 pools are not counted together"}, true
	}
	count := map[uint]int{} // by the set of pools a node suits
	for _, n := range s.Snapshot.Nodes {
		var set uint
		for i, p := range s.Pools {
			if slices.Contains(n.Partitions, p.Partition) && suits(n, p) {
				set |= 1 << i
			}
		}
		if set != 0 {
			count[set]++
		}
	}
	worst, found, need := uint(0), 0, 0
	for set := uint(1); set < 1<<len(s.Pools); set++ {
		have, want := 0, 0
		for nodes, n := range count {
			if nodes&set != 0 {
				have += n
			}
		}
		for i, p := range s.Pools {
			if set&(1<<i) != 0 {
				want += p.Nodes
			}
		}
		if have < want && (worst == 0 || bits.OnesCount(set) < bits.OnesCount(worst)) {
			worst, found, need = set, have, want
		}
	}
	if worst == 0 {
		return Verdict{}, false
	}
	var names, asked []string
	for i, p := range s.Pools {
		if worst&(1<<i) != 0 {
			names = append(names, p.Name)
			asked = append(asked, fmt.Sprintf("%d × %s", p.Nodes, shape(p)))
		}
	}
	plural := "s"
	if need == 1 {
		plural = ""
	}
	return Verdict{Gate: "capacity", Code: code, Level: level, Pool: strings.Join(names, ","),
		Asked: fmt.Sprintf("%d node%s (%s)", need, plural, strings.Join(asked, " + ")), Found: fmt.Sprintf("only %d %s", found, what)}, true
}

func neverFitsRemedy(s Subject, pools string) string {
	if strings.Contains(pools, ",") {
		return fmt.Sprintf("components never share a node; put the roles on one pool: --profile %s=…", pools)
	}
	for _, p := range s.Pools {
		if p.Name != pools {
			continue
		}
		nodes := 0
		for _, n := range s.Snapshot.NodesIn(p.Partition) {
			if shaped(n, p) {
				nodes++
			}
		}
		if nodes > 0 {
			return s.profile(p, nodes) + ", the most that there can be"
		}
	}
	return "tp fleet show"
}

// profile is the pool with so many nodes, as people type it.
func (s Subject) profile(p spec.Pool, nodes int) string {
	text := fmt.Sprintf("%s:%d", p.Series, nodes)
	if len(s.Pools) > 1 {
		text = strings.Join(p.Roles, ",") + "=" + text
	}
	if p.GPUsPerNode > 0 {
		text += fmt.Sprintf("x%d", p.GPUsPerNode)
	}
	return "--profile " + text
}

func shape(p spec.Pool) string {
	if p.GPUsPerNode == 0 {
		return p.Series
	}
	s := fmt.Sprintf("%s:%d", p.Series, p.GPUsPerNode)
	if p.Constraint != "" {
		s += " with feature " + p.Constraint
	}
	return s
}

func gresName(g string) (name, typ string) {
	name, typ, _ = strings.Cut(g, ":")
	return name, typ
}

// counted is the pool as Slurm counts: devices that have no GRES are none to it.
func counted(p spec.Pool) spec.Pool {
	if p.GRES == "" {
		p.GPUsPerNode = 0
	}
	return p
}

// shaped reports whether the node as configured is large enough.
func shaped(n slurm.Node, p spec.Pool) bool {
	p = counted(p)
	name, typ := gresName(p.GRES)
	return (p.GPUsPerNode == 0 || slurm.Count(n.GRES, name, typ) >= p.GPUsPerNode) &&
		n.CPUs >= p.CPUsPerNode && n.Memory >= slurm.MiB(p.MemoryMiB) && hasFeature(n, p.Constraint)
}

// free reports whether the node could start the pool's share now.
func free(n slurm.Node, p spec.Pool) bool {
	p = counted(p)
	name, typ := gresName(p.GRES)
	return shaped(n, p) && n.Usable() &&
		(p.GPUsPerNode == 0 || slurm.Count(n.GRES, name, typ)-slurm.Count(n.GRESUsed, name, typ) >= p.GPUsPerNode) &&
		n.CPUs-n.CPUsUsed >= p.CPUsPerNode && n.Memory-n.MemoryUsed >= slurm.MiB(p.MemoryMiB)
}

// hasFeature judges constraints of one plain feature; expressions are left to Slurm.
func hasFeature(n slurm.Node, constraint string) bool {
	if constraint == "" || strings.ContainsAny(constraint, "&|[]()*,!") {
		return true
	}
	return slices.Contains(n.Features, constraint)
}
