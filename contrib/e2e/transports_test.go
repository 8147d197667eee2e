package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// transports are the ways to a cluster: the flags that take each, and what the
// preview then says.
var transports = []struct {
	name  string
	flags []string
	via   string
}{
	{"socket", []string{"--fleet", "devlab"}, "unix://"},
	{"token", []string{"--fleet", "devlab-jwt"}, "(token)"},
	{"child", []string{"--transport", "child"}, "private slurmrestd"},
	{"cli", []string{"--transport", "cli"}, "commands"},
}

// TestThreePoolsByEveryTransport queues pools of three series in three
// partitions, with accounts and time limits of their own. Slurm must hold what
// the preview shows, whichever way it was asked.
func TestThreePoolsByEveryTransport(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("three", map[string]string{
			"train":   `until [ -e "$TP_OUT_DIR/judge" ] && [ -e "$TP_OUT_DIR/rollout" ]; do sleep 0.1; done`,
			"rollout": `touch "$TP_OUT_DIR/rollout"; sleep 60`, "judge": `touch "$TP_OUT_DIR/judge"; sleep 60`,
		})
		w.commit()
		for _, transport := range transports {
			s := w.submit(append(transport.flags, "three", "--profile", "train=h200:2", "--profile", "rollout=h100:2x1", "--profile", "judge=cpu:1",
				"--time", "9m", "--time", "rollout=11m", "--time", "judge=13m", "--account", "research", "--account", "rollout=science",
				"--mem", "2G", "--mem", "rollout=3G", "--cpus-per-node", "2", "--cpus-per-node", "judge=1", "--qos", "judge=high")...)
			if !strings.Contains(s.preview, transport.via) {
				w.Errorf("%s: the preview does not say %q:\n%s", transport.name, transport.via, s.preview)
			}
			if len(s.Differences) > 0 {
				w.Errorf("%s: tp sees differences: %q", transport.name, s.Differences)
			}
			jobs, table := w.scontrol(s.job()), w.shownComponents(w.poolTable(s.preview))
			if len(jobs) != 3 || len(table) != 3 {
				w.Fatalf("%s: %d components in the preview, %d in Slurm, wanted 3", transport.name, len(table), len(jobs))
			}
			for i, job := range jobs {
				if table[i]["Partition"] == "cpu" {
					delete(table[i], "TresPerNode")
				}
				delete(table[i], "ReqTRES") // the test of one transport looks at it
				w.pairs(i, job, table[i])
				w.pairs(i, job, map[string]string{"JobName": "three." + s.RunID, "Comment": "tp:" + s.RunID, "Requeue": "0", "WorkDir": s.RunDir})
				w.pairs(i, job, []map[string]string{
					{"Partition": "h200", "Account": "research", "TimeLimit": "00:09:00"},
					{"Partition": "h100", "Account": "science", "TimeLimit": "00:11:00"},
					{"Partition": "cpu", "Account": "research", "TimeLimit": "00:13:00", "QOS": "high"},
				}[i])
			}
			w.wait(s.RunDir, "SUCCEEDED")
			if log := w.read(s.RunDir, "logs", fmt.Sprintf("job-%d.log", s.JobID)); !strings.Contains(log, "SUCCEEDED") {
				w.Errorf("%s: the job's log says\n%s", transport.name, log)
			}
		}
	})
}
