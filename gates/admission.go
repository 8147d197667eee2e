package gates

import (
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Admission asks whether the pools may be there at all: the partition exists,
// takes jobs, and lets this account and QOS in.
type Admission struct{}

// Name is "admission".
func (Admission) Name() string { return "admission" }

// Check looks at each pool's partition.
func (Admission) Check(s Subject) []Verdict {
	var out []Verdict
	switch info := s.Snapshot.Info; {
	case info.Local:
		out = single(s)
	case !info.Account:
		out = append(out, Verdict{Gate: "admission", Code: "admission.accounting", Level: Unknown,
			Found: "which accounts and QOS you may use is not known: accounting (slurmdbd) does not answer"})
	}
	for _, p := range s.Pools {
		if v, bad := s.admit(p); bad {
			v.Gate, v.Pool = "admission", p.Name
			if v.Level == "" {
				v.Level = Block
			}
			out = append(out, v)
		}
	}
	return out
}

func (s Subject) admit(p spec.Pool) (Verdict, bool) {
	snap := s.Snapshot
	part, ok := snap.Partition(p.Partition)
	if !ok {
		var names []string
		for _, q := range snap.Partitions {
			names = append(names, q.Name)
		}
		remedy := "tp fleet show"
		if near := fault.Nearest(p.Partition, names); near != "" {
			remedy = s.option("--partition", p, near)
		}
		return Verdict{Code: "admission.partition", Asked: "partition " + p.Partition,
			Found: "the cluster has " + strings.Join(names, ", "), Remedy: remedy}, true
	}
	if part.State != "" && part.State != "UP" && part.State != "DRAIN" && part.State != "DOWN" {
		return Verdict{Code: "admission.partitionState", Asked: "partition " + p.Partition, Found: "its state is " + part.State, Remedy: "tp fleet show"}, true
	}
	if part.State == "DRAIN" {
		return Verdict{Code: "admission.partitionState", Asked: "partition " + p.Partition, Found: "it is draining and takes no new jobs", Remedy: "tp fleet show"}, true
	}
	// An empty account or QOS is the user's default, which only accounting knows.
	if p.Account != "" && (restricts(part.AllowAccounts, p.Account) || slices.Contains(part.DenyAccounts, p.Account)) {
		return Verdict{Code: "admission.account", Asked: "account " + p.Account + " in partition " + p.Partition,
			Found: lists("allowed accounts", part.AllowAccounts, "denied accounts", part.DenyAccounts), Remedy: s.option("--account", p, "NAME") + " or " + s.option("--partition", p, "NAME")}, true
	}
	if p.QOS != "" && (restricts(part.AllowQOS, p.QOS) || slices.Contains(part.DenyQOS, p.QOS)) {
		return Verdict{Code: "admission.qos", Asked: "QOS " + p.QOS + " in partition " + p.Partition,
			Found: lists("allowed QOS", part.AllowQOS, "denied QOS", part.DenyQOS), Remedy: s.option("--qos", p, "NAME") + " or " + s.option("--partition", p, "NAME")}, true
	}
	if p.Account == "" && len(part.AllowAccounts) > 0 {
		return Verdict{Code: "admission.account", Level: Unknown, Asked: "your default account in partition " + p.Partition,
			Found: "the partition takes only " + strings.Join(part.AllowAccounts, ", ") + "; which account is your default is not known here", Remedy: s.option("--account", p, "NAME")}, true
	}
	if p.Reservation != "" && !slices.ContainsFunc(snap.Reservations, func(r slurm.Reservation) bool { return r.Name == p.Reservation }) {
		return Verdict{Code: "admission.reservation", Asked: "reservation " + p.Reservation, Found: "the cluster shows no reservation of this name", Remedy: "tp fleet show"}, true
	}
	return Verdict{}, false
}

func restricts(allowed []string, name string) bool {
	return len(allowed) > 0 && !slices.Contains(allowed, name)
}

func lists(what1 string, list1 []string, what2 string, list2 []string) string {
	if len(list1) > 0 {
		return what1 + ": " + strings.Join(list1, ", ")
	}
	return what2 + ": " + strings.Join(list2, ", ")
}
