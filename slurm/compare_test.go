package slurm

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// full has a value in every field that a cluster can report.
func full() *Request {
	return &Request{
		Name: "n", Comment: "tp:x", WorkDir: "/w", Output: "/w/%j.out", Error: "/w/%j.err",
		Begin: time.Unix(2000000000, 0), Deadline: time.Unix(2000009000, 0), Dependency: "afterok:7", Requeue: true, Hold: true,
		Nice: 5, Priority: 9, MailType: []string{"END", "FAIL"}, MailUser: "ann", WCKey: "w", Extra: "e", Container: "/c",
		Components: []Component{{
			Partition: "h200", Account: "a", QOS: "q", Reservation: "r", Constraint: "ib", Prefer: "hopper", Licenses: "matlab:1",
			NodeList: []string{"n1"}, Exclude: []string{"n3"}, Nodes: 2, TasksPerNode: 1, CPUsPerTask: 64, Memory: 1000, MemoryPerCPU: 10, MemoryPerGPU: 20,
			GRES: []GRES{{Name: "gpu", Type: "h200", Count: 8}}, TimeLimit: 60, TimeMin: 30, Share: ExclusiveUser, Network: "ib",
			Switches: 1, SwitchWait: time.Minute, Segment: 2,
		}},
	}
}

// job is full as a cluster reports it.
func job() Job {
	return Job{
		ID: 5, Name: "n", Comment: "tp:x", WorkDir: "/w", Output: "/w/5.out", State: Pending, Dependency: "afterok:7(unfulfilled)", Requeue: true,
		Partition: "h200", Account: "a", QOS: "q", Reservation: "r", Constraint: "ib", Licenses: "matlab",
		Required: "n[1]", Excluded: "n[3-4]", Nodes: 2, Tasks: 2, CPUsPerTask: 64, CPUs: 128, Memory: 1000,
		GRES: []GRES{{Name: "gpu", Type: "h200", Count: 8}}, TimeLimit: 45,
		Asked: Asked{
			Error: "/w/%j.err", Eligible: time.Unix(2000000000, 0), Deadline: time.Unix(2000009000, 0), KillInvalid: true,
			Nice: 5, MailType: []string{"FAIL", "END"}, MailUser: "ann", WCKey: "*w", Extra: "e", Container: "/c", Prefer: "hopper",
			MemoryPerCPU: 10, MemoryPerGPU: 20, TimeMin: 30, Share: ExclusiveUser, Network: "ib", Switches: 1, SwitchWait: time.Minute, Segment: 2,
		},
	}
}

// Every field of Request and Component is compared, or named here with the reason.
func TestCompareKnowsEveryField(t *testing.T) {
	nobody := map[string]string{
		"Components": "their number is", "Env": "not reported", "Script": "not reported", "Signal": "not reported",
		"GPUOption": "two spellings of one field", "Array": "the tasks have ids of their own",
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Request](), reflect.TypeFor[Component]()} {
		for f := range of.Fields() {
			if nobody[f.Name] == "" && fieldWords[f.Name] == "" {
				t.Errorf("%s.%s is not compared", of.Name(), f.Name)
			}
		}
	}
	r := full()
	r.Priority, r.Hold = 0, false // a job has one or the other
	j := job()
	j.Priority = 100
	if found := Compare(r, []Job{j}); len(found) > 0 {
		t.Fatalf("what is equal differs: %v", found)
	}
	// A cluster that listened to nothing.
	found := Compare(full(), []Job{{State: Pending, Dependency: "afterok:7", Asked: Asked{Eligible: time.Unix(1, 0), Priority: 3}}})
	missing := map[string]bool{}
	for _, d := range found {
		missing[d.Field] = true
	}
	for name := range fieldWords {
		if !missing[name] && nobody[name] == "" {
			t.Errorf("%s is left out and nothing is said", name)
		}
	}
	for _, d := range Compare(full(), []Job{{State: Pending, Asked: Asked{Untold: []string{"Share", "Extra"}}}}) {
		if d.Field == "Share" || d.Field == "Extra" {
			t.Errorf("%v, and nobody told", d)
		}
	}
}

