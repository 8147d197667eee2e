package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/script"
)

// TestArray: the tasks of an array share script and run directory; each claims
// for itself, runs its role and leaves its own end marker and log, by REST and
// by sbatch.
func TestArray(t *testing.T) {
	each(t, func(w *world) {
		for _, way := range []string{"sbatch", "rest"} {
			dir := filepath.Join(w.dir, "lab", way)
			w.mkdir(dir)
			w.mkdir(dir + "/logs") // Slurm makes none
			r := &slurm.Request{
				Name: "array", Comment: "tp:array", WorkDir: dir, Output: script.Pattern(dir) + "/logs/job-%j.log", Array: "0-2%2",
				Env:        []slurm.EnvVar{{Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}, {Name: "HOME", Value: "/"}},
				Components: []slurm.Component{{Partition: "cpu", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Memory: 100, TimeLimit: 4}},
			}
			conf := w.slurm("printenv", "SLURM_CONF")
			if conf.code == 0 {
				r.Env = append(r.Env, slurm.EnvVar{Name: "SLURM_CONF", Value: conf.out[:len(conf.out)-1]})
			}
			text, err := script.Render(script.Program{
				Request: r, Title: "array", RunID: "run-0123456789ab", RunDir: dir, Attempt: 1, ExpDir: ".", StageIn: `mkdir -p "$TP_CODE_DIR"`,
				Steps: []script.Step{{Role: "train", Pool: "train", Driver: true, Nodes: 1, CPUs: 1, Body: `echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"`}},
			})
			w.ok(err)
			if r.Script = text; way == "sbatch" {
				w.sbatch(text)
			} else {
				sub, err := w.rest("unix:").Submit(w.Context(), r)
				w.ok(err)
				w.Cleanup(func() { w.slurm("scancel", sub.ID.String()) })
			}
			for _, task := range []string{"0", "1", "2"} {
				end := dir + "/ends/1.0." + task + ".json"
				w.waitFor(busy, end, func() bool { _, err := os.Stat(end); return err == nil })
				if got := w.read(dir, "logs", "train.node0.task"+task+".log"); got != task+" of 3\n" {
					w.Errorf("%s: task %s says %q", way, task, got)
				}
				if w.read(dir, "claims", "1."+task) == "" {
					w.Errorf("%s: task %s has claimed nothing", way, task)
				}
			}
		}
	})
}
