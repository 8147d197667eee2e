package ledger

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/slurm"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		l, err := Open(Options{Roots: []string{os.Args[3]}, User: "u"})
		for i := 0; err == nil; i++ {
			switch os.Args[2] {
			case "create": // until it is killed
				if i == 0 {
					fmt.Println("ready")
				}
				_, err = l.Create(Header{Experiment: "e"}, files)
			case "append": // 50 events to one run, among others
				var r *Run
				if r, err = l.Find(os.Args[4]); err == nil {
					err = l.Append(r, Event{Type: Note, Message: os.Args[5]})
				}
				if i == 49 {
					os.Exit(0)
				}
			case "once":
				id, err := l.Once("key", NewID())
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(id)
				os.Exit(0)
			}
		}
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var files = map[string][]byte{"plan.json": []byte("{}"), "script.sh": []byte("#!/bin/bash\n"), "sub/x": nil}

func open(t testing.TB, root string) *Ledger {
	t.Helper()
	l, err := Open(Options{Roots: []string{root}, User: "u", StateDir: filepath.Join(root, ".state"), Host: "login1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func create(t testing.TB, l *Ledger, h Header) *Run {
	t.Helper()
	r, err := l.Create(h, files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func add(t testing.TB, l *Ledger, r *Run, events ...Event) {
	t.Helper()
	for _, e := range events {
		if err := l.Append(r, e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreateAndLoad(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	l := open(t, t.TempDir())
	r := create(t, l, Header{Experiment: "../训练 a", GPUs: 8, Tags: []string{"x"}})
	if got, want := filepath.Base(filepath.Dir(r.Dir)), "_.____a"; got != want {
		t.Errorf("slug %q, want %q", got, want)
	}
	add(t, l, r, Event{Type: Intent, Attempt: 1, Token: NewToken(), JobName: r.JobName()}, Event{Type: Submitted, Attempt: 1, JobID: 12})
	again, err := l.Load(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Experiment != "../训练 a" || again.User != "u" || again.State != Accepted || again.JobID() != 12 || again.GPUs != 8 || again.Dir != r.Dir || again.Seq != 3 {
		t.Errorf("loaded %+v", again)
	}
	err = filepath.WalkDir(r.Dir, func(path string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(Header{ID: r.ID, Experiment: "../训练 a"}, nil); !errors.Is(err, durable.ErrExist) {
		t.Errorf("the same id again: %v", err)
	}
	for _, name := range []string{"../x", "/x", "events.jsonl", "events.h.jsonl"} {
		if _, err := l.Create(Header{Experiment: "e"}, map[string][]byte{name: nil}); err == nil {
			t.Errorf("file %q was written", name)
		}
	}
}

func TestTornLine(t *testing.T) {
	l := open(t, t.TempDir())
	r := create(t, l, Header{Experiment: "e"})
	add(t, l, r, Event{Type: Intent, Attempt: 1})
	path := filepath.Join(r.Dir, mainEvents)
	data, _ := os.ReadFile(path)
	os.WriteFile(path, append(data, `{"type":"submi`...), 0o600)
	r, err := l.Load(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, open := r.Unsettled(); !open {
		t.Error("the intent is not open")
	}
	add(t, l, r, Event{Type: Submitted, Attempt: 1, JobID: 5})
	if r, _ = l.Load(r.Dir); r.JobID() != 5 {
		t.Errorf("the line after the torn one is lost: %+v", r)
	}
}

func TestOtherHostsWriteTheirOwnFile(t *testing.T) {
	root := t.TempDir()
	l1 := open(t, root)
	l2, _ := Open(Options{Roots: []string{root}, User: "u", Host: "login2/..", StateDir: filepath.Join(root, ".state"),
		Now: func() time.Time { return time.Unix(0, 0) }}) // its clock is wrong by decades
	defer l2.Close()
	r1 := create(t, l1, Header{Experiment: "e"})
	if got, _ := l1.List(Filter{}); len(got) != 1 || got[0].State != NotSubmitted {
		t.Fatalf("list %v", got)
	}
	add(t, l1, r1, Event{Type: Intent, Attempt: 1}, Event{Type: Submitted, Attempt: 1, JobID: 1})
	r2, err := l2.Find(string(r1.ID))
	if err != nil {
		t.Fatal(err)
	}
	add(t, l2, r2, Event{Type: Changed, State: Running})
	add(t, l1, r1, Event{Type: Changed, State: Succeeded})
	if r1.State != Succeeded || r1.Seq != 5 {
		t.Errorf("state %s, seq %d", r1.State, r1.Seq)
	}
	add(t, l2, r2, Event{Type: Changed, State: Queued})
	for _, l := range []*Ledger{l1, l2, l1} { // the second look comes from the index
		if got, _ := l.List(Filter{}); len(got) != 1 || got[0].State != Queued {
			t.Errorf("list %+v", got)
		}
	}
	if names, _ := otherEvents(r1.Dir); len(names) != 1 || names[0] != "events.login2_...jsonl" {
		t.Errorf("files %v", names)
	}
}

func TestEightWriters(t *testing.T) {
	root := t.TempDir()
	l := open(t, root)
	r := create(t, l, Header{Experiment: "e"})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			out, err := exec.Command(os.Args[0], "child", "append", root, string(r.ID), fmt.Sprint(i)).CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	events, err := ReadEvents(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range events {
		count[e.Message]++
	}
	for i := range 8 {
		if count[fmt.Sprint(i)] != 50 {
			t.Errorf("writer %d: %d of 50 events", i, count[fmt.Sprint(i)])
		}
	}
}

func TestCreateKilled(t *testing.T) {
	root := t.TempDir()
	for round := range 5 {
		cmd := exec.Command(os.Args[0], "child", "create", root)
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.Read(make([]byte, 8))
		<-time.After(time.Duration(5+7*round) * time.Millisecond)
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
	}
	l := open(t, root)
	runs, err := l.List(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.State != NotSubmitted {
			t.Errorf("%s: %s %s", r.ID, r.State, r.Reason)
		}
		for name := range files {
			if _, err := os.Stat(filepath.Join(r.Dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("%d whole runs", len(runs))
}

func TestOnce(t *testing.T) {
	root := t.TempDir()
	winners := make([]string, 8)
	var wg sync.WaitGroup
	for i := range winners {
		wg.Go(func() {
			out, err := exec.Command(os.Args[0], "child", "once", root).Output()
			if err != nil {
				t.Error(err)
			}
			winners[i] = strings.TrimSpace(string(out))
		})
	}
	wg.Wait()
	for _, w := range winners {
		if w != winners[0] || !ID(w).Valid() {
			t.Fatalf("winners %v", winners)
		}
	}
	moved, _ := Open(Options{Roots: []string{t.TempDir(), root}, User: "u"})
	if w, err := moved.Once("key", NewID()); string(w) != winners[0] || err != nil {
		t.Errorf("after the run root moved: %s, %v", w, err)
	}
	if w, err := moved.Once("another key", "run-0123456789ab"); w != "run-0123456789ab" || err != nil {
		t.Errorf("another key: %s, %v", w, err)
	}
}

func TestFind(t *testing.T) {
	l := open(t, t.TempDir())
	create(t, l, Header{ID: "run-4f2a91000000", Experiment: "a"})
	create(t, l, Header{ID: "run-4f2a92000000", Experiment: "b"})
	for _, p := range []string{"run-4f2a91", "4f2a91", "4F2A91000000", " run-4f2a91000000 "} {
		if r, err := l.Find(p); err != nil || r.ID != "run-4f2a91000000" {
			t.Errorf("%q: %v, %v", p, r, err)
		}
	}
	for p, want := range map[string]string{"4f2a": "fits 2 runs:\n  run-4f2a91000000  a\n  run-4f2a92000000  b", "5": "no run run-5",
		"": "is no run id", "run-": "is no run id", "../x": "is no run id", "grpo": "is no run id"} {
		_, err := l.Find(p)
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", p, err, want)
		}
	}
}

func TestRootOfOthers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a directory of somebody else")
	}
	root := t.TempDir()
	os.Mkdir(filepath.Join(root, "u"), 0o700)
	os.Chown(filepath.Join(root, "u"), 12345, -1)
	if _, err := open(t, root).Create(Header{Experiment: "e"}, nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("somebody else's directory: %v", err)
	}
	os.Chown(filepath.Join(root, "u"), 0, -1)
	os.Chmod(filepath.Join(root, "u"), 0o777)
	if _, err := open(t, root).Create(Header{Experiment: "e"}, nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a directory that all may write: %v", err)
	}
	os.Chown(root, 12345, -1)
	if _, err := open(t, filepath.Join(root, "no", "runs")).Create(Header{Experiment: "e"}, nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a root to be made in somebody else's directory: %v", err)
	}
}

func TestMarks(t *testing.T) {
	l := open(t, t.TempDir())
	r := create(t, l, Header{Experiment: "e"})
	put := func(name, text string) { os.WriteFile(filepath.Join(r.Dir, name), []byte(text), 0o600) }
	put("ends/1.0.json", `{"attempt":1,"restart":0,"job_id":12,"exit":0,"state":"PREEMPTED","role":"train","pool":"train","node":"h200-1","message":"m","time":1733000000,"new":[]}`)
	put("ends/1.1.json", `{"attempt":"1","restart":"1","job_id":"12","exit":"143","state":"TIMEOUT","time":"1733000000.5"}`)
	put("ends/2.0.json", `{"attempt":2,"sta`)
	put("ends/3.0.json", `{"attempt":3,"state":"GLORIOUS"}`)
	put("ends/4.0.json", strings.Repeat(" ", maxMark+1))
	put("ends/.tp-tmp-1.json", `{}`)
	ends, err := Ends(r.Dir)
	if err != nil || len(ends) != 5 {
		t.Fatalf("%+v, %v", ends, err)
	}
	if e := ends[0]; e.JobID != 12 || e.State != Preempted || e.Node != "h200-1" || e.Time.Unix() != 1733000000 {
		t.Errorf("first %+v", e)
	}
	if e := ends[1]; e.Restart != 1 || e.Exit != 143 || e.State != Timeout || e.Time.Nanosecond() != 5e8 {
		t.Errorf("second %+v", e)
	}
	for _, e := range ends[2:] {
		if e.State != Unknown || e.Attempt < 2 {
			t.Errorf("%+v", e)
		}
	}
	put("claims/1", "12\n")
	put("claims/2", "")
	put("claims/3.17", "99\n")
	claims, err := Claims(r.Dir)
	if want := []Claim{{1, -1, 12}, {2, -1, 0}, {3, 17, 99}}; err != nil || fmt.Sprint(claims) != fmt.Sprint(want) {
		t.Errorf("claims %v, %v", claims, err)
	}
	os.RemoveAll(filepath.Join(r.Dir, "ends"))
	if ends, err := Ends(r.Dir); len(ends) != 0 || err != nil {
		t.Errorf("no directory: %v, %v", ends, err)
	}
}

func TestLeaseStopsSecondWriter(t *testing.T) {
	l := open(t, t.TempDir())
	r := create(t, l, Header{Experiment: "e"})
	k := &durable.Keeper{Owner: "tp tick"}
	lease, err := l.Lease(k, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lease(new(durable.Keeper), r); !errors.Is(err, durable.ErrHeld) {
		t.Errorf("second owner: %v", err)
	}
	if err := l.AppendUnder(lease, r, Event{Type: Intent, Attempt: 1}); err != nil {
		t.Error(err)
	}
	os.WriteFile(filepath.Join(r.Dir, "lease", "2"), []byte("{}"), 0o600)
	if err := l.AppendUnder(lease, r, Event{Type: Intent, Attempt: 2}); !errors.Is(err, durable.ErrLost) {
		t.Errorf("after a take-over: %v", err)
	}
	if a, _ := r.Last(); a.N != 1 || a.JobID != slurm.JobID(0) {
		t.Errorf("attempt %+v", a)
	}
}
