package gates

import (
	"fmt"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// single refuses what one machine without Slurm cannot run: more than one pool,
// more than one node.
func single(s Subject) []Verdict {
	nodes := 0
	var names, roles []string
	for _, p := range s.Pools {
		nodes += p.Nodes
		names, roles = append(names, p.Name), append(roles, p.Roles...)
	}
	if nodes <= 1 {
		return nil
	}
	v := Verdict{Gate: "admission", Code: "admission.local", Level: Block, Pool: strings.Join(names, ","),
		Asked: fmt.Sprintf("%d pools", len(s.Pools)), Found: "this machine is one pool of one node"}
	if len(s.Pools) == 1 {
		v.Asked = fmt.Sprintf("%d nodes", nodes)
	}
	p, has := s.Pools[0], 0
	for _, n := range s.Snapshot.Nodes {
		has = max(has, slurm.Count(n.GRES, "gpu", ""))
	}
	count := 1
	if p.GPUsPerNode > 0 {
		count = max(1, min(has, nodes*p.GPUsPerNode))
	}
	v.Remedy = fmt.Sprintf("--profile %s=%s:%d, or a Slurm fleet with --fleet NAME (tp fleet ls)", strings.Join(roles, ","), p.Series, count)
	return []Verdict{v}
}

// taken is a lack of free devices where nothing waits: it names who has them.
func taken(s Subject, v Verdict) Verdict {
	var who []string
	v.Level = Block
	v.Remedy = "nothing waits on this machine: submit when they are free"
	for _, n := range s.Snapshot.Nodes {
		for _, j := range n.Jobs {
			if len(j.GRES) == 0 {
				continue
			}
			who = append(who, j.Name)
			if at := strings.LastIndex(j.Name, ".run-"); at >= 0 && len(who) == 1 {
				v.Remedy += fmt.Sprintf(", or tp job cancel %s", j.Name[at+1:])
			}
		}
		free := slurm.Count(n.GRES, "gpu", "") - slurm.Count(n.GRESUsed, "gpu", "")
		v.Found = fmt.Sprintf("%d of %d GPUs are free; the others have %s", free, slurm.Count(n.GRES, "gpu", ""), strings.Join(who, ", "))
	}
	return v
}
