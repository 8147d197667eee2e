package gates

import (
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// A remedy of one pool must not change the others.
func TestRemedyOfOnePoolAmongSeveral(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*slurm.Snapshot, *spec.Pool)
		want   string
	}{
		"time":        {func(_ *slurm.Snapshot, p *spec.Pool) { p.TimeMinutes = 601 }, "--time h100=0-10:00:00"},
		"partition":   {func(_ *slurm.Snapshot, p *spec.Pool) { p.Partition = "h10" }, "--partition h100=h100"},
		"CPUs":        {func(_ *slurm.Snapshot, p *spec.Pool) { p.CPUsPerNode = 65 }, "--cpus-per-node h100=64"},
		"memory":      {func(_ *slurm.Snapshot, p *spec.Pool) { p.MemoryMiB = 2000000 }, "--mem h100="},
		"account":     {func(s *slurm.Snapshot, p *spec.Pool) { s.Partitions[1].AllowAccounts, p.Account = []string{"vip"}, "x" }, "--account h100=NAME or --partition h100=NAME"},
		"QOS":         {func(s *slurm.Snapshot, p *spec.Pool) { s.Partitions[1].DenyQOS, p.QOS = []string{"x"}, "x" }, "--qos h100=NAME or --partition h100=NAME"},
		"maintenance": {func(s *slurm.Snapshot, _ *spec.Pool) { s.Reservations = maintenance("h100-[1-2]") }, "--time h100=0-00:29:00"},
		"nodes":       {func(_ *slurm.Snapshot, p *spec.Pool) { p.Nodes = 12 }, "--profile h100=h100:2x8"},
	} {
		snap := cluster()
		pools := []spec.Pool{pool("h200", 1, 8), pool("h100", 1, 8)}
		pools[1].Component = 1
		c.change(snap, &pools[1])
		found := false
		for _, v := range Check(Subject{Pools: pools, Snapshot: snap, Now: noon}, All()...) {
			found = found || v.Pool == "h100" && strings.Contains(v.Remedy, c.want)
		}
		if !found {
			t.Errorf("%s: no remedy %q in %+v", name, c.want, Check(Subject{Pools: pools, Snapshot: snap, Now: noon}, All()...))
		}
	}
}

// With one pool the role need not be named, unless something was said of it.
func TestRemedyOutweighsWhatWasSaidOfTheRole(t *testing.T) {
	p := pool("h200", 1, 8)
	p.TimeMinutes = 601
	s := Subject{Spec: &spec.Spec{}, Pools: []spec.Pool{p}, Snapshot: cluster(), Now: noon}
	s.Spec.Job.Time = spec.PerRole{"": "601m"}
	if got := (Capacity{}).Check(s)[0].Remedy; got != "--time 0-10:00:00" {
		t.Errorf("remedy %q", got)
	}
	s.Spec.Job.Time = spec.PerRole{"": "1h", "h200": "601m"}
	if got := (Capacity{}).Check(s)[0].Remedy; got != "--time h200=0-10:00:00" {
		t.Errorf("remedy %q", got)
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func maintenance(nodes string) []slurm.Reservation {
	return []slurm.Reservation{{Name: "m", Nodes: nodes, Flags: []string{"MAINT"}, Start: noon.Add(30 * time.Minute), End: noon.Add(5 * time.Hour)}}
}

// A sentence is to be acted on: it names the job to release, and the one waited for.
func TestWhyNamesTheJob(t *testing.T) {
	for _, c := range []struct {
		reason string
		job    Job
		want   string
	}{
		{"JobHeldUser", Job{ID: 5941}, "you hold it: scontrol release 5941"},
		{"job requeued in held state", Job{ID: 5941}, "it was requeued and is held: scontrol release 5941"},
		{"BeginTime", Job{ID: 7, Detail: "2026-03-01 12:00:00"}, "it begins at 2026-03-01 12:00:00 at the earliest"},
		{"Dependency", Job{Detail: "afterok:5940(unfulfilled)"}, "it waits for job 5940 to succeed"},
		{"Dependency", Job{Detail: "afterany:7:8(unfulfilled),singleton(unfulfilled)"}, "it waits for jobs 7, 8 to end and other jobs of its name"},
		{"Dependency", Job{Detail: "afternotok:7_*(unfulfilled)?after:8+5(unfulfilled)"}, "it waits for job 7_* to fail or job 8+5 to begin"},
		{"Dependency", Job{Detail: "afterburstbuffer:7(unfulfilled)"}, "it waits for afterburstbuffer:7(unfulfilled)"},
		{"Dependency", Job{}, "a job it depends on has not ended"},
		{"DependencyNeverSatisfied", Job{Detail: "afterok:5940(failed)"}, "a job it depends on failed: it will never start (it waited for job 5940 to succeed)"},
	} {
		if got := Why(c.reason, c.job).Sentence; got != c.want {
			t.Errorf("%s %+v: %q, wanted %q", c.reason, c.job, got, c.want)
		}
	}
}
