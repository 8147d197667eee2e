package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// everyOption are flags of tp with what Slurm must show of them, by component.
// What a release or its REST language has no word for is left out there, and
// TestOptionsRefused looks at it.
func everyOption(release string) (args []string, want []map[string]string) {
	args = []string{"two", "--profile", "train=h200:1", "--profile", "rollout=h100:2x1", "--time", "20m",
		"--begin", "2030-01-02T20:00", "--hold", "--nice", "7", "--licenses", "matlab:1", "--mail-type", "END,TIME_LIMIT_80", "--mail-user", "alice",
		"--wckey", "tp-e2e", "--signal", "USR1@60", "--comment", "for the \"paper\"", "--deadline", "2031-01-01T00:00:00",
		"--nodelist", "rollout=h100-[1-2]", "--exclude-nodes", "train=h200-2", "--prefer", "rollout=hopper", "--exclusive=train=user", "--exclusive=rollout=exclusive",
		"--time-min", "rollout=5m", "--mem-per-cpu", "train=100M", "--mem-per-gpu", "rollout=2G", "--cpus-per-node", "4"}
	want = []map[string]string{
		{"Nice": "7", "Licenses": "matlab:1", "Deadline": "2031-01-01T00:00:00", "ExcNodeList": "h100-[1-2],h200-2", "MinMemoryCPU": "100M"},
		{"ReqNodeList": "h100-[1-2]", "Prefer": "hopper", "TimeMin": "00:05:00"},
	}
	user, alone := map[string]string{"OverSubscribe": "USER"}, map[string]string{"OverSubscribe": "NO"}
	if release == "26.05" {
		user, alone = map[string]string{"Exclusive": "USER"}, map[string]string{"Exclusive": "NODE"}
	}
	for k, v := range user {
		want[0][k] = v
	}
	for k, v := range alone {
		want[1][k] = v
	}
	if release != "22.05" {
		args = append(args, "--switches", "rollout=1@2m", "--network", "rollout=sn_all", "--extra", "more words")
		want[0]["Extra"] = "more words"
		want[1]["Switches"], want[1]["Network"] = "1@00:02:00", "sn_all"
		want[0]["MailType"], want[0]["MailUser"] = "END,TIME_LIMIT_80", "alice"
	}
	if release == "26.05" {
		args = append(args, "--segment", "rollout=2")
		want[1]["SegmentSize"] = "2"
	}
	return args, want
}

// TestEveryOption asks for everything by flag, finds it in the preview and in
// Slurm, and reads no difference back.
func TestEveryOption(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("two", map[string]string{"train": "sleep 60", "rollout": "sleep 60"})
		w.commit()
		args, want := everyOption(w.release)
		s := w.submit(args...)
		if len(s.Differences) > 0 {
			w.Errorf("tp sees differences: %q", s.Differences)
		}
		for _, words := range []string{
			"the job asks for", "--begin=2030-01-02T20:00:00", "--hold", "--nice=7", "--signal=USR1@60", "--mail-type=END,TIME_LIMIT_80", "--wckey=tp-e2e",
			"rollout asks for --prefer=hopper --nodelist=h100-[1-2]", "--exclusive=user", "100M/CPU", "2G/GPU",
		} {
			if !strings.Contains(s.preview, words) {
				w.Errorf("the preview does not say %q:\n%s", words, s.preview)
			}
		}
		jobs := w.scontrol(s.job())
		for i := range jobs {
			w.pairs(i, jobs[i], want[i])
			w.pairs(i, jobs[i], map[string]string{"Comment": "tp:" + s.RunID + ` for the "paper"`})
		}
		// The rendered script under sbatch is the same job.
		script, dir := w.render(args...)
		same := w.scontrol(w.sbatch(script))
		if len(same) != len(jobs) {
			w.Fatalf("%d components by REST, %d by sbatch", len(jobs), len(same))
		}
		for i := range jobs {
			for field := range merged(jobs[i], same[i]) {
				a := strings.ReplaceAll(strings.ReplaceAll(jobs[i][field], s.RunDir, "RUN_DIR"), runID(s.RunDir), "RUN")
				b := strings.ReplaceAll(strings.ReplaceAll(same[i][field], dir, "RUN_DIR"), runID(dir), "RUN")
				a, b = strings.ReplaceAll(a, jobs[i]["JobId"], "ID"), strings.ReplaceAll(b, same[i]["JobId"], "ID")
				if field == "ExcNodeList" && b == "" {
					b = "(null)" // an empty list that undoes the leader's
				}
				if a != b && !differing[field] {
					w.Errorf("component %d: %s is %q by REST, %q by sbatch", i, field, a, b)
				}
			}
		}
		w.leave()
	})
}

