package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// impatient shortens how long tp believes that a lost request may still arrive,
// for tests that repeat a lot. The real value is TestLateWithinTheTimeout's.
const impatient = "TP_TEST_SERVER_TIMEOUT=5s"

// faults is how often each fault is provoked, 4 unless TP_E2E_FAULTS says more.
func (w *world) faults() int {
	w.Helper()
	text := os.Getenv("TP_E2E_FAULTS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	w.ok(err)
	return n
}

// counted is an experiment whose driver appends a line to one file of all runs,
// which it does only after its job has the claim.
func (w *world) counted(script string) {
	w.Helper()
	w.experiment("counted", map[string]string{"train": fmt.Sprintf("echo \"$TP_RUN_ID $SLURM_JOB_ID\" >>'%s/state/ran'\n%s", w.dir, script)})
	w.commit()
}

var countedArgs = []string{"counted", "--profile", "cpu:1", "--cpus-per-node", "1", "--mem", "100M"}

// ran maps each run to the jobs that did its work.
func (w *world) ran() map[string][]string {
	w.Helper()
	jobs := map[string][]string{}
	for line := range strings.Lines(w.read(w.dir, "state", "ran")) {
		run, job, _ := strings.Cut(strings.TrimSpace(line), " ")
		jobs[run] = append(jobs[run], job)
	}
	return jobs
}

// repeat submits the same plan until tp is content.
func (w *world) repeat(digest string) (s submission, tries int) {
	w.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		r := w.tpWith([]string{impatient}, "submit", "--json", "--plan", digest)
		tries++
		if r.code == 0 {
			return w.submitted(r), tries
		}
		if r.code != 6 && r.code != 1 || time.Now().After(end) {
			w.Fatalf("the plan cannot be submitted: exit code %d\n%s", r.code, r.err)
		}
	}
}

// tpKilled runs tp and kills it -9 once when has returned.
func (w *world) tpKilled(when func(ctx context.Context), args ...string) result {
	w.Helper()
	path := fmt.Sprintf("%s/state/pid-%d", w.dir, rand.Int64())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var pid int
		for pid == 0 {
			text, _ := os.ReadFile(path)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		when(ctx)
		// The pid is that of this very process while its parent waits for it.
		if ctx.Err() == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	command := []string{"sh", "-c", `echo $$ >"$0"; exec "$@"`, path, "env", impatient, "TP_SITE=" + w.site,
		"XDG_STATE_HOME=" + w.dir + "/state", "XDG_CONFIG_HOME=" + w.dir + "/config", filepath.Join(folder, "tp")}
	r := w.slurm(append(command, args...)...)
	cancel()
	<-done
	return r
}

// ticking runs tp tick again and again, as cron does, until stop is called; stop
// says how often.
func (w *world) ticking() (stop func() int) {
	quit, ticks := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-quit:
				ticks <- n
				return
			default:
			}
			if r := w.tpWith([]string{impatient}, "tick"); r.code != 0 {
				w.Errorf("tp tick: exit code %d\n%s", r.code, r.err)
			}
			time.Sleep(time.Second)
		}
	}()
	return sync.OnceValue(func() int { close(quit); return <-ticks })
}

