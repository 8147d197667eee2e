package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// domains is what happened in each failure domain, printed when all tests are done.
var domains struct {
	sync.Mutex
	rows []string
}

func domainTable() string {
	slices.Sort(domains.rows)
	return strings.Join(slices.Concat([]string{"case | release | state | exit | why | marker | components | ended after"}, domains.rows), "\n")
}

// marker is an end marker as the script writes it.
type marker struct {
	Exit    int    `json:"exit"`
	State   string `json:"state"`
	Role    string `json:"role"`
	Node    string `json:"node"`
	Message string `json:"message"`
}

func (w *world) marker(dir, name string) marker {
	w.Helper()
	var m marker
	w.decode(w.read(dir, "ends", name+".json"), &m)
	return m
}

// anyRole is wanted where either role may be first.
const anyRole = "any"

// domain is one run of two pools that something happens to.
type domain struct {
	*world
	name string
	s    submission
	at   time.Time // of what happened
}

// twoPools starts train on an h200 node and rollout on an h100 node, and waits
// until both roles are there. Each role's shell leaves its pid.
func twoPools(w *world, name string, scripts map[string]string, args ...string) *domain {
	w.Helper()
	for role, text := range scripts {
		scripts[role] = `echo $$ >"$TP_OUT_DIR/$TP_ROLE.pid$TP_LOG_SUFFIX"; echo "$PPID" >"$TP_OUT_DIR/$TP_ROLE.parent"` + "\n" + text
	}
	w.experiment(name, scripts)
	w.commit()
	if !slices.Contains(args, "--profile") {
		args = append(args, "--profile", "train=h200:1", "--profile", "rollout=h100:1")
	}
	s := w.submit(append([]string{name}, args...)...)
	w.appears(s.RunDir, "out/train.pid")
	w.appears(s.RunDir, "out/rollout.pid")
	w.await(s.RunDir, "RUNNING", func(r run) bool { return r.State == "RUNNING" })
	d := &domain{w, name, s, time.Now()}
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("log of the job:\n%s", d.read(s.RunDir, "logs", "job-"+s.job()+".log"))
		}
	})
	return d
}

// ended is when Slurm ended the last component.
func (d *domain) ended() time.Time {
	d.Helper()
	d.waitFor(time.Minute, "the components to end", func() bool { return len(d.jobs("R,CG")) == 0 })
	var last time.Time
	for _, j := range d.scontrol(d.s.job()) {
		end, err := time.ParseInLocation("2006-01-02T15:04:05", j["EndTime"], time.Local)
		d.ok(err)
		if end.After(last) {
			last = end
		}
	}
	return last
}

// row waits for the end, notes what everybody says about it, and checks the
// state, the marker, and that Slurm was done within the limit.
func (d *domain) row(state string, want marker, limit time.Duration) run {
	d.Helper()
	d.waitFor(time.Until(d.at)+2*time.Minute, "Slurm to end the job", func() bool { return len(d.jobs("R,CG")) == 0 })
	r := d.await(d.s.RunDir, "an end", run.ended)
	took := d.ended().Sub(d.at)
	var states []string
	jobs := d.scontrol(d.s.job())
	for _, j := range jobs {
		states = append(states, j["JobState"])
	}
	m := d.marker(d.s.RunDir, "1.0")
	d.note(r, jobs[0]["ExitCode"], m, strings.Join(states, "+"), took)
	if r.State != state {
		d.Errorf("the run is %s (%s), wanted %s", r.State, r.Reason, state)
	}
	if took > limit {
		d.Errorf("the run ended %s after it happened, wanted %s", took, limit)
	}
	if m.State != want.State || want.Role != anyRole && m.Role != want.Role || m.Exit != want.Exit || !strings.Contains(m.Message, want.Message) || want.Node != "" && m.Node != want.Node {
		d.Errorf("the marker says %+v, wanted %+v", m, want)
	}
	text := d.tp("job", "status", d.s.RunID).out
	for _, part := range []string{state, strings.TrimPrefix(want.Role, anyRole), want.Node, want.Message} {
		if !strings.Contains(text, part) {
			d.Errorf("tp job status does not say %q:\n%s", part, text)
		}
	}
	return r
}

func (d *domain) note(r run, exit string, m marker, states string, took time.Duration) {
	text, _ := json.Marshal(m)
	line := fmt.Sprintf("%s | %s | %s | %s | %s | %s | %s | %.0f s", d.name, d.release, r.State, exit, r.Reason, text, states, took.Seconds())
	d.Log(line)
	domains.Lock()
	defer domains.Unlock()
	domains.rows = append(domains.rows, line)
}

// node is the first node of a component.
func (d *domain) node(component int) string {
	d.Helper()
	return strings.Fields(d.must("scontrol", "show", "hostnames", d.scontrol(d.s.job())[component]["NodeList"]))[0]
}

