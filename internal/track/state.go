// Package track keeps runs in step with the cluster: one batched question per
// round, one table from Slurm's states to ours, and logs that are followed
// over restarts and after the job has left the controller.
package track

import (
	"fmt"
	"slices"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// Seen is a run's state as Slurm or the end marker tells it.
type Seen struct {
	State  ledger.State
	Reason string
	Gate   string
	// Detail is what a waiting job waits for: its dependency in Slurm's words, or
	// when it may begin. "" where that was not said.
	Detail string
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
// runs the batch script, so its state is the run's, and its end the run's end;
// what holds or has hit another component is the reason.
func FromJobs(jobs []slurm.Job) Seen {
	if len(jobs) == 0 {
		return Seen{State: ledger.Unknown, Reason: "Slurm does not know the job"}
	}
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b slurm.Job) int { return a.HetOffset - b.HetOffset })
	lead := jobs[0]
	if lead.HetOffset != 0 {
		return Seen{State: ledger.Unknown, Reason: "Slurm does not know component 0, which runs the script"}
	}
	state, known := table[lead.State]
	switch {
	case lead.State == slurm.Revoked || lead.Has(string(slurm.Revoked)) && !state.Final():
		return Seen{State: ledger.Unknown, Reason: "Slurm state REVOKED: another cluster of the federation has the job"}
	case !known:
		return Seen{State: ledger.Unknown, Reason: "Slurm state " + string(lead.State)}
	case state == ledger.Running && lead.Has("STOPPED"):
		state = ledger.Paused
	}
	seen := Seen{State: state, ExitCode: lead.ExitCode}
	switch {
	case state == ledger.Queued:
		return waiting(jobs)
	case state.Final():
		// Also while it is COMPLETING: the script has ended, nodes are being cleaned.
		seen.Reason = reason(lead)
		seen.Detail = detail(seen.Reason, lead)
		if state == ledger.Succeeded {
			return seen
		}
		for _, j := range jobs[1:] {
			if seen.Reason == "" && j.State.Ended() && j.State != slurm.Completed {
				seen.Reason = reason(j)
			}
		}
	default:
		// The script is about to notice that a component is gone, and to end the run.
		for _, j := range jobs[1:] {
			if seen.Reason == "" && j.State.Ended() && j.State != slurm.Completed {
				seen.Reason = fmt.Sprintf("component %d is %s", j.HetOffset, j.State)
			}
		}
	}
	return seen
}

// waiting is a queued job: held, if any component is, else waiting for the first
// component whose reason belongs to a gate.
func waiting(jobs []slurm.Job) Seen {
	seen := Seen{State: ledger.Accepted} // until the scheduler has looked at it
	for _, j := range jobs {
		why := j.Reason
		if why == "None" {
			why = ""
		}
		if why == "" && (j.Has("REQUEUE_HOLD") || j.Has("SPECIAL_EXIT") || j.Has("RESV_DEL_HOLD")) {
			why = j.Flags[0]
		}
		if why == "" {
			continue
		}
		if held[why] {
			return Seen{State: ledger.Queued, Reason: why, Gate: gate(why, j)}
		}
		if seen.Gate == "" {
			seen.State, seen.Reason, seen.Gate = ledger.Queued, why, gate(why, j)
			seen.Detail = detail(why, j)
		}
	}
	return seen
}

func gate(why string, j slurm.Job) string {
	return gates.Why(why, gates.Job{Description: j.Description}).Gate
}

func detail(why string, j slurm.Job) string {
	switch why {
	case "BeginTime":
		// Of a job that was requeued Slurm tells no more than the start.
		for _, at := range []time.Time{j.Eligible, j.Start} {
			if !at.IsZero() {
				return at.UTC().Format(time.RFC3339)
			}
		}
	case "Dependency", neverSatisfied:
		return j.Dependency
	}
	return ""
}

// neverSatisfied is the reason of a job that can never start. Slurm may cancel
// it for that (kill_invalid_depend), and keeps the reason.
const neverSatisfied = "DependencyNeverSatisfied"

// held are reasons that somebody must lift, whatever else a job waits for.
var held = map[string]bool{
	"JobHeldUser": true, "JobHeldAdmin": true, "job requeued in held state": true, "launch failed requeued held": true, "MaxRequeueLimit": true,
	"REQUEUE_HOLD": true, "SPECIAL_EXIT": true, "RESV_DEL_HOLD": true,
}

func reason(j slurm.Job) string {
	switch j.State {
	case slurm.Completed:
		return ""
	case slurm.Cancelled: // it keeps the reason for which it once waited
		if j.Reason == neverSatisfied {
			return j.Reason
		}
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
