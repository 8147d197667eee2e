package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// deadlock warns of heterogeneous jobs that can wait for each other for ever:
// the backfill scheduler plans each component by itself, so that one component
// may be promised the nodes that another one, or another job's, needs. The
// scheduler option bf_hetjob_prio makes it take the components of a job
// together (slurm.conf(5)); with bf_hetjob_immediate it starts those that fit.
func deadlock(s Subject) []Verdict {
	for i, p := range s.Pools {
		for _, q := range s.Pools[i+1:] {
			if p.Component == q.Component {
				continue
			}
			shared := sharedNodes(s.Snapshot, p, q)
			if len(shared) == 0 {
				continue
			}
			v := Verdict{Gate: "capacity", Code: "capacity.deadlock", Level: Warn, Pool: p.Name + "," + q.Name,
				Asked:  "two components that start at once, in " + partitions(p, q),
				Found:  fmt.Sprintf("both can use %s; SchedulerParameters lacks bf_hetjob_prio, so they may wait for each other, or for another such job, for ever", slurm.Compress(shared)),
				Remedy: "partitions that share no node; or ask your administrator for bf_hetjob_prio=min"}
			switch parameters, known := s.config("SchedulerParameters"); {
			case !known:
				v.Level = Unknown
				v.Found = fmt.Sprintf("both can use %s; unless SchedulerParameters has bf_hetjob_prio, which could not be asked, they may wait for each other, or for another such job, for ever", slurm.Compress(shared))
				v.Remedy = "scontrol show config | grep bf_hetjob_prio"
			case hasItem(parameters, "bf_hetjob_prio") || hasItem(parameters, "bf_hetjob_immediate"):
				return nil
			}
			return []Verdict{v}
		}
	}
	return nil
}

func (s Subject) config(key string) (string, bool) {
	if s.Config == nil {
		return "", false
	}
	return s.Config(key)
}

func partitions(p, q spec.Pool) string {
	if p.Partition == q.Partition {
		return "partition " + p.Partition
	}
	return fmt.Sprintf("partitions %s and %s", p.Partition, q.Partition)
}

// sharedNodes are the nodes that both pools could use.
func sharedNodes(snap *slurm.Snapshot, p, q spec.Pool) []string {
	var names []string
	for _, n := range snap.Nodes {
		if slices.Contains(n.Partitions, p.Partition) && slices.Contains(n.Partitions, q.Partition) && shaped(n, p) && shaped(n, q) {
			names = append(names, n.Name)
		}
	}
	return names
}

// hasItem finds NAME or NAME=… in a comma separated list; Slurm ignores case.
func hasItem(list, name string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if have, _, _ := strings.Cut(strings.TrimSpace(item), "="); strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}
