package run

import (
	"context"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// settle finds out what became of an attempt that a dead process left. It
// reports whether the job exists; false with a nil error means that there is
// none and may be submitted.
func (q *Queue) settle(ctx context.Context, lease *durable.Lease, r *ledger.Run, a ledger.Attempt) (bool, error) {
	found, err := q.look(ctx, r, a)
	if found || err != nil {
		return found, err
	}
	// The request may still be on its way: only after the server's own time-out
	// is an absent job a job that will not come.
	timeout := q.ServerTimeout
	if timeout == 0 {
		timeout = 60 * time.Second
	}
	last := a.Intended
	if !a.Doubted.IsZero() { // the answer may have been awaited for longer than the server's time-out
		last = a.Doubted
	}
	age := q.now().Sub(last)
	if age < 0 { // another host's clock, or ours was set back: the wait begins now
		if err := q.Ledger.AppendUnder(lease, r, ledger.Event{Type: ledger.Doubt, Attempt: a.N, Time: q.now().UTC(), Message: a.Reason}); err != nil {
			return false, err
		}
		age = 0
	}
	if age < timeout {
		return false, fault.New(fault.Unreachable, "run %s was being submitted %s ago and the job is not there yet; a late request could still arrive", r.ID, age.Round(time.Second)).
			WithHint("tp tick, in %s", (timeout - age).Round(time.Second))
	}
	if err := lease.Beat(); err != nil {
		return false, err
	}
	return false, q.Ledger.AppendUnder(lease, r, ledger.Event{Type: ledger.Refused, Attempt: a.N, Message: "no job of this name exists after the server's time-out"})
}

// look asks the cluster for the attempt's job by name and records what it finds.
func (q *Queue) look(ctx context.Context, r *ledger.Run, a ledger.Attempt) (bool, error) {
	pauses := q.Looks
	if pauses == nil {
		pauses = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}
	}
	for i := 0; ; i++ {
		jobs, err := q.Client.JobsByName(ctx, q.User, a.JobName)
		if err != nil {
			return false, fault.New(fault.Unreachable, "whether run %s was queued is not known: %w", r.ID, err).WithHint("tp tick")
		}
		if id := pick(r, a, jobs); id != 0 {
			return true, q.Ledger.Append(r, ledger.Event{Type: ledger.Submitted, Attempt: a.N, JobID: id, JobName: a.JobName, Message: "found by name"})
		}
		if i >= len(pauses) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(pauses[i]):
		}
	}
}

// pick chooses the job that is the attempt's: the one that holds the claim,
// else the oldest.
func pick(r *ledger.Run, a ledger.Attempt, jobs []slurm.Job) slurm.JobID {
	claims, _ := ledger.Claims(r.Dir)
	for _, c := range claims {
		if c.Attempt == a.N && c.JobID != 0 {
			return c.JobID
		}
	}
	oldest := slurm.JobID(0)
	for _, j := range jobs {
		if id := j.Leader(); oldest == 0 || id < oldest {
			oldest = id
		}
	}
	return oldest
}
