package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// Surplus ends the jobs of a run that lost the claim: a request that arrived
// after its run had been submitted again makes a second job, which does nothing
// when it starts, but waits and counts until then. The claim says which job is
// the run's; before one has started it is the recorded one. Runs that were
// never in doubt cost no question.
func (q *Queue) Surplus(ctx context.Context, r *ledger.Run) ([]slurm.JobID, error) {
	attempt, ok := r.Last()
	if !ok || q.ours(r) != nil || !everInDoubt(r) {
		return nil, nil
	}
	keep := attempt.JobID
	calledOff := keep == 0 && r.State == ledger.Cancelled // any job of it is one too many
	if claimed := pick(r, attempt, nil); claimed != 0 && claimed != keep && !calledOff {
		keep = claimed
		e := ledger.Event{Type: ledger.Submitted, Attempt: attempt.N, JobID: keep, JobName: attempt.JobName, Message: "it holds the claim"}
		if err := q.Ledger.Append(r, e); err != nil {
			return nil, err
		}
	}
	if keep == 0 && !calledOff {
		return nil, nil
	}
	jobs, err := q.Client.JobsByName(ctx, q.User, attempt.JobName)
	if err != nil {
		return nil, err
	}
	var ended []slurm.JobID
	var failed error
	for _, j := range jobs {
		id := j.Leader()
		if id == keep || j.State.Ended() || slices.Contains(ended, id) {
			continue
		}
		if err := q.Client.Cancel(ctx, id); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ended = append(ended, id)
		note := ledger.Event{Type: ledger.Note, Attempt: attempt.N, Message: fmt.Sprintf("job %s was a second one of this run and is cancelled", id)}
		failed = errors.Join(failed, q.Ledger.Append(r, note))
	}
	return ended, failed
}

// everInDoubt reports whether the run may have been submitted more than once.
func everInDoubt(r *ledger.Run) bool {
	events, err := ledger.ReadEvents(r.Dir)
	if err != nil {
		return true
	}
	intents := 0
	for _, e := range events {
		switch e.Type {
		case ledger.Intent:
			intents++
		case ledger.Doubt:
			return true
		}
	}
	return intents > 1
}
