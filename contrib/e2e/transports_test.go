package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// placed are variables that may differ: what a run chooses when it starts (free
// ports, the order of its steps), where sbatch was called, and what the login of
// the user brings on 22.05 in spite of --export=NIL.
var placed = regexp.MustCompile(`^(TP_(POOL|ROLE)_.*_(PORT|ENDPOINT)|SLURM_STEP_?ID|SLURM_SUBMIT_DIR|MAIL|SHELL|SHLVL)$`)

// seen is the environment of every role on every node, with what names the run
// replaced.
func (w *world) seen(dir string) map[string]map[string]string {
	w.Helper()
	out := map[string]map[string]string{}
	jobs := regexp.MustCompile(`\b(` + strings.Join(w.components(dir), "|") + `)\b`)
	for _, part := range []string{"train.0", "rollout.0", "rollout.1", "judge.0"} {
		out[part] = w.environ(dir, "out", part+".env")
		for name, value := range out[part] {
			value = strings.NewReplacer(dir, "RUN_DIR", runID(dir), "RUN").Replace(value)
			if strings.HasPrefix(name, "SLURM") {
				value = jobs.ReplaceAllString(value, "JOB")
			}
			out[part][name] = value
		}
	}
	return out
}

// components are the ids of a run's het job.
func (w *world) components(dir string) []string {
	w.Helper()
	first, err := strconv.Atoi(w.status(dir).job())
	w.ok(err)
	return []string{fmt.Sprint(first), fmt.Sprint(first + 1), fmt.Sprint(first + 2)}
}

// TestThreePoolsByEveryTransport queues pools of three series in three
// partitions, with accounts and time limits of their own. Slurm must hold what
// the preview shows, and every role must see what it sees in a job of sbatch,
// whichever way Slurm was asked.
func TestThreePoolsByEveryTransport(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		const leave = `env -0 >"$TP_OUT_DIR/$TP_ROLE.$TP_NODE_RANK.tmp"; mv "$TP_OUT_DIR/$TP_ROLE.$TP_NODE_RANK.tmp" "$TP_OUT_DIR/$TP_ROLE.$TP_NODE_RANK.env"; `
		w.experiment("three", map[string]string{
			"train":   leave + `until [ "$(ls "$TP_OUT_DIR"/*.env | wc -l)" = 4 ]; do sleep 0.1; done`,
			"rollout": leave + "sleep 60", "judge": leave + "sleep 60",
		})
		w.commit()
		args := []string{"three", "--profile", "train=h200:2", "--profile", "rollout=h100:2x1", "--profile", "judge=cpu:1",
			"--time", "9m", "--time", "rollout=11m", "--time", "judge=13m", "--account", "research", "--account", "rollout=science",
			"--mem", "2G", "--mem", "rollout=3G", "--cpus-per-node", "2", "--cpus-per-node", "judge=1", "--qos", "judge=high",
			"--nodelist", "train=h200-1", "--nodelist", "judge=cpu-1"}
		script, dir := w.render(args...)
		w.sbatch(script)
		w.wait(dir, "SUCCEEDED")
		want := w.seen(dir)
		for _, transport := range transports {
			s := w.submit(append(slices.Clone(transport.flags), args...)...)
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
			got := w.seen(s.RunDir)
			for _, role := range slices.Sorted(maps.Keys(merge(want, got))) {
				for _, name := range slices.Sorted(maps.Keys(merge(want[role], got[role]))) {
					a, inWant := want[role][name]
					b, inGot := got[role][name]
					if (a != b || inWant != inGot) && !allowed(name) && !placed.MatchString(name) {
						w.Errorf("%s, %s: %s is %s, by sbatch %s", transport.name, role, name, told(b, inGot), told(a, inWant))
					}
				}
			}
		}
	})
}
