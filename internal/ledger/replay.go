package ledger

import (
	"encoding/json"
	"slices"
	"time"
)

// Replay makes a run of its events. It is pure and total: any sequence gives a
// run, and a run whose ID is empty had no created event.
//
// The run's state is that of its newest attempt. Slurm forgets jobs (MinJobAge,
// 300 s by default), so UNKNOWN never replaces a final state; everything else
// follows the order of events, because a requeue brings an ended job back.
func Replay(events []Event) Run {
	r := Run{State: NotSubmitted}
	for _, e := range events {
		r.apply(e)
	}
	return r
}

func (r *Run) apply(e Event) {
	r.Seq = max(r.Seq, e.Seq)
	if e.Time.After(r.Updated) {
		r.Updated = e.Time
	}
	switch e.Type {
	case Created:
		if r.ID == "" { // a second one would change what was fixed
			_ = json.Unmarshal(e.Data, &r.Header)
		}
	case Intent:
		a := r.attempt(e.Attempt)
		a.Token, a.JobName, a.Intended, a.Doubted = e.Token, e.JobName, e.Time, time.Time{}
		a.Outcome, a.State, a.Reason = Unanswered, NotSubmitted, ""
	case Submitted:
		a := r.attempt(e.Attempt)
		a.Outcome, a.JobID, a.Submitted = WasQueued, e.JobID, e.happened()
		// A tracker may have seen the job before its submitter wrote this.
		if a.State == NotSubmitted || a.State == "" || a.State == Unknown {
			r.set(a, Accepted, "", "", e)
		}
	case Refused:
		a := r.attempt(e.Attempt)
		a.Outcome = WasDenied
		r.set(a, Failed, "refused: "+e.Message, e.Gate, e)
	case Doubt:
		a := r.attempt(e.Attempt)
		a.Doubted = e.Time
		if a.Outcome != WasQueued {
			a.Outcome = InDoubt
			r.set(a, Unknown, e.Message, "", e)
		}
	case Changed:
		if e.Attempt == 0 && len(r.Attempts) == 0 {
			r.State, r.Reason, r.Gate, r.Detail = e.State, e.Reason, e.Gate, e.Detail
			return
		}
		a := r.attempt(e.Attempt)
		if e.State == Unknown && a.State.Final() {
			return
		}
		if e.JobID != 0 && a.JobID == 0 {
			a.JobID = e.JobID
		}
		r.set(a, e.State, e.Reason, e.Gate, e)
	case Cancel:
		r.CancelAsked = e.Time
		if len(r.Attempts) == 0 {
			r.State, r.Reason = Cancelled, e.Message
		}
	}
}

// set changes an attempt, and the run if the attempt is its newest.
func (r *Run) set(a *Attempt, s State, reason, gate string, e Event) {
	a.State, a.Reason, a.Ended = s, reason, time.Time{}
	switch {
	case s.Final():
		a.Ended = e.happened()
	case s == Running && a.Started.IsZero():
		a.Started = e.happened()
	}
	if a == &r.Attempts[len(r.Attempts)-1] {
		r.State, r.Reason, r.Gate, r.Detail = s, reason, gate, e.Detail
	}
}

// attempt finds attempt n, or the newest for n = 0. A missing one is added in
// order of its number, for its intent may stand in a torn line.
func (r *Run) attempt(n int) *Attempt {
	if n == 0 {
		n = 1
		if last, ok := r.Last(); ok {
			n = last.N
		}
	}
	i, found := slices.BinarySearchFunc(r.Attempts, n, func(a Attempt, n int) int { return a.N - n })
	if !found {
		r.Attempts = slices.Insert(r.Attempts, i, Attempt{N: n})
	}
	return &r.Attempts[i]
}
