package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRoleKilledByASignalOfSlurm: the job shows SIGNALING for a moment, which is
// no end of it. The role failed.
func TestRoleKilledByASignalOfSlurm(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "usr1", maps.Clone(idle))
		d.at = time.Now()
		d.must("scancel", "--signal=USR1", d.s.job())
		m := d.row("FAILED", marker{Exit: 138, State: "FAILED", Role: anyRole, Message: "failed with exit code 138"}, 15*time.Second)
		if !strings.HasPrefix(m.Reason, "role ") {
			d.Errorf("reason %q", m.Reason)
		}
	})
}

func TestCancelledSecondPool(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "scancel-1", maps.Clone(idle))
		d.at = time.Now()
		d.must("scancel", d.s.job()+"+1")
		d.row("CANCELLED", marker{State: "CANCELLED", Exit: 143, Message: "pool rollout was cancelled after"}, 15*time.Second)
	})
}

// TestPoolReachesItsOwnTimeLimit: the role that Slurm ended with it has not
// failed, whatever code it gives.
func TestPoolReachesItsOwnTimeLimit(t *testing.T) {
	each(t, func(w *world) {
		for _, exit := range []int{0, 3} {
			w.Run(fmt.Sprintf("exit%d", exit), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, w.release)
				d := twoPools(w, fmt.Sprintf("pool-limit-exit%d", exit), map[string]string{
					"train":   "sleep 600",
					"rollout": fmt.Sprintf(`trap 'exit %d' TERM; while :; do sleep 600 & wait; done`, exit),
				}, "--time", "rollout=1m", "--time", "train=4m")
				start, err := time.ParseInLocation("2006-01-02T15:04:05", d.scontrol(d.s.job())[1]["StartTime"], time.Local)
				d.ok(err)
				d.at = start.Add(time.Minute)
				d.row("TIMEOUT", marker{Exit: 143, State: "TIMEOUT", Message: "pool rollout reached its own time limit after"}, 45*time.Second)
			})
		}
	})
}

// TestDriverOutlivesItsServices: a pool that nothing uses any more may reach its
// limit; the driver's own end decides.
func TestDriverOutlivesItsServices(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "pool-done", map[string]string{
			"train":   `until [ -e "$TP_OUT_DIR/over" ]; do sleep 0.2; done; exit 4`,
			"rollout": "sleep 1",
		})
		d.waitFor(30*time.Second, "the service to end", func() bool {
			return strings.Contains(d.read(d.s.RunDir, "logs", "job-"+d.s.job()+".log"), "role rollout ended well before the driver")
		})
		d.must("scancel", d.s.job()+"+1")
		d.must("touch", filepath.Join(d.s.RunDir, "out", "over"))
		d.at = time.Now()
		d.row("FAILED", marker{Exit: 4, State: "FAILED", Role: "train", Message: "role train failed with exit code 4"}, 15*time.Second)
	})
}

// TestPreemptedPoolWithoutRequeue: a preemptor takes the nodes of one pool, and
// Slurm ends the whole job. No role has failed.
func TestPreemptedPoolWithoutRequeue(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "preempted-pool", maps.Clone(idle), "--qos", "low")
		d.preempt(1)
		d.row("PREEMPTED", marker{State: "PREEMPTED", Exit: 143, Message: "preempted after"}, 60*time.Second)
	})
}
