package run

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// Queue submits runs to one cluster.
type Queue struct {
	Client  slurm.Client
	Cluster string // the client's ClusterName; runs of another one are refused
	Ledger  *ledger.Ledger
	User    string
	// Keeper judges whether another process that holds a run is alive.
	Keeper *durable.Keeper
	// ServerTimeout is how long a request may still be in the server's hands
	// after our connection broke. slurmctld's MessageTimeout is 10 s by default
	// and at most 100 s on the sites we know; 0 means 60 s.
	ServerTimeout time.Duration
	// Looks are the pauses between look-ups after a doubt; nil: 0.2, 1 and 3 s.
	Looks []time.Duration
	// Warn gets Slurm's warnings, verbatim.
	Warn func(string)
	Now  func() time.Time
}

// Submit queues a staged run, at most once over all processes and hosts. A run
// that is queued already is returned as it is. After a doubt the cluster is
// asked by name; what cannot be settled is a fault that says what to type.
func (q *Queue) Submit(ctx context.Context, s Staged) (*ledger.Run, error) {
	r := s.run
	if err := q.ours(r); err != nil {
		return r, err
	}
	if r.JobID() != 0 {
		return r, nil
	}
	lease, err := q.acquire(ctx, r)
	if err != nil {
		return r, err
	}
	defer lease.Release()
	if r, err = q.Ledger.Load(r.Dir); err != nil {
		return r, err
	}
	if r.JobID() != 0 {
		return r, nil
	}
	if last, ok := r.Last(); r.State.Final() && !(ok && last.Outcome == ledger.WasDenied && r.State != ledger.Cancelled) {
		return r, fault.New(fault.Refused, "run %s is %s already", r.ID, r.State).WithHint("tp job status %s", r.ID)
	}
	if attempt, open := r.Unsettled(); open {
		found, err := q.settle(ctx, lease, r, attempt)
		if err == nil && !r.CancelAsked.IsZero() && !r.CancelAsked.Before(attempt.Intended) {
			return r, q.calledOff(ctx, lease, r, attempt)
		}
		if err != nil || found {
			return r, err
		}
	}
	return r, q.submit(ctx, lease, r, s)
}

// ours refuses a run of another cluster: the same fleet name may mean another
// cluster on another login node.
func (q *Queue) ours(r *ledger.Run) error {
	if r.Cluster == "" || q.Cluster == "" || r.Cluster == q.Cluster {
		return nil
	}
	return fault.New(fault.Usage, "run %s belongs to cluster %s; fleet %s here is cluster %s", r.ID, r.Cluster, r.Fleet, q.Cluster).WithHint("run this where %s is reached", r.Cluster)
}

// acquire takes the right to issue attempts of the run. Whoever else has it is
// submitting right now: it is worth waiting for.
func (q *Queue) acquire(ctx context.Context, r *ledger.Run) (*durable.Lease, error) {
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		lease, err := q.Ledger.Lease(q.Keeper, r)
		if err == nil || !errors.Is(err, durable.ErrHeld) {
			return lease, err
		}
		select {
		case <-wait.Done():
			return nil, fault.New(fault.Internal, "another process is submitting %s: %v", r.ID, err).WithHint("tp job status %s", r.ID)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// submit is one attempt: intent, request, outcome.
func (q *Queue) submit(ctx context.Context, lease *durable.Lease, r *ledger.Run, s Staged) error {
	req := s.plan.Fixed.Request
	n := 1
	if last, ok := r.Last(); ok {
		n = last.N // the script carries its attempt's number: the same script is the same attempt
	}
	intent := ledger.Event{Type: ledger.Intent, Attempt: n, Token: ledger.NewToken(), JobName: req.Name}
	if err := q.Ledger.AppendUnder(lease, r, intent); err != nil {
		return err
	}
	crash("after intent")
	sub, err := q.Client.Submit(ctx, req)
	crash("after submit")
	for _, w := range sub.Warnings {
		q.warn(w)
	}
	if err == nil {
		if err := q.Ledger.Append(r, ledger.Event{Type: ledger.Submitted, Attempt: n, JobID: sub.ID, JobName: req.Name}); err != nil {
			return fault.New(fault.Internal, "job %s is queued, but that could not be written down: %w", sub.ID, err).
				WithHint("make room, then tp tick: it finds the job by its name")
		}
		return nil
	}
	var lost *slurm.Unreachable
	if !errors.As(err, &lost) || lost.NotSent {
		if e := q.Ledger.Append(r, ledger.Event{Type: ledger.Refused, Attempt: n, Message: err.Error()}); e != nil {
			return errors.Join(refusal(err), e)
		}
		return refusal(err)
	}
	if e := q.Ledger.Append(r, ledger.Event{Type: ledger.Doubt, Attempt: n, Message: err.Error()}); e != nil {
		return fault.New(fault.Unreachable, "%w; whether the job was queued is not known, and that could not be written down: %v", err, e).
			WithHint("make room, then tp tick")
	}
	attempt, _ := r.Last()
	if found, lookErr := q.look(ctx, r, attempt); lookErr == nil && found {
		return nil
	}
	return fault.New(fault.Unreachable, "%w; whether the job was queued is not known yet", err).
		WithHint("tp tick finds out, and tp submit --plan %s submits only if there is no job", s.plan.Short())
}

// crash lets a test end the process at one named step, as kill -9 would.
func crash(step string) {
	if os.Getenv("TP_TEST_CRASH") == step {
		os.Exit(137)
	}
}

// refusal is a submission that certainly made no job.
func refusal(err error) error {
	var auth *slurm.AuthError
	var lost *slurm.Unreachable
	switch {
	case errors.As(err, &lost):
		return fault.New(fault.Unreachable, "nothing was submitted: %w", err).WithHint("tp doctor")
	case errors.As(err, &auth):
		return fault.New(fault.Refused, "nothing was submitted: %w", err).WithHint("scontrol token")
	}
	return fault.New(fault.Refused, "the cluster refused the job: %w", err).WithHint("tp plan shows the request; tp fleet show what there is")
}

func (q *Queue) warn(text string) {
	if q.Warn != nil {
		q.Warn(text)
	}
}

func (q *Queue) now() time.Time {
	if q.Now != nil {
		return q.Now()
	}
	return time.Now()
}
