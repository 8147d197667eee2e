package e2e

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// within checks how long Slurm kept a job after a role had written the time.
func (w *world) within(s submission, limit time.Duration) {
	w.Helper()
	failed, err := strconv.ParseInt(strings.TrimSpace(w.read(s.RunDir, "out", "failed-at")), 10, 64)
	w.ok(err)
	for i, j := range w.scontrol(s.job()) {
		end, err := time.ParseInLocation("2006-01-02T15:04:05", j["EndTime"], time.Local)
		w.ok(err)
		if took := end.Sub(time.Unix(failed, 0)); took > limit {
			w.Errorf("component %d ended %s after the failure, in state %s", i, took, j["JobState"])
		}
	}
}

const failAt = `date +%s >"$TP_OUT_DIR/failed-at"; `

func TestFailedRoleEndsTheRun(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("broken", map[string]string{
			"train":   "sleep 600",
			"rollout": `if [ "$TP_NODE_RANK" = 1 ]; then ` + failAt + `exit 7; fi; sleep 600`,
		})
		w.commit()
		s := w.submit("broken", "--profile", "train=h200:1", "--profile", "rollout=h100:2x1")
		r := w.wait(s.RunDir, "FAILED")
		w.within(s, 15*time.Second)
		node := strings.Fields(w.must("scontrol", "show", "hostnames", w.scontrol(s.job())[1]["NodeList"]))[1]
		text := w.tp("job", "status", filepath.Base(s.RunDir)).out
		for _, part := range []string{"FAILED", "rollout", "exit code 7", node} {
			if !strings.Contains(text, part) {
				w.Errorf("tp job status does not say %q:\n%s", part, text)
			}
		}
		if !strings.Contains(r.Reason, node) {
			w.Errorf("reason %q, wanted node %s", r.Reason, node)
		}
		if end := w.read(s.RunDir, "ends", "1.0.json"); !strings.Contains(end, `"exit":7,"state":"FAILED","role":"rollout"`) {
			w.Errorf("end marker %s", end)
		}
		if r := w.tp("job", "status", "--wait", filepath.Base(s.RunDir)); r.code != 8 {
			w.Errorf("tp job status --wait of a failed run: exit code %d, wanted 8", r.code)
		}
	})
}

func TestFailedDriverEndsTheRun(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("broken", map[string]string{
			"train":   failAt + "exit 3",
			"rollout": `trap 'echo stopped >"$TP_OUT_DIR/stopped"; exit 0' TERM; sleep 600 & wait`,
		})
		w.commit()
		s := w.submit("broken", "--profile", "train=h200:1", "--profile", "rollout=h100:1")
		r := w.wait(s.RunDir, "FAILED")
		w.within(s, 15*time.Second)
		if !strings.Contains(r.Reason, "role train failed with exit code 3") {
			w.Errorf("reason %q", r.Reason)
		}
		if job := w.scontrol(s.job())[0]; job["ExitCode"] != "3:0" {
			w.Errorf("Slurm's exit code is %s, wanted 3:0", job["ExitCode"])
		}
	})
}

func TestServiceMayEndEarly(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("early", map[string]string{
			"train":   `until [ -e "$TP_OUT_DIR/served" ]; do sleep 0.1; done; sleep 3; echo trained >"$TP_OUT_DIR/trained"`,
			"rollout": `echo served >"$TP_OUT_DIR/served"`,
		})
		w.commit()
		s := w.submit("early", "--profile", "train,rollout=cpu:1")
		w.wait(s.RunDir, "SUCCEEDED")
		if w.read(s.RunDir, "out", "trained") == "" {
			w.Error("the run ended with the service, before the driver was done")
		}
	})
}

func TestCancelEndsAllComponents(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("long", map[string]string{"train": `echo >"$TP_OUT_DIR/up"; sleep 600`, "rollout": "sleep 600"})
		w.commit()
		s := w.submit("long", "--profile", "train=h200:1", "--profile", "rollout=h100:1")
		w.appears(s.RunDir, "out/up")
		if r := w.tp("job", "cancel", s.RunID); r.code != 0 || !strings.Contains(r.out, "CANCELLED") {
			w.Errorf("tp job cancel: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		w.wait(s.RunDir, "CANCELLED")
		// Slurm says COMPLETING while a node still cleans up.
		w.waitFor(30*time.Second, "both components to be cancelled", func() bool {
			jobs := w.scontrol(s.job())
			return len(jobs) == 2 && !slices.ContainsFunc(jobs, func(j map[string]string) bool { return !strings.HasPrefix(j["JobState"], "CANCELLED") })
		})
		if left := w.jobs("PD,R"); len(left) > 0 {
			w.Errorf("still in the queue: %v", left)
		}
		if r := w.tp("job", "cancel", s.RunID); r.code != 5 {
			w.Errorf("cancelling an ended run: exit code %d, wanted 5", r.code)
		}
	})
}

