package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Rights are what accounting grants a user, and how far the cluster holds jobs
// to it.
type Rights struct {
	// Associations are the user's own; nil when nobody could tell, empty when
	// accounting knows the user nowhere.
	Associations []slurm.Association
	// Enforce is AccountingStorageEnforce of slurm.conf, "associations,limits";
	// Asked says that it is known, for "" enforces nothing.
	Enforce string
	Asked   bool
}

// Default is the account of a job that names none; "" when it is not known.
func (r Rights) Default() string {
	for _, a := range r.Associations {
		if a.Default {
			return a.Account
		}
	}
	return ""
}

// level is what follows from a name that accounting does not know: a refusal
// only where the cluster is known to hold jobs to it (slurm.conf(5),
// AccountingStorageEnforce: limits, qos, safe and wckeys include associations).
func (r Rights) level(words ...string) Level {
	if !r.Asked {
		return Warn
	}
	for word := range strings.SplitSeq(strings.ToLower(r.Enforce), ",") {
		if word == "all" || slices.Contains(words, word) {
			return Block
		}
	}
	return Warn
}

// granted holds account and QOS of a pool against what the user may ask for.
func (s Subject) granted(p spec.Pool) []Verdict {
	r := s.Rights
	if len(r.Associations) == 0 {
		return nil
	}
	account := p.Account
	if account == "" {
		account = r.Default()
	}
	var accounts, here, qos []string // here: in this partition
	for _, a := range r.Associations {
		accounts = append(accounts, a.Account)
		if a.Partition != "" && a.Partition != p.Partition {
			continue
		}
		here = append(here, a.Account)
		if strings.EqualFold(a.Account, account) {
			qos = append(qos, a.QOS...)
		}
	}
	if p.Account != "" && !knows(here, p.Account) {
		v := Verdict{Code: "admission.account", Level: r.level("associations", "limits", "qos", "safe", "wckeys"), Asked: "account " + p.Account}
		if knows(accounts, p.Account) {
			v.Asked += " in partition " + p.Partition
			v.Found, v.Remedy = "accounting gives you this account in other partitions only", "tp doctor, which lists your accounts"
		} else {
			v.Found = meant("your accounts are", p.Account, accounts)
			v.Remedy = s.instead("--account", p, p.Account, accounts)
		}
		return []Verdict{v}
	}
	// An association without any QOS may ask for none; some dialects do not
	// tell them, which looks the same.
	if p.QOS != "" && len(qos) > 0 && !knows(qos, p.QOS) {
		asked := "QOS " + p.QOS
		if account != "" {
			asked += " under account " + account
		}
		return []Verdict{{Code: "admission.qos", Level: r.level("qos"), Asked: asked,
			Found: meant("you may ask for", p.QOS, qos), Remedy: s.instead("--qos", p, p.QOS, qos)}}
	}
	return nil
}

// knows ignores case, as slurmdbd does.
func knows(list []string, name string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, name) })
}

// meant lists names, and asks about the nearest.
func meant(what, name string, known []string) string {
	known = sorted(known)
	text := what + " " + strings.Join(known, ", ")
	if near := fault.Nearest(strings.ToLower(name), known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}

// instead is what to type.
func (s Subject) instead(flag string, p spec.Pool, name string, known []string) string {
	if near := fault.Nearest(strings.ToLower(name), sorted(known)); near != "" {
		return s.option(flag, p, near)
	}
	return "tp doctor, which lists your accounts and QOS"
}

func sorted(list []string) []string {
	list = slices.Sorted(slices.Values(list))
	return slices.Compact(list)
}