// TestExactlyOnceUnderFaults loses answers of a real slurmrestd and kills tp at
// random moments, and counts what ran.
func TestExactlyOnceUnderFaults(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		p := w.proxyTo("tcp", w.jwtAddress())
		n := w.faults()
		names := map[string]string{} // run: job name
		codes := map[string]map[int]int{}
		note := func(kind string, code int) {
			if codes[kind] == nil {
				codes[kind] = map[int]int{}
			}
			codes[kind][code]++
		}
		finish := func(digest, name string) {
			s, tries := w.repeat(digest)
			if s.RunID != name[strings.LastIndex(name, ".")+1:] {
				w.Errorf("plan %.12s of job %s became %s", digest, name, s.RunID)
			}
			if again := w.submitted(w.tp("submit", "--json", "--plan", digest)); again.JobID != s.JobID || !again.Existed {
				w.Errorf("once more: %+v after %+v", again, s)
			}
			if jobs := w.named(name); jobs != 1 {
				w.Errorf("%d jobs of %s after %d tries", jobs, name, tries)
			}
			names[s.RunID] = name
		}
		stop := w.ticking()
		defer stop()
		for i := range n {
			digest, name := w.planned(countedArgs...)
			p.onSubmit(once([]func([]byte, net.Conn){p.drop, p.truncate, p.drop, p.lose}[i%4], p.pass))
			r := w.tpWith([]string{impatient}, "submit", "--json", "--plan", digest)
			note([]string{"dropped", "truncated", "dropped", "lost"}[i%4], r.code)
			finish(digest, name)
		}
		began := time.Now()
		w.must(append([]string{"env", "TP_SITE=" + w.site, "XDG_STATE_HOME=" + w.dir + "/state", filepath.Join(folder, "tp"), "plan"}, countedArgs...)...)
		whole := time.Since(began) // of a command, as this machine is now
		for i := range n {
			digest, name := w.planned(countedArgs...)
			sent := make(chan struct{})
			p.onSubmit(once(func(request []byte, tp net.Conn) { close(sent); p.pass(request, tp) }, p.pass))
			pause := time.Duration(rand.Int64N(int64(whole)))
			r := w.tpKilled(func(ctx context.Context) {
				if i%2 == 1 { // around the request, where it matters most
					pause = time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
					select {
					case <-sent:
					case <-ctx.Done():
					}
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}, "submit", "--json", "--plan", digest)
			note("kill -9", r.code)
			finish(digest, name)
		}
		ticks := stop()
		w.waitFor(busy, "all jobs to end", func() bool { return len(w.jobs("PD,R,CG,CF")) == 0 })
		ran := w.ran()
		if len(ran) != 2*n {
			w.Errorf("%d runs did their work, wanted %d", len(ran), 2*n)
		}
		for id := range names {
			if len(ran[id]) != 1 {
				w.Errorf("%s was done by %d jobs: %v", id, len(ran[id]), ran[id])
			}
		}
		var list []run
		w.decode(w.tp("job", "ls", "--json", "--all").out, &list)
		if len(list) != 2*n {
			w.Errorf("tp job ls knows %d runs, wanted %d", len(list), 2*n)
		}
		w.Logf("%d runs, %d jobs that ran, %d submissions, %d ticks beside them; first exit codes %v", len(list), len(ran), p.submissions(), ticks, codes)
	})
}

// TestLateWithinTheTimeout delivers a request 30 s after tp was cut off. tp
// waits with its real time-out, and so there is one job.
func TestLateWithinTheTimeout(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		p := w.proxyTo("tcp", w.jwtAddress())
		digest, name := w.planned(countedArgs...)
		delivered := make(chan struct{})
		p.onSubmit(once(p.later(func() { time.Sleep(30 * time.Second) }, delivered), p.pass))
		r := w.tp("submit", "--plan", digest)
		if r.code != 6 || !strings.Contains(r.err, "whether the job was queued is not known yet") || !strings.Contains(r.err, "tp: try: tp tick") {
			w.Errorf("exit code %d, wanted 6\n%s", r.code, r.err)
		}
		if r := w.tp("submit", "--plan", digest); r.code != 6 || !strings.Contains(r.err, "a late request could still arrive") {
			w.Errorf("at once again: exit code %d, wanted 6\n%s", r.code, r.err)
		}
		if r := w.tp("tick"); r.code != 0 || !strings.Contains(r.out, "0 settled") {
			w.Errorf("tp tick: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		<-delivered
		s := w.submitted(w.tp("submit", "--json", "--plan", digest))
		w.wait(s.RunDir, "SUCCEEDED")
		if n, sent := w.named(name), p.submissions(); n != 1 || sent != 1 || len(w.ran()[s.RunID]) != 1 {
			w.Errorf("%d jobs, %d requests, done by %v", n, sent, w.ran())
		}
	})
}