func (d *domain) kill(file string) {
	d.Helper()
	pid := strings.TrimSpace(d.read(d.s.RunDir, "out", file))
	d.at = time.Now()
	d.must("kill", "-9", pid)
}

// root runs a command of contrib/devcluster.
func (w *world) root(args ...string) {
	w.Helper()
	if out, err := exec.Command(os.Getenv("TP_DEVCLUSTER"), args...).CombinedOutput(); err != nil {
		w.Errorf("devcluster %q: %v\n%s", args, err, out)
	}
}

var idle = map[string]string{"train": "sleep 600", "rollout": "sleep 600"}

func TestKilledRole(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "killed-role", maps.Clone(idle))
		node := d.node(1)
		d.kill("rollout.pid")
		d.row("FAILED", marker{Exit: 137, State: "FAILED", Role: "rollout", Node: node, Message: "role rollout failed with exit code 137"}, 15*time.Second)
	})
}

// TestKilledTask kills the shell that would have told where the role failed.
func TestKilledTask(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "killed-task", maps.Clone(idle))
		node := d.node(1)
		d.kill("rollout.parent")
		d.row("FAILED", marker{Exit: 137, State: "FAILED", Role: "rollout", Node: node, Message: "role rollout failed with exit code 137"}, 15*time.Second)
	})
}

// TestKilledSrun kills a pool's srun. Whether Slurm then ends its tasks at once or
// with the job differs; none may be left.
func TestKilledSrun(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "killed-srun", maps.Clone(idle))
		sruns := d.ours(strings.Fields(d.must("pgrep", "-u", "alice", "-f", "srun .*job-name=rollout .*TP_RUN_DIR")))
		d.at = time.Now()
		d.slurm(append([]string{"kill", "-9"}, sruns...)...)
		d.row("FAILED", marker{Exit: 137, State: "FAILED", Role: "rollout", Message: "role rollout failed with exit code 137"}, 15*time.Second)
		pid := strings.TrimSpace(d.read(d.s.RunDir, "out", "rollout.pid"))
		if env, err := os.ReadFile("/proc/" + pid + "/environ"); err == nil && strings.Contains(string(env), d.s.RunID) {
			d.Errorf("process %s of the killed srun is still there", pid)
		}
	})
}

// ours are the processes that belong to the run, by the run directory in their
// environment.
func (d *domain) ours(pids []string) []string {
	d.Helper()
	var mine []string
	for _, pid := range pids {
		if env, err := os.ReadFile("/proc/" + pid + "/environ"); err == nil && strings.Contains(string(env), "TP_RUN_ID="+d.s.RunID) {
			mine = append(mine, pid)
		}
	}
	if len(mine) == 0 {
		d.Fatalf("none of the processes %v belongs to %s", pids, d.s.RunID)
	}
	return mine
}

// TestTimeLimit has roles that end well and badly when they are asked: both are
// Slurm's doing and neither success nor failure.
func TestTimeLimit(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "time-limit", map[string]string{
			"train":   `trap 'echo >"$TP_OUT_DIR/train.term"; exit 0' TERM; while :; do sleep 600 & wait; done`,
			"rollout": `trap 'echo >"$TP_OUT_DIR/rollout.term"; exit 3' TERM; while :; do sleep 600 & wait; done`,
		}, "--time", "1m")
		start, err := time.ParseInLocation("2006-01-02T15:04:05", d.scontrol(d.s.job())[0]["StartTime"], time.Local)
		d.ok(err)
		d.at = start.Add(time.Minute)
		// Slurm looks every 30 s.
		d.row("TIMEOUT", marker{Exit: 143, State: "TIMEOUT", Message: "time limit reached after"}, 45*time.Second)
		for _, role := range []string{"train", "rollout"} {
			if _, err := os.Stat(filepath.Join(d.s.RunDir, "out", role+".term")); err != nil {
				d.Errorf("role %s was not asked to stop", role)
			}
		}
	})
}

func TestCancelledFirstPool(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "scancel-0", maps.Clone(idle))
		d.at = time.Now()
		d.must("scancel", d.s.job()+"+0")
		d.row("CANCELLED", marker{State: "CANCELLED", Exit: 143, Message: "cancelled after"}, 15*time.Second)
	})
}

// again is a driver that is done when it starts a second time.
const again = `if [ "$TP_RESTART" = 0 ]; then trap 'echo >"$TP_OUT_DIR/asked"; exit %d' TERM; while :; do sleep 600 & wait; done; fi
echo "start $TP_RESTART"`

