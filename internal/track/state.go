// Package track keeps runs in step with the cluster: one batched question per
// round, one table from Slurm's states to ours, and logs that are followed
// over restarts and after the job has left the controller.
package track

import (
	"slices"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// Seen is a run's state as Slurm or the end marker tells it.
type Seen struct {
	State  ledger.State
	Reason string
	Gate   string
	// ExitCode is the batch script's, where known.
	ExitCode int
}

// table maps Slurm's base states (squeue(1), JOB STATE CODES) onto a run's.
// docs/states.md prints it; a state that is missing gives UNKNOWN with its name.
var table = map[slurm.State]ledger.State{
	slurm.Pending:     ledger.Queued,
	slurm.Running:     ledger.Running,
	slurm.Suspended:   ledger.Paused,
	slurm.Completed:   ledger.Succeeded,
	slurm.Failed:      ledger.Failed,
	slurm.NodeFail:    ledger.Failed,
	slurm.BootFail:    ledger.Failed,
	slurm.OutOfMemory: ledger.Failed,
	slurm.Timeout:     ledger.Timeout,
	slurm.Deadline:    ledger.Timeout,
	slurm.Preempted:   ledger.Preempted,
	slurm.Cancelled:   ledger.Cancelled,
}

// FromJobs is the state of one attempt from all its components. Component 0
// runs the batch script, so its end is the run's; while it pends, any reason
// of any component may be the one that holds.
func FromJobs(jobs []slurm.Job) Seen {
	if len(jobs) == 0 {
		return Seen{State: ledger.Unknown, Reason: "Slurm does not know the job"}
	}
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b slurm.Job) int { return a.HetOffset - b.HetOffset })
	lead := jobs[0]
	state, known := table[lead.State]
	if !known {
		return Seen{State: ledger.Unknown, Reason: "Slurm state " + string(lead.State)}
	}
	seen := Seen{State: state, ExitCode: lead.ExitCode}
	switch {
	case lead.Has("COMPLETING") && state.Final():
		// The script has ended; nodes are being cleaned. The state is final already.
		seen.Reason = reason(lead)
	case state == ledger.Queued:
		seen.State = ledger.Accepted // until the scheduler has looked at it
		for _, j := range jobs {
			if j.Reason == "" || j.Reason == "None" {
				continue
			}
			seen.State, seen.Reason = ledger.Queued, j.Reason
			w := gates.Why(j.Reason, j.Description)
			seen.Gate = w.Gate
			if w.Gate != "" {
				break
			}
		}
	case state.Final():
		seen.Reason = reason(lead)
		if state == ledger.Succeeded {
			return seen
		}
		for _, j := range jobs[1:] {
			if seen.Reason == "" && j.State.Ended() && j.State != slurm.Completed {
				seen.Reason = reason(j)
			}
		}
	}
	return seen
}

func reason(j slurm.Job) string {
	switch j.State {
	case slurm.Completed, slurm.Cancelled: // a cancelled job keeps the reason for which it once waited
		return ""
	case slurm.NodeFail, slurm.BootFail, slurm.OutOfMemory, slurm.Deadline:
		if j.Description != "" {
			return string(j.State) + ": " + j.Description
		}
		return string(j.State)
	}
	if j.Reason == "None" {
		return ""
	}
	return j.Reason
}

// FromEnd is the state by the run's own end marker, for when Slurm has
// forgotten the job.
func FromEnd(e ledger.End) Seen {
	return Seen{State: e.State, Reason: failure(e), ExitCode: e.Exit}
}