// TestLateAfterTheTimeout delivers it when the run has been submitted again:
// the second job is cancelled by tp tick before it trains.
func TestLateAfterTheTimeout(t *testing.T) {
	each(t, func(w *world) {
		w.counted("sleep 30")
		p := w.proxyTo("tcp", w.jwtAddress())
		// One job of this QOS may run at a time: the second one waits.
		digest, name := w.planned(append(countedArgs[:len(countedArgs):len(countedArgs)], "--qos", "onejob")...)
		again, delivered := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(again) })
		w.Cleanup(release)
		p.onSubmit(once(p.later(func() { <-again }, delivered), p.pass))
		if r := w.tpWith([]string{impatient}, "submit", "--plan", digest); r.code != 6 {
			w.Errorf("exit code %d, wanted 6\n%s", r.code, r.err)
		}
		s, _ := w.repeat(digest)
		release()
		<-delivered
		if n := w.named(name); n != 2 {
			w.Fatalf("%d jobs after the late request, the test wants 2", n)
		}
		r := w.tp("tick")
		if r.code != 0 {
			w.Errorf("tp tick: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		w.Logf("tp tick: %s", strings.TrimSpace(r.err))
		w.wait(s.RunDir, "SUCCEEDED")
		w.waitFor(busy, "both jobs to end", func() bool { return len(w.jobs("PD,R,CG,CF")) == 0 })
		if ran := w.ran(); len(ran) != 1 || len(ran[s.RunID]) != 1 {
			w.Errorf("the work was done by %v", ran)
		}
		if final := w.status(s.RunDir); len(w.ran()[s.RunID]) == 1 && final.job() != w.ran()[s.RunID][0] {
			w.Errorf("the run is said to be job %s, %v did it", final.job(), w.ran())
		}
	})
}

// TestCancelledInDoubtIsNotSubmitted cancels a run whose request was lost: what
// settles the doubt must not queue it after all.
func TestCancelledInDoubtIsNotSubmitted(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		p := w.proxyTo("tcp", w.jwtAddress())
		digest, name := w.planned(countedArgs...)
		p.onSubmit(once(p.lose, p.pass))
		if r := w.tpWith([]string{impatient}, "submit", "--plan", digest); r.code != 6 {
			w.Fatalf("exit code %d, wanted 6\n%s", r.code, r.err)
		}
		id := name[strings.LastIndex(name, ".")+1:]
		if r := w.tpWith([]string{impatient}, "job", "cancel", id); r.code != 6 || !strings.Contains(r.err, "is not submitted again") {
			w.Errorf("tp job cancel: exit code %d, wanted 6\n%s", r.code, r.err)
		}
		w.waitFor(time.Minute, "the run to be cancelled", func() bool {
			w.tpWith([]string{impatient}, "tick")
			return w.status(w.dir+"/runs/alice/counted/"+id).State == "CANCELLED"
		})
		if r := w.tpWith([]string{impatient}, "submit", "--plan", digest); r.code != 5 {
			w.Errorf("a cancelled plan: exit code %d, wanted 5\n%s", r.code, r.err)
		}
		if n := w.named(name); n != 0 || len(w.ran()) != 0 {
			w.Errorf("%d jobs, done by %v", n, w.ran())
		}
	})
}