// TestRequeueContinuesTheRun has Slurm start a running het job again, as after
// a node failure or a preemption.
func TestRequeueContinuesTheRun(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("again", map[string]string{
			"train": `echo "start $TP_RESTART"
if [ "$TP_RESTART" = 0 ]; then echo >"$TP_OUT_DIR/first"; sleep 600; fi
echo "$TP_RUN_ID $TP_ATTEMPT $TP_RESTART" >"$TP_OUT_DIR/second"`,
			"rollout": "sleep 600",
		})
		w.commit()
		s := w.submit("again", "--profile", "train=h200:1", "--profile", "rollout=h100:1", "--requeue")
		w.appears(s.RunDir, "out/first")
		w.must("scontrol", "requeue", s.job())
		r := w.wait(s.RunDir, "SUCCEEDED")
		if got := strings.TrimSpace(w.read(s.RunDir, "out", "second")); got != s.RunID+" 1 1" {
			w.Errorf("the second start says %q", got)
		}
		if len(r.Attempts) != 1 || r.job() != s.job() {
			w.Errorf("a requeue is the same attempt and job: %+v", r.Attempts)
		}
		if claim := strings.TrimSpace(w.read(s.RunDir, "claims", "1")); claim != s.job() {
			w.Errorf("the claim is %q, wanted %s", claim, s.job())
		}
		first, second := w.read(s.RunDir, "logs", "train.node0.log"), w.read(s.RunDir, "logs", "train.node0.restart1.log")
		if !strings.HasPrefix(first, "start 0\n") || second != "start 1\n" {
			w.Errorf("logs %q and %q", first, second)
		}
		if logs := w.tp("job", "logs", s.RunID).out; !strings.Contains(logs, "train/0: ") || !strings.Contains(logs, "restart1") {
			w.Errorf("tp job logs shows not both starts:\n%s", logs)
		}
	})
}

func TestSecondJobOfAnAttemptDoesNothing(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("once", map[string]string{"train": `echo "$SLURM_JOB_ID" >>"$TP_OUT_DIR/ran"; sleep 5`})
		w.commit()
		script, dir := w.render("once", "--profile", "cpu:1")
		jobs := []string{w.sbatch(script), w.sbatch(script)}
		w.waitFor(busy, "both jobs to end", func() bool { return len(w.jobs("PD,R,CG,CF")) == 0 })
		ran := strings.Fields(w.read(dir, "out", "ran"))
		if len(ran) != 1 {
			w.Fatalf("%d jobs of %v did the work: %v", len(ran), jobs, ran)
		}
		for _, job := range jobs {
			log, exit := w.read(dir, "logs", "job-"+job+".log"), w.scontrol(job)[0]["ExitCode"]
			if job == ran[0] {
				if exit != "0:0" {
					w.Errorf("the job with the claim ended %s:\n%s", exit, log)
				}
			} else if exit != "79:0" || !strings.Contains(log, "ends without doing anything") {
				w.Errorf("the job without the claim ended %s:\n%s", exit, log)
			}
		}
		if r := w.wait(dir, "SUCCEEDED"); r.job() != ran[0] {
			w.Errorf("the run is said to be job %s, job %s did it", r.job(), ran[0])
		}
	})
}

// TestKilledComponentEndsTheRun takes the nodes of one pool away, as an
// administrator or a dying node does.
func TestKilledComponentEndsTheRun(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("long", map[string]string{"train": `echo >"$TP_OUT_DIR/up"; sleep 600`, "rollout": "sleep 600"})
		w.commit()
		s := w.submit("long", "--profile", "train=h200:1", "--profile", "rollout=h100:1")
		w.appears(s.RunDir, "out/up")
		w.must("scancel", s.job()+"+1")
		r := w.await(s.RunDir, "an end", run.ended)
		if r.State == "SUCCEEDED" || r.Reason == "" {
			w.Errorf("a run that lost a pool is %s (%s)", r.State, r.Reason)
		}
		w.Logf("%s: %s", r.State, r.Reason)
		w.waitFor(30*time.Second, "both components to end", func() bool { return len(w.jobs("PD,R,CG")) == 0 })
	})
}
