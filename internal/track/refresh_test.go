package track

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

type world struct {
	Tracker
	t    *testing.T
	fake *slurmtest.Fake
}

func newWorld(t *testing.T) *world {
	l, err := ledger.Open(ledger.Options{Roots: []string{t.TempDir()}, User: "ann", Host: "login1"})
	if err != nil {
		t.Fatal(err)
	}
	f := &slurmtest.Fake{}
	return &world{Tracker{Client: f, Ledger: l, User: "ann"}, t, f}
}

// queued is a run whose job was submitted some time ago.
func (w *world) queued(id slurm.JobID, ago time.Duration) *ledger.Run {
	w.t.Helper()
	r, err := w.Ledger.Create(ledger.Header{Experiment: "hello"}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	name := r.JobName()
	for _, e := range []ledger.Event{
		{Type: ledger.Intent, Attempt: 1, JobName: name},
		{Type: ledger.Submitted, Attempt: 1, JobID: id, JobName: name, At: time.Now().Add(-ago)},
	} {
		if err := w.Ledger.Append(r, e); err != nil {
			w.t.Fatal(err)
		}
	}
	return r
}

func (w *world) refresh(runs ...*ledger.Run) {
	w.t.Helper()
	if err := w.Refresh(w.t.Context(), runs); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) end(r *ledger.Run, name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, "ends", name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) want(r *ledger.Run, state ledger.State, reason string) {
	w.t.Helper()
	again, err := w.Ledger.Load(r.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.State != state || r.Reason != reason || again.State != state || again.Reason != reason {
		w.t.Errorf("%s %q in memory, %s %q on disk; want %s %q", r.State, r.Reason, again.State, again.Reason, state, reason)
	}
}

func TestRefreshFollowsAJob(t *testing.T) {
	w := newWorld(t)
	r, other := w.queued(7, time.Minute), w.queued(8, time.Minute)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Pending, Reason: "Resources"}, slurm.Job{ID: 8, Name: other.JobName(), State: slurm.Running})
	w.refresh(r, other)
	w.want(r, ledger.Queued, "Resources")
	w.want(other, ledger.Running, "")
	if r.Gate != "capacity" {
		t.Errorf("gate %q", r.Gate)
	}
	began := time.Now().Add(-30 * time.Second).Truncate(time.Second)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Running, Start: began})
	w.refresh(r)
	if a, _ := r.Last(); !a.Started.Equal(began) {
		t.Errorf("started %v, Slurm says %v", a.Started, began)
	}
	ended := began.Add(10 * time.Second)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Completed, End: ended})
	w.refresh(r)
	w.want(r, ledger.Succeeded, "")
	if a, _ := r.Last(); !a.Ended.Equal(ended) {
		t.Errorf("ended %v, Slurm says %v", a.Ended, ended)
	}
}

// The same answer again must not make the ledger longer.
func TestRefreshWritesChangesOnly(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Minute)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Pending, Reason: "Priority"})
	w.refresh(r)
	seq := r.Seq
	w.refresh(r)
	w.refresh(r)
	if r.Seq != seq {
		t.Errorf("%d events for nothing", r.Seq-seq)
	}
}

func TestForgottenJobs(t *testing.T) {
	const done = `{"attempt":1,"restart":0,"job_id":7,"exit":0,"state":"SUCCEEDED","time":1767225600}`
	const failed = `{"attempt":1,"restart":1,"job_id":7,"exit":3,"state":"FAILED","message":"train failed","node":"h200-1"}`
	ended := func(state, message string) string {
		return `{"attempt":1,"restart":0,"job_id":7,"exit":143,"state":"` + state + `","role":"","node":"","message":"` + message + `"}`
	}
	const unknown = "Slurm no longer knows job 7 and it left no end marker"
	for _, c := range []struct {
		name   string
		ago    time.Duration
		ends   map[string]string
		state  ledger.State
		reason string
	}{
		{"with an end marker", time.Hour, map[string]string{"1.0.json": done}, ledger.Succeeded, ""},
		{"the last restart's marker counts", time.Hour, map[string]string{"1.0.json": done, "1.1.json": failed}, ledger.Failed, "train failed on h200-1"},
		{"it reached its time limit", time.Hour, map[string]string{"1.0.json": ended("TIMEOUT", "time limit reached after 60 s")}, ledger.Timeout, "time limit reached after 60 s"},
		{"it was preempted", time.Hour, map[string]string{"1.0.json": ended("PREEMPTED", "preempted after 9 s")}, ledger.Preempted, "preempted after 9 s"},
		{"it was cancelled", time.Hour, map[string]string{"1.0.json": ended("CANCELLED", "cancelled after 9 s")}, ledger.Cancelled, "cancelled after 9 s"},
		{"it says what no script says", time.Hour, map[string]string{"1.0.json": ended("RUNNING", "")}, ledger.Unknown, ""},
		{"a marker of another attempt is not this one's", time.Hour, map[string]string{"2.0.json": `{"attempt":2,"state":"SUCCEEDED"}`}, ledger.Unknown, unknown},
		{"without any trace", time.Hour, nil, ledger.Unknown, unknown},
		{"accounting may be a moment behind", time.Second, nil, ledger.Accepted, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.queued(7, c.ago)
			for name, text := range c.ends {
				w.end(r, name, text)
			}
			w.refresh(r)
			w.want(r, c.state, c.reason)
		})
	}
}

