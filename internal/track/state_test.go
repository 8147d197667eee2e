package track

import (
	"testing"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

func TestFromJobs(t *testing.T) {
	for _, c := range []struct {
		name string
		jobs []slurm.Job
		want Seen
	}{
		{"none", nil, Seen{State: ledger.Unknown, Reason: "Slurm does not know the job"}},
		{"pending", []slurm.Job{{State: slurm.Pending, Reason: "Priority"}}, Seen{State: ledger.Queued, Reason: "Priority", Gate: "capacity"}},
		{"pending without a gate", []slurm.Job{{State: slurm.Pending, Reason: "Dependency"}}, Seen{State: ledger.Queued, Reason: "Dependency"}},
		{"configuring", []slurm.Job{{State: slurm.Running, Flags: []string{"CONFIGURING"}}}, Seen{State: ledger.Running}},
		{"running keeps no reason", []slurm.Job{{State: slurm.Running, Reason: "Priority"}}, Seen{State: ledger.Running}},
		{"suspended", []slurm.Job{{State: slurm.Suspended}}, Seen{State: ledger.Paused}},
		{"completed", []slurm.Job{{State: slurm.Completed, Reason: "None"}}, Seen{State: ledger.Succeeded}},
		{"failed", []slurm.Job{{State: slurm.Failed, Reason: "NonZeroExitCode", ExitCode: 3}}, Seen{State: ledger.Failed, Reason: "NonZeroExitCode", ExitCode: 3}},
		{"failed without a reason", []slurm.Job{{State: slurm.Failed, Reason: "None", ExitCode: 1}}, Seen{State: ledger.Failed, ExitCode: 1}},
		{"node fail", []slurm.Job{{State: slurm.NodeFail, Reason: "None"}}, Seen{State: ledger.Failed, Reason: "NODE_FAIL"}},
		{"boot fail", []slurm.Job{{State: slurm.BootFail}}, Seen{State: ledger.Failed, Reason: "BOOT_FAIL"}},
		{"out of memory", []slurm.Job{{State: slurm.OutOfMemory}}, Seen{State: ledger.Failed, Reason: "OUT_OF_MEMORY"}},
		{"timeout", []slurm.Job{{State: slurm.Timeout, Reason: "TimeLimit"}}, Seen{State: ledger.Timeout, Reason: "TimeLimit"}},
		{"deadline", []slurm.Job{{State: slurm.Deadline}}, Seen{State: ledger.Timeout, Reason: "DEADLINE"}},
		{"preempted", []slurm.Job{{State: slurm.Preempted}}, Seen{State: ledger.Preempted}},
		{"cancelled", []slurm.Job{{State: slurm.Cancelled}}, Seen{State: ledger.Cancelled}},
		{"completing", []slurm.Job{{State: slurm.Failed, Flags: []string{"COMPLETING"}, Reason: "NonZeroExitCode"}}, Seen{State: ledger.Failed, Reason: "NonZeroExitCode"}},
		{"completing after success", []slurm.Job{{State: slurm.Completed, Flags: []string{"COMPLETING"}}}, Seen{State: ledger.Succeeded}},
		{"running and completing", []slurm.Job{{State: slurm.Running, Flags: []string{"COMPLETING"}}}, Seen{State: ledger.Running}},
		{"a state of the future", []slurm.Job{{State: "DREAMING"}}, Seen{State: ledger.Unknown, Reason: "Slurm state DREAMING"}},

		// Heterogeneous jobs: component 0 runs the script, wherever it stands in the list.
		{"lead runs, another pends", []slurm.Job{{HetOffset: 1, State: slurm.Pending}, {State: slurm.Running}}, Seen{State: ledger.Running}},
		{"the second component's reason", []slurm.Job{{State: slurm.Pending, Reason: "None"}, {HetOffset: 1, State: slurm.Pending, Reason: "Resources"}},
			Seen{State: ledger.Queued, Reason: "Resources", Gate: "capacity"}},
		{"a held component holds the job, whatever the others wait for", []slurm.Job{{State: slurm.Pending, Reason: "Resources"}, {HetOffset: 1, State: slurm.Pending, Reason: "JobHeldAdmin"}},
			Seen{State: ledger.Queued, Reason: "JobHeldAdmin"}},
		{"held by a requeue that gives no reason", []slurm.Job{{State: slurm.Pending, Reason: "None", Flags: []string{"REQUEUE_HOLD"}}}, Seen{State: ledger.Queued, Reason: "REQUEUE_HOLD"}},
		{"requeued", []slurm.Job{{State: slurm.Pending, Reason: "BeginTime", Flags: []string{"REQUEUED"}}}, Seen{State: ledger.Queued, Reason: "BeginTime", Gate: "scheduleWindow"}},
		{"requeued, not looked at yet", []slurm.Job{{State: slurm.Pending, Flags: []string{"EXPEDITING"}}}, Seen{State: ledger.Accepted}},
		{"stopped by a signal", []slurm.Job{{State: slurm.Running, Flags: []string{"STOPPED"}}}, Seen{State: ledger.Paused}},
		{"another cluster of the federation has it", []slurm.Job{{State: slurm.Pending, Flags: []string{"REVOKED"}}},
			Seen{State: ledger.Unknown, Reason: "Slurm state REVOKED: another cluster of the federation has the job"}},
		{"lead runs, another's node failed", []slurm.Job{{State: slurm.Running}, {HetOffset: 1, State: slurm.NodeFail}}, Seen{State: ledger.Running, Reason: "component 1 is NODE_FAIL"}},
		{"lead runs, another is done", []slurm.Job{{State: slurm.Running}, {HetOffset: 1, State: slurm.Completed}}, Seen{State: ledger.Running}},
		{"lead pends again, another was lost with the node", []slurm.Job{{State: slurm.Pending, Reason: "BeginTime"}, {HetOffset: 1, State: slurm.NodeFail}}, Seen{State: ledger.Queued, Reason: "BeginTime", Gate: "scheduleWindow"}},
		{"component 0 is not known", []slurm.Job{{HetOffset: 1, State: slurm.Running}}, Seen{State: ledger.Unknown, Reason: "Slurm does not know component 0, which runs the script"}},
		{"no reason has a gate: a hold is shown", []slurm.Job{{State: slurm.Pending, Reason: "Dependency"}, {HetOffset: 1, State: slurm.Pending, Reason: "JobHeldUser"}},
			Seen{State: ledger.Queued, Reason: "JobHeldUser"}},
		{"lead succeeded, another was cancelled with it", []slurm.Job{{State: slurm.Completed}, {HetOffset: 1, State: slurm.Cancelled, Reason: "None"}}, Seen{State: ledger.Succeeded}},
		{"another's node failed", []slurm.Job{{State: slurm.Failed, Reason: "None"}, {HetOffset: 1, State: slurm.NodeFail}}, Seen{State: ledger.Failed, Reason: "NODE_FAIL"}},
		{"the lead's own reason comes first", []slurm.Job{{State: slurm.Failed, Reason: "NonZeroExitCode"}, {HetOffset: 1, State: slurm.NodeFail}}, Seen{State: ledger.Failed, Reason: "NonZeroExitCode"}},
	} {
		if got := FromJobs(c.jobs); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Every base state that the vocabulary names has its place in the table, and
// both agree on what is final.
func TestTableIsWhole(t *testing.T) {
	for _, s := range []slurm.State{slurm.Pending, slurm.Running, slurm.Suspended, slurm.Completed, slurm.Cancelled, slurm.Failed, slurm.Timeout,
		slurm.NodeFail, slurm.Preempted, slurm.BootFail, slurm.Deadline, slurm.OutOfMemory} {
		mine, ok := table[s]
		if !ok || mine.Final() != s.Ended() {
			t.Errorf("%s is %q here; ended %v, final %v", s, mine, s.Ended(), mine.Final())
		}
	}
}

func TestFromJobsLeavesItsInputAlone(t *testing.T) {
	jobs := []slurm.Job{{ID: 2, HetOffset: 1, State: slurm.Pending}, {ID: 1, State: slurm.Pending}}
	FromJobs(jobs)
	if jobs[0].ID != 2 {
		t.Error("the caller's list was sorted")
	}
}
