package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// world is one ledger and one cluster in memory.
type world struct {
	t     *testing.T
	root  string
	fake  *slurmtest.Fake
	plans int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, root: t.TempDir(), fake: &slurmtest.Fake{}}
}

func (w *world) ledger() *ledger.Ledger {
	l, err := ledger.Open(ledger.Options{Roots: []string{w.root}, User: "ann", Host: "login1"})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// queue is another process's: nothing is shared but the disk and the cluster.
func (w *world) queue() *Queue {
	return &Queue{Client: w.fake, Ledger: w.ledger(), User: "ann", Keeper: &durable.Keeper{Owner: "test"}, Looks: []time.Duration{}}
}

func (w *world) approved() plan.Approved {
	w.t.Helper()
	w.plans++
	id := ledger.ID(fmt.Sprintf("run-%012x", w.plans))
	profiles := []spec.Profile{{Roles: []string{"train"}, Series: "h200", Devices: 8}, {Roles: []string{"rollout"}, Series: "h100", Devices: 4}}
	p, err := plan.Resolve(plan.Input{
		Spec: &spec.Spec{Experiment: "hello", Name: "hello", Recipe: spec.Recipe{Name: "custom/custom"}, Framework: spec.Framework{Kind: "custom"},
			Roles: []spec.Role{{Name: "train", Driver: true, Body: "true"}, {Name: "rollout", Body: "true"}}, Profiles: profiles,
			Job: spec.Job{Time: spec.PerRole{"": "1h"}}},
		Registry: &site.Registry{Series: []site.Series{
			{Name: "h200", GRES: "gpu:h200", Devices: 8, CPUs: 64, Memory: 800000, Partitions: []string{"h200"}},
			{Name: "h100", GRES: "gpu:h100", Devices: 8, CPUs: 64, Memory: 800000, Partitions: []string{"h100"}}}},
		Fleet: "lab", User: "ann", RunID: string(id), RunDir: ledger.Dir(w.root, "ann", "hello", id), Now: time.Now(),
		Env: []spec.EnvVar{{Name: "PATH", Value: "/bin"}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := plan.Confirm(p, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func objects(context.Context) (map[string][]byte, error) {
	return map[string][]byte{"manifest.json": []byte("{}\n")}, nil
}

func (w *world) stage() Staged {
	w.t.Helper()
	s, err := Stage(w.t.Context(), w.approved(), objects, w.ledger())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// resumed is the run as a later process finds it.
func (w *world) resumed(r *ledger.Run) Staged {
	w.t.Helper()
	l := w.ledger()
	r, err := l.Load(r.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := Resume(l, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) submits(want int) {
	w.t.Helper()
	if got := w.fake.Submits(); got != want {
		w.t.Errorf("%d calls of Submit, want %d", got, want)
	}
}

func outcome(t *testing.T, r *ledger.Run, want ledger.Outcome, state ledger.State) {
	t.Helper()
	a, _ := r.Last()
	if a.Outcome != want || r.State != state {
		t.Errorf("outcome %q, state %s; want %q, %s", a.Outcome, r.State, want, state)
	}
}

func TestStageWritesEverythingOnce(t *testing.T) {
	w := newWorld(t)
	a := w.approved()
	calls := 0
	count := func(ctx context.Context) (map[string][]byte, error) { calls++; return objects(ctx) }
	first, err := Stage(t.Context(), a, count, w.ledger())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plan.json", "script.sh", "provenance.json", "manifest.json", "events.jsonl", "logs", "out", "claims", "ends"} {
		if _, err := os.Stat(filepath.Join(first.Run().Dir, name)); err != nil {
			t.Error(err)
		}
	}
	again, err := Stage(t.Context(), a, count, w.ledger())
	if err != nil || !again.Existed || again.Run().ID != first.Run().ID || calls != 1 {
		t.Errorf("a second yes must give the first run: %v, existed %v, %d uploads", err, again.Existed, calls)
	}
	p, err := Plan(first.Run())
	if err != nil || p.Digest != a.Plan().Digest {
		t.Errorf("plan.json gives %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(first.Run().Dir, "script.sh")); string(text) != a.Plan().Fixed.Request.Script {
		t.Error("script.sh must be the script that was shown")
	}
}

func TestStageNeedsItsObjects(t *testing.T) {
	w := newWorld(t)
	a := w.approved()
	full := errors.New("no space left on device")
	if _, err := Stage(t.Context(), a, func(context.Context) (map[string][]byte, error) { return nil, full }, w.ledger()); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(a.Plan().Fixed.RunDir); err == nil {
		t.Error("no run directory may stand before its objects are durable")
	}
}

func TestSubmit(t *testing.T) {
	w := newWorld(t)
	w.fake.Warn("the site says hello")
	q := w.queue()
	var said []string
	q.Warn = func(text string) { said = append(said, text) }
	s := w.stage()
	r, err := q.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	outcome(t, r, ledger.WasQueued, ledger.Accepted)
	if r.JobID() != 100 || !slices.Equal(said, []string{"the site says hello"}) {
		t.Errorf("job %s, said %q", r.JobID(), said)
	}
	if again, err := w.queue().Submit(t.Context(), s); err != nil || again.JobID() != 100 { // s is as it was before
		t.Errorf("again: %v, %v", again, err)
	}
	if again, err := w.queue().Submit(t.Context(), w.resumed(r)); err != nil || again.JobID() != 100 {
		t.Errorf("from another process: %v, %v", again, err)
	}
	w.submits(1)
}

// The intent must be on disk when the request leaves.
func TestIntentComesFirst(t *testing.T) {
	w := newWorld(t)
	s := w.stage()
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) {
		r, err := w.ledger().Load(s.Run().Dir)
		if err != nil {
			t.Error(err)
		} else if a, open := r.Unsettled(); !open || a.JobName != "hello."+string(r.ID) {
			t.Errorf("at the time of the request the attempt on disk is %+v", a)
		}
		return true, nil
	}
	if _, err := w.queue().Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestRefusalIsSettled(t *testing.T) {
	for name, refusal := range map[string]error{
		"slurm": &slurm.Error{Op: "submit", Number: 2000, Text: "Invalid partition name specified"},
		"token": &slurm.AuthError{Op: "submit", Text: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fake.OnSubmit = func(n int, _ *slurm.Request) (bool, error) {
				if n == 1 {
					return false, refusal
				}
				return true, nil
			}
			s := w.stage()
			r, err := w.queue().Submit(t.Context(), s)
			if fault.CodeOf(err) != fault.Refused || !errors.Is(err, refusal) {
				t.Errorf("error %v", err)
			}
			outcome(t, r, ledger.WasDenied, ledger.Failed)
			if w.fake.Looks() != 0 {
				t.Error("a refusal leaves no doubt, so nothing is looked up")
			}
			r, err = w.queue().Submit(t.Context(), w.resumed(r)) // the user mended it and tries again
			if err != nil {
				t.Fatal(err)
			}
			outcome(t, r, ledger.WasQueued, ledger.Accepted)
			w.submits(2)
		})
	}
}

var cut = &slurm.Unreachable{Op: "submit", Via: "memory", Err: errors.New("connection reset by peer")}

func TestDoubtThenFound(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return true, cut }
	r, err := w.queue().Submit(t.Context(), w.stage())
	if err != nil {
		t.Fatal(err)
	}
	outcome(t, r, ledger.WasQueued, ledger.Accepted)
	if r.JobID() != 100 {
		t.Errorf("job %s", r.JobID())
	}
	w.submits(1)
}

func TestDoubtThenFoundLate(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return true, cut }
	w.fake.Hidden = true
	w.fake.OnLook = func(n int) error { w.fake.Hidden = n < 3; return nil }
	q := w.queue()
	q.Looks = []time.Duration{time.Nanosecond, time.Nanosecond, time.Nanosecond}
	r, err := q.Submit(t.Context(), w.stage())
	if err != nil || r.JobID() != 100 || w.fake.Looks() != 3 {
		t.Errorf("job %s after %d looks: %v", r.JobID(), w.fake.Looks(), err)
	}
	w.submits(1)
}

func TestDoubtThatStays(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(n int, _ *slurm.Request) (bool, error) {
		if n == 1 {
			return false, cut
		}
		return true, nil
	}
	r, err := w.queue().Submit(t.Context(), w.stage())
	if fault.CodeOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "whether the job was queued is not known yet") {
		t.Errorf("error %v", err)
	}
	outcome(t, r, ledger.InDoubt, ledger.Unknown)

	// Within the server's time-out a late request may still arrive.
	r, err = w.queue().Submit(t.Context(), w.resumed(r))
	if fault.CodeOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "a late request could still arrive") {
		t.Errorf("error %v", err)
	}
	w.submits(1)

	// After it, what is not there will not come.
	q := w.queue()
	q.Now = func() time.Time { return time.Now().Add(61 * time.Second) }
	r, err = q.Submit(t.Context(), w.resumed(r))
	if err != nil {
		t.Fatal(err)
	}
	outcome(t, r, ledger.WasQueued, ledger.Accepted)
	if len(r.Attempts) != 1 || r.Attempts[0].N != 1 {
		t.Errorf("the script carries attempt 1, so it must stay attempt 1: %+v", r.Attempts)
	}
	w.submits(2)
}

// The server has the request until its answer was given up, which may be longer
// than its time-out after the intent.
func TestDoubtIsCountedFromItsEnd(t *testing.T) {
	w := newWorld(t)
	s := w.stage()
	q := w.queue()
	doubted := time.Now()
	if err := q.Ledger.Append(s.Run(), ledger.Event{Type: ledger.Intent, Attempt: 1, JobName: "hello", Time: doubted.Add(-65 * time.Second)}); err != nil {
		t.Fatal(err)
	}
	if err := q.Ledger.Append(s.Run(), ledger.Event{Type: ledger.Doubt, Attempt: 1, Message: "timed out", Time: doubted}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Submit(t.Context(), w.resumed(s.Run())); fault.CodeOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "a late request could still arrive") {
		t.Errorf("error %v", err)
	}
	w.submits(0)
}

// A clock that went back makes nobody wait until it has caught up.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	s := w.stage()
	if err := w.ledger().Append(s.Run(), ledger.Event{Type: ledger.Intent, Attempt: 1, JobName: "hello", Time: now.Add(6 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		code  fault.Code
	}{{0, fault.Unreachable}, {59 * time.Second, fault.Unreachable}, {61 * time.Second, fault.OK}} {
		q := w.queue()
		q.Now = func() time.Time { return now.Add(c.after) }
		_, err := q.Submit(t.Context(), w.resumed(s.Run()))
		if fault.CodeOf(err) != c.code || err != nil && strings.Contains(err.Error(), "submitted -") {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
	w.submits(1)
}

// The disk is full when the answer is here: the message says that there is a
// job, and the next one finds it.
func TestOutcomeCannotBeWritten(t *testing.T) {
	for _, answer := range []error{nil, cut} {
		w := newWorld(t)
		s := w.stage()
		events := filepath.Join(s.Run().Dir, "events.jsonl")
		w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) {
			err := os.Rename(events, events+".away")
			return true, errors.Join(answer, err, os.Mkdir(events, 0o700))
		}
		_, err := w.queue().Submit(t.Context(), s)
		var f *fault.Error
		if want := "could not be written down"; !errors.As(err, &f) || !strings.Contains(f.Msg, want) || f.Hint == "" || answer == nil && !strings.Contains(f.Msg, "job 100 is queued") {
			t.Errorf("answer %v: %v", answer, err)
		}
		if err := errors.Join(os.Remove(events), os.Rename(events+".away", events)); err != nil {
			t.Fatal(err)
		}
		if r, err := w.queue().Submit(t.Context(), w.resumed(s.Run())); err != nil || r.JobID() != 100 {
			t.Errorf("afterwards: job %s, %v", r.JobID(), err)
		}
		w.submits(1)
	}
}

// Nothing was sent, so there is nothing to look for and nothing to wait for.
func TestNotSentIsNoDoubt(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(n int, _ *slurm.Request) (bool, error) {
		if n == 1 {
			return false, &slurm.Unreachable{Op: "submit", Via: "memory", NotSent: true, Err: errors.New("connection refused")}
		}
		return true, nil
	}
	r, err := w.queue().Submit(t.Context(), w.stage())
	if fault.CodeOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "nothing was submitted") {
		t.Errorf("error %v", err)
	}
	outcome(t, r, ledger.WasDenied, ledger.Failed)
	if w.fake.Looks() != 0 {
		t.Errorf("%d look-ups", w.fake.Looks())
	}
	if r, err = w.queue().Submit(t.Context(), w.resumed(r)); err != nil || r.JobID() != 100 {
		t.Errorf("again at once: %v, %v", r.JobID(), err)
	}
	w.submits(2)
}

// A look-up that cannot be made is not an answer of "none".
func TestNobodyToAskIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return true, cut }
	w.fake.OnLook = func(int) error { return slurm.ErrCannotLookUp }
	r, err := w.queue().Submit(t.Context(), w.stage())
	if fault.CodeOf(err) != fault.Unreachable {
		t.Errorf("error %v", err)
	}
	q := w.queue()
	q.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err = q.Submit(t.Context(), w.resumed(r)); !errors.Is(err, slurm.ErrCannotLookUp) || fault.CodeOf(err) != fault.Unreachable {
		t.Errorf("error %v", err)
	}
	w.submits(1)
}

// crashed leaves what a process leaves that was killed after its intent.
func (w *world) crashed(s Staged) *ledger.Run {
	w.t.Helper()
	r := s.Run()
	if err := w.ledger().Append(r, ledger.Event{Type: ledger.Intent, Attempt: 1, Token: ledger.NewToken(), JobName: s.plan.Fixed.Request.Name}); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestCrashAfterIntent(t *testing.T) {
	for _, c := range []struct {
		name    string
		sent    bool // the job exists
		after   time.Duration
		code    fault.Code
		submits int
	}{
		{"before the request, looked at once", false, 0, fault.Unreachable, 0},
		{"before the request, after the time-out", false, 2 * time.Minute, fault.OK, 1},
		{"after the request, at once", true, 0, fault.OK, 0},
		{"after the request, late", true, 2 * time.Minute, fault.OK, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := w.stage()
			r := w.crashed(s)
			if c.sent {
				w.fake.Put(slurm.Job{ID: 77, Name: "hello." + string(r.ID), User: "ann", State: slurm.Pending})
			}
			q := w.queue()
			q.Now = func() time.Time { return time.Now().Add(c.after) }
			r, err := q.Submit(t.Context(), w.resumed(r))
			if fault.CodeOf(err) != c.code {
				t.Errorf("error %v", err)
			}
			if c.sent && r.JobID() != 77 {
				t.Errorf("job %s, want 77", r.JobID())
			}
			w.submits(c.submits)
		})
	}
}

// Of two jobs of one attempt the one that holds the claim is the run's.
func TestTheClaimDecides(t *testing.T) {
	for claim, want := range map[string]slurm.JobID{"": 77, "78\n": 78} {
		w := newWorld(t)
		s := w.stage()
		r := w.crashed(s)
		name := "hello." + string(r.ID)
		w.fake.Put(slurm.Job{ID: 78, Name: name, User: "ann", State: slurm.Running}, slurm.Job{ID: 77, Name: name, User: "ann", State: slurm.Pending})
		if claim != "" {
			if err := os.WriteFile(filepath.Join(r.Dir, "claims", "1"), []byte(claim), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := w.queue().Submit(t.Context(), w.resumed(r))
		if err != nil || r.JobID() != want {
			t.Errorf("claim %q: job %s, want %s (%v)", claim, r.JobID(), want, err)
		}
		w.submits(0)
	}
}

func TestManyAtOnceSubmitOnce(t *testing.T) {
	w := newWorld(t)
	a := w.approved()
	const processes = 8
	var wg sync.WaitGroup
	ids := make([]slurm.JobID, processes)
	for i := range processes {
		l := w.ledger()
		q := w.queue()
		wg.Go(func() {
			s, err := Stage(context.Background(), a, objects, l)
			if err != nil {
				t.Error(err)
				return
			}
			r, err := q.Submit(context.Background(), s)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = r.JobID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != 100 {
			t.Errorf("jobs %v, want 100 for all", ids)
			break
		}
	}
	w.submits(1)
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	q := w.queue()
	r, err := q.Submit(t.Context(), w.stage())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Cancel(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.fake.Cancels(), []slurm.JobID{100}) || r.CancelAsked.IsZero() {
		t.Errorf("cancelled %v; a heterogeneous job is ended by its leader", w.fake.Cancels())
	}
	if err := q.Cancel(t.Context(), r); fault.CodeOf(err) != fault.Refused {
		t.Errorf("cancelling what has ended: %v", err)
	}
}

// Ids are reused: a job of another name is another job.
func TestCancelSparesAReusedID(t *testing.T) {
	w := newWorld(t)
	q := w.queue()
	r, err := q.Submit(t.Context(), w.stage())
	if err != nil {
		t.Fatal(err)
	}
	w.fake.Drop()
	w.fake.Put(slurm.Job{ID: 100, Name: "somebody else's", User: "bob", State: slurm.Running})
	if err := q.Cancel(t.Context(), r); fault.CodeOf(err) != fault.Refused || !strings.Contains(err.Error(), "the id was reused") {
		t.Errorf("error %v", err)
	}
	w.fake.Drop()
	if err := q.Cancel(t.Context(), r); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a forgotten job: %v", err)
	}
	if len(w.fake.Cancels()) != 0 {
		t.Errorf("cancelled %v", w.fake.Cancels())
	}
}

func TestCancelBeforeSubmit(t *testing.T) {
	w := newWorld(t)
	q := w.queue()
	s := w.stage()
	if err := q.Cancel(t.Context(), s.Run()); err != nil || s.Run().State != ledger.Cancelled {
		t.Fatalf("state %s: %v", s.Run().State, err)
	}
	if _, err := w.queue().Submit(t.Context(), w.resumed(s.Run())); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a cancelled run must not be queued: %v", err)
	}
	w.submits(0)
	// Its rendered script, given to sbatch after all, must find the claim taken.
	if owner, err := os.ReadFile(filepath.Join(s.Run().Dir, "claims", "1")); err != nil || !strings.Contains(string(owner), "cancelled") {
		t.Errorf("claim %q, %v", owner, err)
	}
}

func TestCancelKeepsAnEarlierEnd(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return false, &slurm.Error{Op: "submit", Text: "no"} }
	q := w.queue()
	r, _ := q.Submit(t.Context(), w.stage())
	if err := q.Cancel(t.Context(), r); fault.CodeOf(err) != fault.Refused || r.State != ledger.Failed {
		t.Errorf("a refused run has ended already: state %s, %v", r.State, err)
	}
}

func TestCancelInDoubt(t *testing.T) {
	w := newWorld(t)
	w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return true, cut }
	w.fake.Hidden = true
	q := w.queue()
	r, _ := q.Submit(t.Context(), w.stage())
	if err := q.Cancel(t.Context(), r); fault.CodeOf(err) != fault.Unreachable {
		t.Errorf("what cannot be found cannot be called cancelled: %v", err)
	}
	w.fake.Hidden = false
	if err := q.Cancel(t.Context(), r); err != nil || !slices.Equal(w.fake.Cancels(), []slurm.JobID{100}) {
		t.Errorf("found and cancelled: %v, %v", w.fake.Cancels(), err)
	}
}

// A run that was cancelled in doubt is not submitted again by whoever settles
// it, and a job that was queued, or arrives later, is cancelled.
func TestCancelInDoubtIsKept(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		w := newWorld(t)
		w.fake.OnSubmit = func(int, *slurm.Request) (bool, error) { return arrived, cut }
		w.fake.Hidden = true
		q := w.queue()
		r, _ := q.Submit(t.Context(), w.stage())
		err := q.Cancel(t.Context(), r)
		if fault.CodeOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "is not submitted again") {
			t.Errorf("error %v", err)
		}
		w.fake.Hidden = false
		tick := w.queue()
		tick.Now = func() time.Time { return time.Now().Add(time.Hour) }
		for range 2 {
			r, err = tick.Submit(t.Context(), w.resumed(r))
			if arrived {
				break // its end is the tracker's affair
			}
			if fault.CodeOf(err) != fault.Refused || r.State != ledger.Cancelled {
				t.Errorf("state %s, %v", r.State, err)
			}
		}
		w.submits(1)
		if arrived {
			if fault.CodeOf(err) != fault.Refused || !slices.Equal(w.fake.Cancels(), []slurm.JobID{100}) {
				t.Errorf("cancelled %v: %v", w.fake.Cancels(), err)
			}
			continue
		}
		w.fake.Put(slurm.Job{ID: 90, Name: "hello." + string(r.ID), User: "ann", State: slurm.Running})
		if err := os.WriteFile(filepath.Join(r.Dir, "claims", "1"), []byte("90\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if late, err := tick.Surplus(t.Context(), r); err != nil || !slices.Equal(late, []slurm.JobID{90}) {
			t.Errorf("a job that came after all: %v, %v", late, err)
		}
	}
}

func TestAdopt(t *testing.T) {
	w := newWorld(t)
	q := w.queue()
	s := w.stage()
	if err := Rendered(q.Ledger, s); err != nil {
		t.Fatal(err)
	}
	r := s.Run()
	if found, err := q.Adopt(t.Context(), r); err != nil || found {
		t.Errorf("nobody has called sbatch: %v, %v", found, err)
	}
	w.fake.Put(slurm.Job{ID: 9, Name: "hello." + string(r.ID), User: "ann", State: slurm.Pending})
	if found, err := q.Adopt(t.Context(), r); err != nil || !found || r.JobID() != 9 {
		t.Errorf("found %v, job %s: %v", found, r.JobID(), err)
	}
	if found, _ := q.Adopt(t.Context(), r); found {
		t.Error("it was adopted already")
	}
	w.submits(0)
}