// TestRefusedConnection takes slurmrestd away between preview and request:
// nothing was sent, so the plan may be submitted again at once.
func TestRefusedConnection(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		p := w.proxyTo("tcp", w.jwtAddress())
		digest, name := w.planned(countedArgs...)
		stop := make(chan struct{})
		go func() { // objects are stored after the last look and before the request
			for {
				if files, _ := filepath.Glob(w.dir + "/objects/*/*"); len(files) > 0 {
					p.listener.Close()
					return
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		r := w.tp("submit", "--plan", digest)
		close(stop)
		if r.code == 0 {
			w.Skip("the request was faster than the test")
		}
		if r.code != 6 || !strings.Contains(r.err, "nothing was submitted") || !strings.Contains(r.err, "tp: try: tp doctor") {
			w.Errorf("exit code %d, wanted 6\n%s", r.code, r.err)
		}
		if n := w.named(name); n != 0 {
			w.Errorf("%d jobs", n)
		}
		p.listen()
		s := w.submitted(w.tp("submit", "--json", "--plan", digest))
		w.wait(s.RunDir, "SUCCEEDED")
		if n := w.named(name); n != 1 || len(w.ran()[s.RunID]) != 1 {
			w.Errorf("%d jobs, done by %v", n, w.ran())
		}
	})
}

// ownRest is a slurmrestd of the test's own, as alice on a socket of hers.
type ownRest struct {
	w      *world
	socket string
	cmd    *exec.Cmd
	pid    int
}

func (w *world) ownRest() *ownRest {
	w.Helper()
	o := &ownRest{w: w, socket: w.dir + "/state/rest.sock"}
	o.start()
	w.Cleanup(o.kill)
	return o
}

func (o *ownRest) start() {
	w := o.w
	w.Helper()
	os.Remove(o.socket)
	pidFile := o.socket + ".pid"
	os.Remove(pidFile)
	o.cmd = exec.Command(os.Getenv("TP_DEVCLUSTER"), "exec", w.release, "--", "sh", "-c",
		`echo $$ >"$0"; exec env SLURM_JWT=daemon slurmrestd -a rest_auth/jwt "unix:$1"`, pidFile, o.socket)
	o.cmd.Dir = w.lab
	w.ok(o.cmd.Start())
	w.waitFor(30*time.Second, "slurmrestd to listen", func() bool {
		c, err := net.Dial("unix", o.socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	pid, err := strconv.Atoi(strings.TrimSpace(w.read(pidFile)))
	w.ok(err)
	o.pid = pid
}

func (o *ownRest) kill() {
	if o.pid != 0 {
		syscall.Kill(o.pid, syscall.SIGKILL)
		o.cmd.Wait()
		o.pid = 0
	}
}

// TestSlurmrestdDies kills a slurmrestd in the middle of submissions.
func TestSlurmrestdDies(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		own := w.ownRest()
		p := w.proxyTo("unix", own.socket)
		const rounds = 3
		for i := range rounds {
			digest, name := w.planned(countedArgs...)
			p.onSubmit(func(request []byte, tp net.Conn) {
				answer := make(chan []byte, 1)
				go func() { answer <- p.forward(request) }()
				// The first dies over the request, the last when it has done all.
				select {
				case <-time.After(time.Duration(i*i) * 3 * time.Millisecond):
				case <-answer:
				}
				own.kill()
			})
			r := w.tpWith([]string{impatient}, "submit", "--plan", digest)
			if r.code != 6 || !strings.Contains(r.err, "tp: try: ") {
				w.Errorf("exit code %d, wanted 6 and what to try\n%s", r.code, r.err)
			}
			w.Logf("%s", message(r))
			p.onSubmit(nil)
			own.start()
			s, _ := w.repeat(digest)
			w.wait(s.RunDir, "SUCCEEDED")
			if n := w.named(name); n != 1 || len(w.ran()[s.RunID]) != 1 {
				w.Errorf("round %d: %d jobs, done by %v", i, n, w.ran()[s.RunID])
			}
		}
		if ran := w.ran(); len(ran) != rounds {
			w.Errorf("%d runs did their work, wanted %d", len(ran), rounds)
		}
	})
}

// message is tp's error without the preview before it.
func message(r result) string {
	_, m, _ := strings.Cut("\n"+r.err, "\ntp: ")
	return strings.TrimSpace(m)
}
