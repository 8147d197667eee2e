package rest

import (
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Values of v0.0.39 and later, where they differ from v0.0.38.

// numberObject is the NO_VAL shape, which every dialect from .39 on accepts
// and which alone draws no warning from .40 on.
type numberObject struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

func set(n int64) any {
	if n == 0 {
		return nil
	}
	return numberObject{Set: true, Number: n}
}

func limit(p part) any {
	if p.TimeLimit == slurm.Unlimited {
		return numberObject{Infinite: true}
	}
	return set(int64(p.TimeLimit))
}

func begin(p part) any {
	if p.r.Begin.IsZero() {
		return nil
	}
	if p.d.bareBegin() {
		return p.r.Begin.Unix()
	}
	return set(p.r.Begin.Unix())
}

// tresPerNode spells GRES with colons: up to 23.02 slurmctld looks for "gres:"
// and silently ignores "gres/"; from 23.11 on it rewrites the colon itself.
func tresPerNode(p part) any {
	items := make([]string, len(p.GRES))
	for i, g := range p.GRES {
		items[i] = "gres:" + g.String()
	}
	return word(strings.Join(items, ","))
}

func exclusive(p part) any {
	if p.Share != slurm.Exclusive {
		return nil
	}
	return []string{"none"} // JOB_SHARED_NONE
}

func signalDelay(p part) any {
	if p.r.Signal.Name == "" {
		return nil
	}
	return set(int64(p.r.Signal.Before.Seconds()))
}

func signalFlags(p part) any {
	if p.r.Signal.Name == "" || !p.r.Signal.BatchOnly {
		return nil
	}
	return []string{"BATCH_JOB"}
}

func envList(p part) any {
	vars := environment(p)
	out := make([]string, len(vars))
	for i, v := range vars {
		out[i] = v.Name + "=" + v.Value
	}
	return out
}
