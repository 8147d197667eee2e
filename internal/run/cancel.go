package run

import (
	"context"
	"errors"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
)

// Cancel ends the run's job with all its components, after comparing the name:
// job ids are reused.
func (q *Queue) Cancel(ctx context.Context, r *ledger.Run) error {
	if err := q.ours(r); err != nil {
		return err
	}
	id := r.JobID()
	if id == 0 {
		attempt, open := r.Unsettled()
		if !open {
			return q.cancelUnsent(ctx, r)
		}
		if found, err := q.look(ctx, r, attempt); err != nil || !found {
			return errors.Join(q.callOff(r, attempt), err)
		}
		id = r.JobID()
	}
	jobs, err := q.Client.Jobs(ctx, id)
	if err != nil {
		return fault.New(fault.Unreachable, "cancel %s: %w", r.ID, err)
	}
	attempt, _ := r.Last()
	alive := false
	for _, j := range jobs {
		if j.Name != attempt.JobName {
			return fault.New(fault.Refused, "job %s is %q now, not %q: the id was reused", id, j.Name, attempt.JobName).WithHint("tp job status %s", r.ID)
		}
		alive = alive || !j.State.Ended()
	}
	if !alive {
		return fault.New(fault.Refused, "run %s has ended already", r.ID).WithHint("tp job status %s", r.ID)
	}
	if err := q.Ledger.Append(r, ledger.Event{Type: ledger.Cancel, Attempt: attempt.N, JobID: id}); err != nil {
		return err
	}
	if err := q.Client.Cancel(ctx, id); err != nil {
		return fault.New(fault.Refused, "cancel %s: %w", r.ID, err)
	}
	return nil
}

// callOff writes down that an attempt in doubt is not wanted any more: nobody
// submits it again, and whoever finds its job cancels it.
func (q *Queue) callOff(r *ledger.Run, a ledger.Attempt) error {
	if err := q.Ledger.Append(r, ledger.Event{Type: ledger.Cancel, Attempt: a.N}); err != nil {
		return err
	}
	return fault.New(fault.Unreachable, "run %s has no known job yet; it is not submitted again, and its job is cancelled if it appears", r.ID).WithHint("tp tick")
}

// calledOff ends an attempt that was in doubt when somebody cancelled it, now
// that the cluster has said whether it has a job.
func (q *Queue) calledOff(ctx context.Context, lease *durable.Lease, r *ledger.Run, a ledger.Attempt) error {
	if id := r.JobID(); id != 0 {
		if err := q.Client.Cancel(ctx, id); err != nil {
			return fault.New(fault.Refused, "cancel %s: %w", r.ID, err).WithHint("tp job cancel %s", r.ID)
		}
	} else if err := q.Ledger.AppendUnder(lease, r, ledger.Event{Type: ledger.Changed, Attempt: a.N, State: ledger.Cancelled, Reason: "cancelled before it was queued"}); err != nil {
		return err
	}
	return fault.New(fault.Refused, "run %s was cancelled while it was being submitted", r.ID).WithHint("tp job status %s", r.ID)
}

// cancelUnsent keeps a run that was never queued from being queued, under the
// lease of those who would.
func (q *Queue) cancelUnsent(ctx context.Context, r *ledger.Run) error {
	lease, err := q.acquire(ctx, r)
	if err != nil {
		return err
	}
	defer lease.Release()
	fresh, err := q.Ledger.Load(r.Dir)
	if err != nil {
		return err
	}
	*r = *fresh
	if r.State.Final() {
		return fault.New(fault.Refused, "run %s has ended already", r.ID).WithHint("tp job status %s", r.ID)
	}
	if len(r.Attempts) > 0 {
		return fault.New(fault.Refused, "run %s is being queued right now", r.ID).WithHint("tp job cancel %s again", r.ID)
	}
	return q.Ledger.AppendUnder(lease, r, ledger.Event{Type: ledger.Changed, State: ledger.Cancelled, Reason: "cancelled before it was submitted"})
}