// TestOptionsRefused: what cannot be asked for, or can never come true, is said
// before anything is queued.
func TestOptionsRefused(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("two", map[string]string{"train": "true", "rollout": "true"})
		w.commit()
		failed := w.must("sbatch", "--parsable", "-p", "cpu", "-n1", "--mem=1", "-t1", "-o", "/dev/null", "-D", "/tmp", "--wrap", "exit 3")
		good := w.must("sbatch", "--parsable", "-p", "cpu", "-n1", "--mem=1", "-t1", "-o", "/dev/null", "-D", "/tmp", "--wrap", "true")
		failed, good = strings.TrimSpace(failed), strings.TrimSpace(good)
		w.waitFor(busy, "two short jobs to end", func() bool {
			return w.scontrol(failed)[0]["JobState"] == "FAILED" && w.scontrol(good)[0]["JobState"] == "COMPLETED"
		})
		cases := map[string][]string{
			"FAILED, so afterok can never": {"--after", failed},
			"COMPLETED, so afternotok can": {"--dependency", "afternotok:" + good},
			"999999 is not known":          {"--after", "999999"},
			"no run run-0123456789ab":      {"--after", "run-0123456789ab"},
			"singleton":                    {"--dependency", "singleton"},
			"expected TYPE:ID":             {"--dependency", failed},
			"could never end in time":      {"--deadline", "now+5m"},
			"write now+60s":                {"--begin", "now+60"},
			"ago":                          {"--begin", "2020-01-01T00:00"},
			"exclude each other: a held":   {"--hold", "--priority", "5"},
			"exclude each other":           {"--mem", "1G", "--mem-per-gpu", "1G"},
			"no value by role":             {"--licenses", "rollout=matlab:1"},
			"the batch script is tp's":     {"--signal", "B:USR1@60"},
			"expected NONE, BEGIN":         {"--mail-type", "SOMETIMES"},
			"expected exclusive, user":     {"--exclusive=nobody"},
			"no list of nodes":             {"--nodelist", "/etc/passwd"},
			"more than its time limit":     {"--time-min", "1h"},
			"from 1 to 4294967293":         {"--priority", "4294967294"},
		}
		if w.release == "22.05" {
			cases["Extra: "] = []string{"--extra", "x"}
			cases["Switches: "] = []string{"--switches", "1"}
			cases["Segment: "] = []string{"--segment", "1"}
			cases["Network: "] = []string{"--network", "x"}
			cases["Share: "] = []string{"--exclusive=topo"}
		}
		for words, args := range cases {
			r := w.tp(append([]string{"submit", "--yes", "two", "--profile", "h200:1"}, args...)...)
			if r.code == 0 || !strings.Contains(r.err, words) {
				w.Errorf("%q: exit code %d, wanted %q in\n%s", args, r.code, words, r.err)
			}
		}
		if jobs := w.jobs("all"); len(jobs) > 0 {
			w.Errorf("jobs were queued: %v", jobs)
		}
	})
}

// TestAfter: a run that waits for another, and one that waits for what has
// ended well already.
func TestAfter(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": `until [ -e "$TP_RUN_DIR/../../go" ]; do sleep 0.2; done`})
		w.commit()
		first := w.submit("one", "--profile", "cpu:1", "--mem", "100M", "--cpus-per-node", "1")
		second := w.submit("one", "--profile", "cpu:1", "--mem", "100M", "--cpus-per-node", "1", "--after", first.RunID)
		job := w.scontrol(second.job())[0]
		if !strings.Contains(job["Dependency"], "afterok:"+first.job()) || job["KillOInInvalidDependent"]+job["KillOnInvalidDependent"] != "Yes" {
			w.Errorf("the dependency is %q, to be cancelled: %q%q", job["Dependency"], job["KillOInInvalidDependent"], job["KillOnInvalidDependent"])
		}
		w.ok(os.WriteFile(w.dir+"/runs/alice/go", nil, 0o644))
		w.wait(first.RunDir, "SUCCEEDED")
		w.wait(second.RunDir, "SUCCEEDED")
		third := w.submit("one", "--profile", "cpu:1", "--mem", "100M", "--cpus-per-node", "1", "--after", first.RunID)
		if !strings.Contains(third.preview, "already: there is nothing to wait for") {
			w.Errorf("the preview does not say that there is nothing to wait for:\n%s", third.preview)
		}
		w.wait(third.RunDir, "SUCCEEDED")
		// Minutes after a start: the job has begun and ended, and they are not over.
		fourth := w.submit("one", "--profile", "cpu:1", "--mem", "100M", "--cpus-per-node", "1", "--dependency", "after:"+first.job()+"+30")
		if job := w.scontrol(fourth.job())[0]; !strings.Contains(job["Dependency"], "after:"+first.job()+"+30") {
			w.Errorf("the dependency is %q, wanted 30 minutes after job %s", job["Dependency"], first.job())
		}
		w.slurm("scancel", fourth.job())
	})
}

// TestSignal: the warning reaches the roles of every pool, the shells around
// them live through it, and the run goes on.
func TestSignal(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		const role = `trap 'touch "$TP_OUT_DIR/$TP_ROLE.warned"' USR1
for _ in $(seq 600); do [ -e "$TP_OUT_DIR/train.warned" ] && [ -e "$TP_OUT_DIR/rollout.warned" ] && exit 0; sleep 0.1 || true; done; exit 4` // Slurm signals every process of the step
		w.experiment("two", map[string]string{"train": role, "rollout": role})
		w.commit()
		// Slurm may send it a minute early, so at once here.
		s := w.submit("two", "--profile", "train=h200:1", "--profile", "rollout=h100:1", "--time", "2m", "--signal", fmt.Sprintf("USR1@%d", int((100*time.Second).Seconds())))
		w.wait(s.RunDir, "SUCCEEDED")
	})
}
