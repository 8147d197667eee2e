package view

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

func init() { time.Local = time.UTC }

var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// golden compares with testdata/<name>.golden. Whatever a view is given, what
// it writes has no control character but the newline, and no line with blanks
// at its end.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for i, line := range strings.Split(got, "\n") {
		if bad := strings.IndexFunc(line, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\u2066' }); bad >= 0 {
			t.Errorf("line %d has a control character: %q", i+1, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in blanks: %q", i+1, line)
		}
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/view -update rewrites it); got\n%s", path, got)
	}
}

// evil is what a hostile lab or cluster would write.
const evil = "\x1b]0;owned\x07\x1b[2J\x9b31m a\tb\nrm -rf / \u202etxt.exe\u2066"

func twoPools(name, text string) *plan.Plan {
	return &plan.Plan{
		Digest: strings.Repeat("0123456789abcdef", 4), Issued: now, Expires: now.Add(30 * time.Minute),
		Fixed: plan.Fixed{
			RunID: "run-0123456789ab", RunDir: "/runs/ann/x/run-0123456789ab", Fleet: "main", Cluster: "lab",
			Spec: &spec.Spec{Name: name, Description: text, Recipe: spec.Recipe{Name: "custom/custom", Version: text}},
			Pools: []spec.Pool{
				{Name: "train", Roles: []string{"train", "评估"}, Series: "h200", Nodes: 2, GPUsPerNode: 8, CPUsPerNode: 128, MemoryMiB: 2 << 20, Partition: "gpu", TimeMinutes: 1500, Account: "研究组", QOS: "high"},
				{Name: "reward", Roles: []string{"reward"}, Series: "cpu", Nodes: 1, CPUsPerNode: 16, Partition: text, TimeMinutes: int(slurm.Unlimited)},
			},
			Request: &slurm.Request{Components: make([]slurm.Component, 2)},
			Bundle:  plan.Bundle{Files: 2000, Bytes: 123456789, Store: "s3://bucket/tp at http://s3"},
		},
		Observed: plan.Observed{
			Release: "24.11.5", Transport: "slurmrestd v0.0.42 at unix:///run/rest.sock", NewBytes: 512,
			Provenance: spec.Provenance{Commit: strings.Repeat("ab", 20), Branch: text, Dirty: true, Changed: []string{"a.py", text}, Untracked: []string{"数据.txt", text}},
			Verdicts: []gates.Verdict{
				{Gate: "admission", Code: "admission", Level: gates.Pass},
				{Gate: "offlineSeries", Code: "offlineSeries", Level: gates.Pass},
				{Gate: "capacity", Code: "capacity.busy", Level: gates.Wait, Pool: "train", Asked: "16 GPUs", Found: text, Until: now.Add(time.Hour), Remedy: text},
				{Gate: "maintenance", Code: "maintenance.unknown", Level: gates.Unknown, Found: "the cluster could not be asked"},
			},
			Warnings: []string{text},
		},
	}
}

func TestPlan(t *testing.T) {
	for name, p := range map[string]*plan.Plan{"plan": twoPools("训练-grpo", "强化学习 🚀 first try"), "plan-hostile": twoPools(evil, evil)} {
		var b strings.Builder
		Plan(&b, 0, p, now)
		golden(t, name, b.String())
	}
}

// On a terminal no line is longer than it is wide, but for words that are.
func TestPlanFitsTheTerminal(t *testing.T) {
	p := twoPools("grpo", "")
	p.Observed.DefaultAccount = "research"
	p.Observed.Warnings = []string{strings.Repeat("many words ", 30)}
	p.Fixed.Pools[0].QOS = "a-qos-with-a-name-that-makes-the-table-wide"
	for _, width := range []int{80, 100, 120} {
		var b strings.Builder
		Plan(&b, width, p, now)
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimRight(line, "\n"); ui.Width(line) > width && !strings.Contains(line, p.Digest) {
				t.Errorf("%d columns in %d: %s", ui.Width(line), width, line)
			}
		}
		for _, want := range []string{"research (default)", "a-qos-with-a-name"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%d: no %s in\n%s", width, want, b.String())
			}
		}
	}
}

// A container is shown whole: image, digest or its lack, what starts it, mounts.
func TestPlanInAContainer(t *testing.T) {
	p := twoPools("x", "y")
	image, err := spec.ParseImage("registry.example.org/ml/verl:0.9")
	if err != nil {
		t.Fatal(err)
	}
	p.Fixed.Runtime = spec.Runtime{Name: "verl-0.9.0", Origin: "/etc/tp/site.toml:3", Container: spec.Pyxis, Image: image, Credentials: "/home/ann/.config/enroot", Home: true,
		Mounts: []spec.Mount{{Source: "/shared/data", Target: "/data", ReadOnly: true, Origin: evil}, {Source: "/runs/x", Target: "/runs/x", Origin: "run directory"}}}
	var b strings.Builder
	Plan(&b, 0, p, now)
	golden(t, "plan-container", b.String())
}

func TestPlanWithoutACluster(t *testing.T) {
	p := twoPools("x", "")
	p.Fixed.Cluster, p.Observed = "", plan.Observed{}
	p.Fixed.Request.Components = p.Fixed.Request.Components[:1]
	p.Fixed.Pools = p.Fixed.Pools[:1]
	var b strings.Builder
	Plan(&b, 0, p, now.Add(time.Hour))
	golden(t, "plan-offline", b.String())
}