// A broken marker is never a guess.
func TestUnreadableMarkerIsUnknown(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.end(r, "1.0.json", "{torn")
	w.refresh(r)
	if r.State != ledger.Unknown {
		t.Errorf("state %s", r.State)
	}
}

// What was UNKNOWN can be found again: accounting was away, not the job.
func TestUnknownIsNotTheEnd(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.refresh(r)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Running})
	w.refresh(r)
	w.want(r, ledger.Running, "")
}

// Ids are reused: a job of another name is another job.
func TestReusedIDIsAnotherJob(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.fake.Put(slurm.Job{ID: 7, Name: "somebody.else", State: slurm.Failed, Reason: "NonZeroExitCode"})
	w.refresh(r)
	if r.State != ledger.Unknown {
		t.Errorf("state %s: it is not ours", r.State)
	}
}

// The run itself knows which role failed and where.
func TestMarkerRefinesAFailure(t *testing.T) {
	for _, c := range []struct{ name, end, reason string }{
		{"this start", `{"attempt":1,"restart":0,"job_id":7,"exit":3,"state":"FAILED","message":"role train failed with exit code 3","node":"h200-1"}`, "role train failed with exit code 3 on h200-1"},
		{"without a node", `{"attempt":1,"restart":0,"job_id":7,"exit":3,"state":"FAILED","message":"role train failed"}`, "role train failed"},
		{"another job", `{"attempt":1,"restart":0,"job_id":6,"exit":3,"state":"FAILED","message":"old"}`, "NonZeroExitCode"},
		{"it says success, Slurm does not", `{"attempt":1,"restart":0,"job_id":7,"exit":0,"state":"SUCCEEDED","message":"fine"}`, "NonZeroExitCode"},
	} {
		w := newWorld(t)
		r := w.queued(7, time.Hour)
		w.end(r, "1.0.json", c.end)
		w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Failed, Reason: "NonZeroExitCode"})
		w.refresh(r)
		if r.State != ledger.Failed || r.Reason != c.reason {
			t.Errorf("%s: %s %q, want %q", c.name, r.State, r.Reason, c.reason)
		}
	}
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.end(r, "1.0.json", `{"attempt":1,"restart":0,"job_id":7,"exit":3,"state":"FAILED","message":"the start before"}`)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Failed, Reason: "NonZeroExitCode", Restarts: 1})
	w.refresh(r)
	w.want(r, ledger.Failed, "NonZeroExitCode")
}

// Slurm and the marker together say more than either.
func TestMarkerAndSlurmAgree(t *testing.T) {
	const role = `"role":"train","node":"h200-1","message":"role train failed with exit code 137"`
	for _, c := range []struct {
		name   string
		job    slurm.Job
		end    string
		state  ledger.State
		reason string
	}{
		{"out of memory", slurm.Job{State: slurm.OutOfMemory}, `"state":"FAILED","exit":137,` + role, ledger.Failed, "OUT_OF_MEMORY: role train failed with exit code 137 on h200-1"},
		{"a node died", slurm.Job{State: slurm.NodeFail}, `"state":"FAILED","exit":143,"message":"node h100-1 failed after 30 s"`, ledger.Failed, "NODE_FAIL: node h100-1 failed after 30 s"},
		{"time limit", slurm.Job{State: slurm.Timeout, Reason: "TimeLimit"}, `"state":"TIMEOUT","exit":143,"message":"time limit reached after 60 s"`, ledger.Timeout, "time limit reached after 60 s"},
		{"cancelled", slurm.Job{State: slurm.Cancelled}, `"state":"CANCELLED","exit":143,"message":"cancelled after 5 s"`, ledger.Cancelled, "cancelled after 5 s"},
		{"ended within its grace time, not to be requeued", slurm.Job{State: slurm.Failed, Reason: "NonZeroExitCode"}, `"state":"PREEMPTED","exit":143,"message":"preempted, within its grace time, after 9 s"`,
			ledger.Preempted, "preempted, within its grace time, after 9 s"},
		{"cancelled while it ended", slurm.Job{State: slurm.Cancelled}, `"state":"FAILED","exit":137,` + role, ledger.Cancelled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.queued(7, time.Hour)
			w.end(r, "1.0.json", `{"attempt":1,"restart":0,"job_id":7,`+c.end+`}`)
			c.job.ID, c.job.Name = 7, r.JobName()
			w.fake.Put(c.job)
			w.refresh(r)
			w.want(r, c.state, c.reason)
		})
	}
}

