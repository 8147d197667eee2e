package e2e

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// planned makes a plan and returns its digest and the job's name.
func (w *world) planned(args ...string) (digest, name string) {
	w.Helper()
	r := w.tp(append([]string{"plan", "--json"}, args...)...)
	if r.code != 0 {
		w.Fatalf("tp plan: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	var p struct {
		Digest string `json:"digest"`
		Fixed  struct {
			Request struct{ Name string } `json:"request"`
		} `json:"fixed"`
	}
	w.decode(r.out, &p)
	return p.Digest, p.Fixed.Request.Name
}

// named counts the jobs of a name that Slurm has, ended ones too.
func (w *world) named(name string) int {
	w.Helper()
	count := 0
	for line := range strings.Lines(w.must("squeue", "-h", "--me", "-t", "all", "-o", "%A %j")) {
		if _, n, _ := strings.Cut(strings.TrimSpace(line), " "); n == name {
			count++
		}
	}
	return count
}

// atOnce runs the same command in several processes.
func (w *world) atOnce(n int, command func() result) []result {
	results := make([]result, n)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i] = command() })
	}
	group.Wait()
	return results
}

func (w *world) short() {
	w.Helper()
	w.experiment("short", map[string]string{"train": `echo "$SLURM_JOB_ID" >>"$TP_OUT_DIR/ran"; sleep 2`})
	w.commit()
}

func TestOnePlanIsOneJob(t *testing.T) {
	each(t, func(w *world) {
		w.short()
		digest, name := w.planned("short", "--profile", "cpu:1")
		first := w.submitted(w.tp("submit", "--json", "--plan", digest))
		again := w.submitted(w.tp("submit", "--json", "--plan", digest[:12]))
		if first.Existed || !again.Existed || first.JobID != again.JobID || first.RunID != again.RunID {
			w.Errorf("one plan gave %+v and %+v", first, again)
		}
		if n := w.named(name); n != 1 {
			w.Errorf("%d jobs of one plan", n)
		}

		digest, name = w.planned("short", "--profile", "cpu:1")
		jobs := map[uint32]int{}
		for _, r := range w.atOnce(4, func() result { return w.tp("submit", "--json", "--plan", digest) }) {
			jobs[w.submitted(r).JobID]++
		}
		if n := w.named(name); n != 1 || len(jobs) != 1 {
			w.Errorf("four submits of one plan at once: %d jobs, answers %v", n, jobs)
		}
	})
}

func TestOneKeyIsOneJob(t *testing.T) {
	each(t, func(w *world) {
		w.short()
		once := func() result {
			return w.tp("submit", "short", "--profile", "cpu:1", "--yes", "--json", "--once", "nightly 1")
		}
		jobs := map[uint32]int{}
		for _, r := range append(w.atOnce(3, once), once()) {
			jobs[w.submitted(r).JobID]++
		}
		if n := len(w.jobs("all")); n != 1 || len(jobs) != 1 {
			w.Errorf("four submits with one key: %d jobs, answers %v", n, jobs)
		}
		other := w.submit("short", "--profile", "cpu:1", "--once", "nightly 2")
		if jobs[other.JobID] != 0 || len(w.jobs("all")) != 2 {
			w.Errorf("another key must be another job, found %v", w.jobs("all"))
		}
	})
}

func TestChangedFileRefusesThePlan(t *testing.T) {
	each(t, func(w *world) {
		w.short()
		digest, name := w.planned("short", "--profile", "cpu:1", "--allow-dirty")
		w.write("experiments/short/train.sh", "#!/bin/bash\necho something else\n")
		r := w.tp("submit", "--plan", digest)
		if r.code != 4 || !strings.Contains(r.err, "the bundle") || !strings.Contains(r.err, "tp plan short") {
			w.Errorf("exit code %d, wanted 4 and the bundle named:\n%s", r.code, r.err)
		}
		if n := w.named(name); n != 0 {
			w.Errorf("%d jobs of a plan that no longer holds", n)
		}
	})
}

// TestKilledBetweenIntentAndSubmit ends tp after it has written down what it is
// about to do. Only once the server's own time-out is over may it submit again.
func TestKilledBetweenIntentAndSubmit(t *testing.T) {
	each(t, func(w *world) {
		w.short()
		digest, name := w.planned("short", "--profile", "cpu:1")
		if r := w.tpWith([]string{"TP_TEST_CRASH=after intent"}, "submit", "--plan", digest); r.code != 137 {
			w.Fatalf("exit code %d, wanted 137\n%s", r.code, r.err)
		}
		killed := time.Now()
		if r := w.tp("submit", "--plan", digest); r.code != 6 || !strings.Contains(r.err, "a late request could still arrive") {
			w.Errorf("right after the crash: exit code %d, wanted 6\n%s", r.code, r.err)
		}
		if n := w.named(name); n != 0 {
			w.Errorf("%d jobs within the server's time-out", n)
		}
		var s submission
		w.waitFor(2*time.Minute, "the submission to be settled", func() bool {
			if time.Since(killed) < 55*time.Second { // nothing to ask before: spare the cluster
				time.Sleep(time.Second)
				return false
			}
			r := w.tp("submit", "--plan", digest, "--json")
			if r.code == 0 {
				s = w.submitted(r)
			}
			return r.code == 0
		})
		w.wait(s.RunDir, "SUCCEEDED")
		if n := w.named(name); n != 1 {
			w.Errorf("%d jobs after a crash before the submission", n)
		}
	})
}

// TestKilledAfterSubmit ends tp before it has written down the job's id; submit
// and tick each find it by its name.
func TestKilledAfterSubmit(t *testing.T) {
	each(t, func(w *world) {
		w.short()
		heal := map[string]func(digest string) result{
			"tp submit --plan": func(digest string) result { return w.tp("submit", "--plan", digest) },
			"tp tick":          func(string) result { return w.tp("tick") },
			"two at once": func(digest string) result {
				r := w.atOnce(2, func() result { return w.tp("submit", "--plan", digest) })
				if r[0].code != 0 {
					return r[0]
				}
				return r[1]
			},
		}
		for how, command := range heal {
			digest, name := w.planned("short", "--profile", "cpu:1")
			if r := w.tpWith([]string{"TP_TEST_CRASH=after submit"}, "submit", "--plan", digest); r.code != 137 {
				w.Fatalf("exit code %d, wanted 137\n%s", r.code, r.err)
			}
			if r := command(digest); r.code != 0 {
				w.Errorf("%s: exit code %d\n%s%s", how, r.code, r.out, r.err)
			}
			dir := w.dir + "/runs/alice/short/" + name[strings.LastIndex(name, ".")+1:]
			if _, err := os.Stat(dir); err != nil {
				w.Fatal(err)
			}
			r := w.wait(dir, "SUCCEEDED")
			if n := w.named(name); n != 1 || r.job() == "" || strings.TrimSpace(w.read(dir, "out", "ran")) != r.job() {
				w.Errorf("%s after a crash: %d jobs, the run says %q, %q did it", how, n, r.job(), w.read(dir, "out", "ran"))
			}
		}
	})
}
