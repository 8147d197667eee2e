package gates

import (
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Admission asks whether the pools may be there at all: the partition exists,
// takes jobs, and lets this account and QOS in; and whether what they run in is
// registered and allowed.
type Admission struct{}

// Name is "admission".
func (Admission) Name() string { return "admission" }

// Check looks at each pool's partition.
func (Admission) Check(s Subject) []Verdict {
	out := s.Software.verdicts()
	switch info := s.Snapshot.Info; {
	case info.Local:
		out = append(append(out, s.Software.onMachine()...), single(s)...)
	case !info.Account:
		out = append(out, Verdict{Gate: "admission", Code: "admission.accounting", Level: Unknown,
			Found: "which accounts and QOS you may use is not known: accounting (slurmdbd) does not answer"})
	}
	add := func(pool string, list ...Verdict) {
		for _, v := range list {
			v.Gate, v.Pool = "admission", pool
			if v.Level == "" {
				v.Level = Block
			}
			out = append(out, v)
		}
	}
	for _, p := range s.Pools {
		v, bad := s.admit(p)
		if bad {
			add(p.Name, v)
		}
		if v.Code == "admission.partition" || s.Snapshot.Info.Local {
			continue // nothing is known of what lies in it
		}
		if !bad || v.Code == "admission.reservation" { // one word about an account is enough
			add(p.Name, s.granted(p)...)
		}
		add(p.Name, s.namedNodes(p)...)
	}
	add("", licenses(s)...)
	return out
}

// admit looks at the partition.
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
	account, asked := p.Account, "account "+p.Account
	if account == "" {
		account = s.Rights.Default()
		asked = "your default account " + account
	}
	if account == "" && len(part.AllowAccounts) > 0 {
		return Verdict{Code: "admission.account", Level: Unknown, Asked: "your default account in partition " + p.Partition,
			Found: "the partition takes only " + strings.Join(part.AllowAccounts, ", ") + "; which account is your default is not known here", Remedy: s.option("--account", p, "NAME")}, true
	}
	if v, bad := s.admitAccount(part, account); bad {
		v.Code, v.Asked, v.Remedy = "admission.account", asked+" in partition "+p.Partition, s.option("--account", p, "NAME")+" or "+s.option("--partition", p, "NAME")
		return v, true
	}
	if p.QOS != "" && (restricts(part.AllowQOS, p.QOS) || slices.Contains(part.DenyQOS, p.QOS)) {
		return Verdict{Code: "admission.qos", Asked: "QOS " + p.QOS + " in partition " + p.Partition,
			Found: lists("allowed QOS", part.AllowQOS, "denied QOS", part.DenyQOS), Remedy: s.option("--qos", p, "NAME") + " or " + s.option("--partition", p, "NAME")}, true
	}
	if p.Reservation != "" && !slices.ContainsFunc(snap.Reservations, func(r slurm.Reservation) bool { return r.Name == p.Reservation }) {
		return Verdict{Code: "admission.reservation", Asked: "reservation " + p.Reservation, Found: "the cluster shows no reservation of this name", Remedy: "tp fleet show"}, true
	}
	return Verdict{}, false
}

// admitAccount holds an account against those that a partition lets in. Slurm
// 22.05 compares names; later ones also let in the accounts below an allowed
// one (slurm.conf(5), AllowAccounts), which only accounting knows.
func (s Subject) admitAccount(part slurm.Partition, account string) (Verdict, bool) {
	switch {
	case account == "" || len(part.AllowAccounts) == 0 && !slices.Contains(part.DenyAccounts, account):
		return Verdict{}, false
	case len(part.AllowAccounts) == 0:
		return Verdict{Found: "denied accounts: " + strings.Join(part.DenyAccounts, ", ")}, true
	case slices.Contains(part.AllowAccounts, account):
		return Verdict{}, false
	}
	v := Verdict{Found: "allowed accounts: " + strings.Join(part.AllowAccounts, ", ")}
	if strings.HasPrefix(s.Snapshot.Info.Release, "22.") {
		return v, true
	}
	var parents map[string]string
	if s.Parents != nil {
		parents = s.Parents()
	}
	at := account
	for range len(parents) { // a circle would end here
		above, known := parents[at]
		if at = above; !known || at == "" || slices.Contains(part.AllowAccounts, at) {
			break
		}
	}
	switch {
	case slices.Contains(part.AllowAccounts, at):
		return Verdict{}, false
	case parents[account] == "": // of nobody, or nobody could say
		v.Level = Warn
		v.Found += ", and those below them; whether yours is one is not known here"
	}
	return v, true
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