// All components of a heterogeneous job are one run, asked for by its leader.
func TestHeterogeneousJobIsOneRun(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	name := r.JobName()
	w.fake.Put(slurm.Job{ID: 8, HetJob: 7, HetOffset: 1, Name: name, State: slurm.Pending, Reason: "Resources"},
		slurm.Job{ID: 7, HetJob: 7, Name: name, State: slurm.Pending, Reason: "None"})
	w.refresh(r)
	w.want(r, ledger.Queued, "Resources")
}

// A cluster that does not answer changes nothing.
func TestSilenceChangesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.fake.OnJobs = &slurm.Unreachable{Op: "show jobs", Via: "memory", Err: errors.New("timed out")}
	if err := w.Refresh(t.Context(), []*ledger.Run{r}); err == nil {
		t.Error("silence must be an error")
	}
	w.want(r, ledger.Accepted, "")
}

func TestFinalRunsAreNotAskedAbout(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Hour)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Completed})
	w.refresh(r)
	w.fake.OnJobs = errors.New("nobody should ask")
	w.refresh(r)
	unsent, err := w.Ledger.Create(ledger.Header{Experiment: "hello"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.refresh(unsent)
	w.want(unsent, ledger.NotSubmitted, "")
}

// A round over a thousand runs is one question, whatever a list of states
// tells, and details are asked for only of what ended or began to wait.
func TestARoundIsOneQuestion(t *testing.T) {
	for _, bare := range []bool{false, true} {
		w := newWorld(t)
		w.fake.Bare = bare
		var runs []*ledger.Run
		for id := slurm.JobID(1); id <= 50; id++ {
			r := w.queued(id, time.Minute)
			w.fake.Put(slurm.Job{ID: id, Name: r.JobName(), State: slurm.Pending, Reason: "Priority"})
			runs = append(runs, r)
		}
		asked := func(wantStates, wantJobs int) {
			t.Helper()
			if states, jobs := w.fake.Asked(); states != wantStates || jobs != wantJobs {
				t.Errorf("bare %v: %d questions for states and %d for jobs, want %d and %d", bare, states, jobs, wantStates, wantJobs)
			}
		}
		w.refresh(runs...)
		once := 0
		if bare {
			once = 1 // all of them, in one question
		}
		asked(1, once)
		w.want(runs[49], ledger.Queued, "Priority")
		w.refresh(runs...)
		asked(2, once)
		w.fake.Put(slurm.Job{ID: 7, Name: runs[6].JobName(), State: slurm.Running}, slurm.Job{ID: 9, Name: runs[8].JobName(), State: slurm.Failed, Reason: "NonZeroExitCode"})
		w.refresh(runs...)
		asked(3, once+1)
		w.want(runs[6], ledger.Running, "")
		w.want(runs[8], ledger.Failed, "NonZeroExitCode")
		w.refresh(runs...)
		asked(4, once+1)
	}
}

// A restart is known to the whole job alone: the marker of the start before it
// must not decide.
func TestEndedJobsAreAskedWhole(t *testing.T) {
	w := newWorld(t)
	w.fake.Bare = true
	r := w.queued(7, time.Hour)
	w.end(r, "1.0.json", `{"attempt":1,"restart":0,"job_id":7,"exit":3,"state":"FAILED","message":"the start before"}`)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Failed, Reason: "NonZeroExitCode", Restarts: 1})
	w.refresh(r)
	w.want(r, ledger.Failed, "NonZeroExitCode")
}

// Another job has the id by now, and a list of states does not say whose it is:
// as soon as it differs it is looked at.
func TestReusedIDInAListOfStates(t *testing.T) {
	w := newWorld(t)
	w.fake.Bare = true
	r := w.queued(7, time.Hour)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Running})
	w.refresh(r)
	w.fake.Put(slurm.Job{ID: 7, Name: "somebody.else", State: slurm.Completed})
	w.refresh(r)
	w.want(r, ledger.Unknown, "Slurm no longer knows job 7 and it left no end marker")
}

