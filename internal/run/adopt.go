package run

import (
	"context"

	"github.com/tuneplane/tp/internal/ledger"
)

// Adopt finds the job of a run whose script was rendered and given to sbatch by
// hand: by its claim once it has started, before that by its name. It reports
// whether there is one.
func (q *Queue) Adopt(ctx context.Context, r *ledger.Run) (bool, error) {
	if r.JobID() != 0 || r.State != ledger.NotSubmitted || q.ours(r) != nil {
		return false, nil
	}
	p, err := Plan(r)
	if err != nil {
		return false, err
	}
	a := ledger.Attempt{N: 1, JobName: p.Fixed.JobName()}
	id := pick(r, a, nil)
	if id == 0 {
		jobs, err := q.Client.JobsByName(ctx, q.User, a.JobName)
		if err != nil {
			return false, err
		}
		if id = pick(r, a, jobs); id == 0 {
			return false, nil
		}
	}
	how := "submitted by hand"
	if _, open := r.Unsettled(); open {
		how = "found by name" // tp submitted it and did not live to say so
	}
	return true, q.Ledger.Append(r, ledger.Event{Type: ledger.Submitted, Attempt: a.N, JobID: id, JobName: a.JobName, Message: how})
}
