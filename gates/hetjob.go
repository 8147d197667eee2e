package gates

import (
	"fmt"
	"slices"

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
			config := s.config()
			if config == nil {
				v.Level = Unknown
				v.Found = fmt.Sprintf("both can use %s; unless SchedulerParameters has bf_hetjob_prio, which could not be asked, they may wait for each other, or for another such job, for ever", slurm.Compress(shared))
				v.Remedy = "scontrol show config | grep bf_hetjob_prio"
			}
			for _, option := range []string{"bf_hetjob_prio", "bf_hetjob_immediate"} {
				if _, set := config.Option("SchedulerParameters", option); set {
					return nil
				}
			}
			return []Verdict{v}
		}
	}
	return nil
}

func (s Subject) config() slurm.Record {
	if s.Config == nil {
		return nil
	}
	return s.Config()
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