// Empty answers right after the submission are no end, and never a reason to
// submit again; nor is an id that was purged.
func TestEmptyAnswersAreNoEnd(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, 5*time.Second)
	for range 3 {
		w.refresh(r)
		w.want(r, ledger.Accepted, "")
	}
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Running})
	w.refresh(r)
	w.want(r, ledger.Running, "")
	if n := w.fake.Submits(); n != 0 {
		t.Errorf("%d submissions", n)
	}
	purged := w.queued(8, time.Hour)
	w.refresh(purged)
	w.want(purged, ledger.Unknown, "Slurm no longer knows job 8 and it left no end marker")
	w.end(purged, "1.0.json", `{"attempt":1,"restart":0,"job_id":8,"exit":0,"state":"SUCCEEDED","time":1767225600}`)
	w.refresh(purged)
	w.want(purged, ledger.Succeeded, "")
	if n := w.fake.Submits(); n != 0 {
		t.Errorf("%d submissions", n)
	}
}

// Accounting writes names its own way.
func TestNamesOfAccounting(t *testing.T) {
	w := newWorld(t)
	r, err := w.Ledger.Create(ledger.Header{Experiment: "hello"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const name = `say "hi" 训练.run-0123456789ab`
	for _, e := range []ledger.Event{{Type: ledger.Intent, Attempt: 1, JobName: name}, {Type: ledger.Submitted, Attempt: 1, JobID: 7, JobName: name, At: time.Now().Add(-time.Hour)}} {
		if err := w.Ledger.Append(r, e); err != nil {
			t.Fatal(err)
		}
	}
	w.fake.Put(slurm.Job{ID: 7, Name: "say `hi` ??????.run-0123456789ab", State: slurm.Completed, FromDB: true})
	w.refresh(r)
	w.want(r, ledger.Succeeded, "")
}

// Slurm ended one component and the script then itself: to Slurm it has failed.
func TestPoolEndedAloneIsNoFailure(t *testing.T) {
	for _, state := range []ledger.State{ledger.Timeout, ledger.Preempted, ledger.Cancelled} {
		w := newWorld(t)
		r := w.queued(7, time.Minute)
		w.end(r, "1.0.json", `{"attempt":1,"restart":0,"job_id":7,"exit":143,"state":"`+string(state)+`","role":"","node":"","message":"pool reward is gone after 9 s"}`)
		w.fake.Put(slurm.Job{ID: 7, HetJob: 7, Name: r.JobName(), State: slurm.Failed, Reason: "NonZeroExitCode", ExitCode: 143},
			slurm.Job{ID: 8, HetJob: 7, HetOffset: 1, Name: r.JobName(), State: slurm.Timeout, Reason: "TimeLimit"})
		w.refresh(r)
		w.want(r, state, "pool reward is gone after 9 s")
	}
}

// A job record names what a run waits for, and Slurm itself cancels one whose
// dependency failed: the record says so only as long as the controller has it.
func TestDeadDependencyIsNamed(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Minute)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Pending, Reason: "Dependency", Dependency: "afterok:6(unfulfilled)"})
	w.refresh(r)
	if r.Detail != "afterok:6(unfulfilled)" {
		t.Errorf("detail %q", r.Detail)
	}
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Cancelled, Reason: "DependencyNeverSatisfied", Dependency: "afterok:6(failed)"})
	w.refresh(r)
	w.want(r, ledger.Cancelled, "DependencyNeverSatisfied")
	if r.Detail != "afterok:6(failed)" {
		t.Errorf("detail %q", r.Detail)
	}

	// It was seen waiting in vain, and then accounting alone is left.
	r = w.queued(8, time.Minute)
	w.fake.Put(slurm.Job{ID: 8, Name: r.JobName(), State: slurm.Pending, Reason: "DependencyNeverSatisfied", Dependency: "afterok:6(failed)"})
	w.refresh(r)
	w.fake.Put(slurm.Job{ID: 8, Name: r.JobName(), State: slurm.Cancelled, Reason: "None", FromDB: true})
	w.refresh(r)
	w.want(r, ledger.Cancelled, "DependencyNeverSatisfied")
	if r.Detail != "afterok:6(failed)" {
		t.Errorf("detail %q", r.Detail)
	}
}

func TestBeginTimeIsNamed(t *testing.T) {
	w := newWorld(t)
	r := w.queued(7, time.Minute)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Pending, Reason: "BeginTime", Asked: slurm.Asked{Eligible: at}})
	w.refresh(r)
	if r.Detail != "2026-03-01T12:00:00Z" {
		t.Errorf("detail %q", r.Detail)
	}
	// What no longer waits for it does not say it.
	w.fake.Put(slurm.Job{ID: 7, Name: r.JobName(), State: slurm.Running})
	w.refresh(r)
	if r.Detail != "" {
		t.Errorf("a running job's detail is %q", r.Detail)
	}
}