func TestDifferences(t *testing.T) {
	req := &Request{Name: "n", Comment: "tp:x", WorkDir: "/w", Components: []Component{
		{Partition: "h200", Account: "a", QOS: "q", Reservation: "r", Constraint: "ib", Nodes: 2, TasksPerNode: 1, CPUsPerTask: 64, Memory: 1000, TimeLimit: 60, GRES: []GRES{{Name: "gpu", Type: "h200", Count: 8}}},
		{Partition: "cpu", Nodes: 1, TasksPerNode: 1, TimeLimit: 60},
	}}
	good := func() []Job {
		return []Job{ // accounting may order them otherwise
			{ID: 2, HetJob: 1, HetOffset: 1, Name: "n", Partition: "cpu", Nodes: 1, Tasks: 1, TimeLimit: 60, Account: "default", QOS: "normal"},
			{ID: 1, HetJob: 1, Name: "n", Comment: "tp:x", WorkDir: "/w", Partition: "h200", Account: "a", QOS: "q", Reservation: "r", Constraint: "ib",
				Nodes: 2, Tasks: 2, CPUsPerTask: 64, CPUs: 128, Memory: 1000, TimeLimit: 60, GRES: []GRES{{Name: "gpu", Type: "h200", Count: 8}}},
		}
	}
	if got := Compare(req, good()); got != nil {
		t.Errorf("what was not asked for may be anything: %v", got)
	}
	for _, c := range []struct {
		change func(lead, second *Job)
		want   string
	}{
		{func(j, _ *Job) { j.Name = "m" }, "component 0: name was shown as n, the job has m"},
		{func(j, _ *Job) { j.Partition = "low" }, "component 0: partition was shown as h200, the job has low"},
		{func(_, j *Job) { j.Partition = "low" }, "component 1: partition was shown as cpu, the job has low"},
		{func(j, _ *Job) { j.Nodes = 3 }, "component 0: nodes was shown as 2, the job has 3"},
		{func(j, _ *Job) { j.Tasks = 3 }, "component 0: tasks was shown as 2, the job has 3"},
		{func(j, _ *Job) { j.TimeLimit = 30 }, "component 0: time limit was shown as 0-01:00:00, the job has 0-00:30:00"},
		{func(j, _ *Job) { j.TimeLimit = Unlimited }, "component 0: time limit was shown as 0-01:00:00, the job has UNLIMITED"},
		{func(j, _ *Job) { j.GRES = nil }, "component 0: GRES per node was shown as gpu:h200:8, the job has none"},
		{func(_, j *Job) { j.GRES = []GRES{{Name: "gpu", Count: 1}} }, "component 1: GRES per node was shown as none, the job has gpu::1"},
		{func(j, _ *Job) { j.CPUsPerTask = 32 }, "component 0: CPUs per task was shown as 64, the job has 32"},
		{func(j, _ *Job) { j.CPUsPerTask, j.CPUs = 0, 64 }, "component 0: CPUs per task was shown as 64, the job has 64 on 2 tasks"},
		{func(j, _ *Job) { j.Memory = 1 }, "component 0: memory per node was shown as 1000M, the job has 1M"},
		{func(j, _ *Job) { j.Memory = WholeNode }, "component 0: memory per node was shown as 1000M, the job has all of the node"},
		{func(j, _ *Job) { j.Account = "b" }, "component 0: account was shown as a, the job has b"},
		{func(j, _ *Job) { j.QOS = "b" }, "component 0: QOS was shown as q, the job has b"},
		{func(j, _ *Job) { j.Reservation = "" }, "component 0: reservation was shown as r, the job has none"},
		{func(j, _ *Job) { j.Constraint = "" }, "component 0: constraint was shown as ib, the job has none"},
		{func(j, _ *Job) { j.WorkDir = "/tmp" }, "component 0: work directory was shown as /w, the job has /tmp"},
		{func(j, _ *Job) { j.Comment = "site" }, "component 0: comment was shown as tp:x, the job has site"},
		{func(j, _ *Job) { j.Requeue = true }, "component 0: requeue was shown as false, the job has true"},
	} {
		jobs := good()
		c.change(&jobs[1], &jobs[0])
		if got := Compare(req, jobs); len(got) != 1 || got[0].String() != c.want {
			t.Errorf("got %v, want %q", got, c.want)
		}
	}
	if got := Compare(req, good()[:1]); len(got) != 1 || !strings.Contains(got[0].String(), "shown as 2, the job has 1") {
		t.Errorf("a missing component: %v", got)
	}
}