func runs(text string) []*ledger.Run {
	at := func(ago time.Duration, id string, exp string, s ledger.State, reason string, gpus int) *ledger.Run {
		return &ledger.Run{Header: ledger.Header{ID: ledger.ID(id), Experiment: exp, Created: now.Add(-ago), GPUs: gpus}, State: s, Reason: reason}
	}
	list := []*ledger.Run{
		at(3*time.Second, "run-000000000001", "grpo", ledger.NotSubmitted, "", 8),
		at(90*time.Second, "run-000000000002", "训练-多机", ledger.Queued, "QOSMaxGRESPerUser", 128),
		at(5*time.Hour, "run-000000000003", text, ledger.Failed, text, 0),
		at(50*time.Hour, "run-000000000004", "e", ledger.Unknown, "Slurm no longer knows job 7", 1024),
		at(-time.Minute, "run-000000000005", "clock is behind", ledger.Running, "", 1),
	}
	list[1].Gate = "userQuota"
	list[1].Attempts = []ledger.Attempt{{N: 1, JobID: 4294967293}}
	return list
}

func TestRuns(t *testing.T) {
	for name, text := range map[string]string{"runs": "sft", "runs-hostile": evil} {
		s, b, _ := ui.Test("")
		if err := Runs(s, runs(text), now); err != nil {
			t.Error(err)
		}
		golden(t, name, b.String())
	}
}

// Columns stay straight whatever alphabet a name is written in.
func TestColumnsAreAlignedByWidth(t *testing.T) {
	s, b, _ := ui.Test("")
	if err := Runs(s, runs("sft")[:2], now); err != nil {
		t.Error(err)
	}
	lines := strings.Split(b.String(), "\n")
	column := func(line, word string) int { return ui.Width(line[:strings.Index(line, word)]) }
	if head := column(lines[0], "state"); column(lines[1], "CREATED") != head || column(lines[2], "QUEUED") != head {
		t.Errorf("columns differ:\n%s", b.String())
	}
}

func TestRun(t *testing.T) {
	for name, text := range map[string]string{"run": "train failed on h200-1", "run-hostile": evil} {
		dir := t.TempDir()
		r := &ledger.Run{
			Header: ledger.Header{ID: "run-000000000001", Experiment: "训练", Recipe: "custom/custom", Fleet: "main", Cluster: "lab", Dir: dir, GPUs: 16, Created: now.Add(-time.Hour),
				Pools: []spec.Pool{{Name: text, Roles: []string{"train"}, Series: "h200", Nodes: 2, GPUsPerNode: 8, Partition: "gpu"}}},
			State: ledger.Failed, Reason: text,
			Attempts: []ledger.Attempt{
				{N: 1, Outcome: ledger.WasDenied},
				{N: 2, JobID: 12, Submitted: now.Add(-time.Hour), Started: now.Add(-50 * time.Minute), Ended: now.Add(-10 * time.Minute)},
				{N: 3, JobID: 13, Submitted: now.Add(-time.Minute)},
			},
		}
		if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
		metrics := fmt.Sprintf("{\"step\": 1, \"loss\": 3}\n{\"step\": 20, \"loss\": 1.23456789, \"time\": 5, \"lr\": 1e-5, %q: 4, \"text\": \"no\"}\n{torn", text)
		if name == "run-hostile" { // %q is Go's quoting, not JSON's
			metrics = "{\"step\": 2, \"\\u001b[2Jloss\": 1}\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "out", "metrics.jsonl"), []byte(metrics), 0o644); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		Run(&b, r, now)
		golden(t, name, strings.ReplaceAll(b.String(), dir, "/runs/x"))
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59500 * time.Millisecond: "1m0s", 59 * time.Minute: "59m0s", time.Hour: "1h0m", 25 * time.Hour: "1d1h", 400 * 24 * time.Hour: "400d0h",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 50: "3072.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// The job is named in what to type, and a dead dependency also after the end.
func TestWhyOfARun(t *testing.T) {
	for _, c := range []struct {
		r    ledger.Run
		want string
	}{
		{ledger.Run{State: ledger.Queued, Reason: "JobHeldUser", Attempts: []ledger.Attempt{{JobID: 5941}}}, "you hold it: scontrol release 5941"},
		{ledger.Run{State: ledger.Queued, Reason: "BeginTime", Detail: time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local).UTC().Format(time.RFC3339)}, "it begins at 2026-03-01 12:00:00 at the earliest"},
		{ledger.Run{State: ledger.Cancelled, Reason: "DependencyNeverSatisfied", Detail: "afterok:7(failed)"}, "a job it depends on failed: it will never start (it waited for job 7 to succeed)"},
		{ledger.Run{State: ledger.Failed, Reason: "JobHeldUser"}, "JobHeldUser"},
		{ledger.Run{State: ledger.Cancelled, Reason: "cancelled after 9 s"}, "cancelled after 9 s"},
	} {
		if got := Why(&c.r).Sentence; got != c.want {
			t.Errorf("%s %s: %q, wanted %q", c.r.State, c.r.Reason, got, c.want)
		}
	}
}
