// Package gates holds the rules a job must pass before it is queued. A gate is
// a small pure type over a [Subject]; its answer is a [Verdict] with the same
// name, code and remedy wherever it is shown.
//
//	for _, v := range gates.Check(subject, gates.All()...) {
//		if v.Level == gates.Block { … }
//	}
package gates

import (
	"time"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Level is what a verdict does to a plan.
type Level string

const (
	Pass    Level = "pass"
	Warn    Level = "warn"    // goes on, and may disappoint
	Wait    Level = "wait"    // queued, will start later
	Block   Level = "block"   // must not be submitted
	Unknown Level = "unknown" // could not be asked; the plan goes on
)

// Verdict is one gate's answer.
type Verdict struct {
	Gate   string    `json:"gate"` // "capacity"
	Code   string    `json:"code"` // "capacity.neverFits"
	Level  Level     `json:"level"`
	Pool   string    `json:"pool,omitempty"`
	Asked  string    `json:"asked"`
	Found  string    `json:"found"`
	Until  time.Time `json:"until,omitzero"`   // when it may change, where known
	Remedy string    `json:"remedy,omitempty"` // the next command, or one sentence
}

// Subject is what the gates judge. Snapshot is nil when the cluster could not
// be asked; every gate then answers unknown, but for what needs no cluster.
type Subject struct {
	Spec     *spec.Spec
	Pools    []spec.Pool
	Snapshot *slurm.Snapshot
	Software Software
	Now      time.Time
	// Config asks for slurm.conf, only where a gate needs it; its answer, and
	// itself, are nil when nobody can tell.
	Config func() slurm.Record
	// Rights are the user's accounts and QOS.
	Rights Rights
	// Parents asks for the account above each account, only where a partition
	// lets in some accounts; its answer, and itself, are nil when nobody can tell.
	Parents func() map[string]string
	// Licenses asks for the cluster's, by name with their total, only where a
	// job wants some; its answer, and itself, are nil when nobody can tell.
	Licenses func() map[string]int
}

// Gate is one rule.
type Gate interface {
	Name() string
	Check(Subject) []Verdict
}

// All lists the gates in the order they are asked and shown.
func All() []Gate { return []Gate{Admission{}, Offline{}, Capacity{}, Maintenance{}} }

// Check asks every gate. A gate without an objection gives one pass.
func Check(s Subject, list ...Gate) []Verdict {
	var out []Verdict
	for _, g := range list {
		if s.Snapshot == nil {
			out = append(out, Verdict{Gate: g.Name(), Code: g.Name() + ".unknown", Level: Unknown, Found: "the cluster could not be asked"})
			if g, ok := g.(interface{ Offline(Subject) []Verdict }); ok {
				out = append(out, g.Offline(s)...)
			}
			continue
		}
		got := g.Check(s)
		if len(got) == 0 {
			got = []Verdict{{Gate: g.Name(), Code: g.Name(), Level: Pass}}
		}
		out = append(out, got...)
	}
	return out
}

// Worst is the strictest level among the verdicts.
func Worst(list []Verdict) Level {
	rank := map[Level]int{Pass: 0, Unknown: 1, Warn: 2, Wait: 3, Block: 4}
	worst := Pass
	for _, v := range list {
		if rank[v.Level] > rank[worst] {
			worst = v.Level
		}
	}
	return worst
}