// restarted checks that the run goes on as the same run, attempt and job.
func (d *domain) restarted(want marker) {
	d.Helper()
	seen := map[string]bool{}
	r := d.await(d.s.RunDir, "SUCCEEDED", func(r run) bool {
		seen[r.State] = true
		return r.State == "SUCCEEDED"
	})
	m := d.marker(d.s.RunDir, "1.0")
	states := slices.Sorted(maps.Keys(seen))
	d.note(r, d.scontrol(d.s.job())[0]["ExitCode"], m, "seen "+strings.Join(states, ","), time.Since(d.at))
	if seen["FAILED"] || seen["CANCELLED"] || seen["TIMEOUT"] {
		d.Errorf("the run was seen as %v on its way", states)
	}
	if m.State != want.State || !strings.Contains(m.Message, want.Message) {
		d.Errorf("the marker of the first start says %+v, wanted %+v", m, want)
	}
	if m := d.marker(d.s.RunDir, "1.1"); m.State != "SUCCEEDED" {
		d.Errorf("the marker of the second start says %+v", m)
	}
	if len(r.Attempts) != 1 || r.job() != d.s.job() {
		d.Errorf("not the same attempt and job: %+v", r.Attempts)
	}
	if log := d.read(d.s.RunDir, "logs", "train.node0.restart1.log"); !strings.Contains(log, "start 1") {
		d.Errorf("the log of the second start says %q", log)
	}
	if _, err := os.Stat(filepath.Join(d.s.RunDir, "out", "asked")); err != nil {
		d.Error("the driver was not asked to stop")
	}
}

// preempt takes all GPUs of the node where a pool runs.
func (d *domain) preempt(component int) {
	d.Helper()
	node := d.node(component)
	d.at = time.Now()
	series, _, _ := strings.Cut(node, "-")
	d.must("sbatch", "-Q", "-p", series, "-w", node, "--gres=gpu:"+series+":8", "--mem=1", "-t2", "--qos=high", "-J", "preemptor", "-o", "/dev/null", "--wrap", "sleep 3")
}

func TestPreempted(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "preempted", map[string]string{"train": fmt.Sprintf(again, 1), "rollout": "sleep 600"}, "--qos", "low", "--requeue")
		d.preempt(1)
		d.restarted(marker{State: "PREEMPTED", Message: "after"})
	})
}

// TestPreemptedWithGrace: Slurm asks the steps and not the script, and requeues
// only what it ends itself.
func TestPreemptedWithGrace(t *testing.T) {
	each(t, func(w *world) {
		for _, exit := range []int{0, 1} {
			w.Run(fmt.Sprintf("exit%d", exit), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, w.release)
				d := twoPools(w, fmt.Sprintf("grace-exit%d", exit), map[string]string{"train": fmt.Sprintf(again, exit), "rollout": "sleep 600"}, "--qos", "graced", "--requeue")
				d.preempt(exit)
				d.restarted(marker{State: "PREEMPTED", Message: "preempted"})
			})
		}
	})
}

func TestRequeued(t *testing.T) {
	each(t, func(w *world) {
		d := twoPools(w, "requeued", map[string]string{"train": fmt.Sprintf(again, 1), "rollout": "sleep 600"}, "--requeue")
		d.at = time.Now()
		d.must("scontrol", "requeue", d.s.job())
		d.restarted(marker{State: "PREEMPTED", Message: "requeued after"})
	})
}

// TestLostNode takes the node of one pool away. A short SlurmdTimeout lets Slurm
// notice; else the administrator's word does.
func TestLostNode(t *testing.T) {
	each(t, func(w *world) {
		// All GPUs of the node: other tests' jobs are not to be lost with it.
		d := twoPools(w, "lost-node", maps.Clone(idle), "--profile", "train=h200:1", "--profile", "rollout=h100:8")
		node := d.node(1)
		w.Cleanup(func() { w.root("slurmd", w.release, node, "start") })
		d.at = time.Now()
		w.root("slurmd", w.release, node, "stop")
		timeout, limit := 0, 15*time.Second
		for line := range strings.Lines(w.must("scontrol", "show", "config")) {
			if rest, ok := strings.CutPrefix(line, "SlurmdTimeout"); ok {
				fmt.Sscanf(strings.TrimLeft(rest, " ="), "%d", &timeout)
			}
		}
		if timeout > 60 {
			d.at = time.Now()
			w.root("exec", w.release, "--user", "root", "--", "scontrol", "update", "nodename="+node, "state=down", "reason=lost")
		} else {
			limit += time.Duration(2*timeout) * time.Second
			w.waitFor(limit, "Slurm to notice", func() bool {
				return !strings.Contains(d.scontrol(d.s.job())[1]["JobState"], "RUNNING")
			})
		}
		d.row("FAILED", marker{Exit: 143, State: "FAILED", Message: "node " + node + " failed"}, limit)
	})
}
