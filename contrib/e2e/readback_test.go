package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// shown is one pool of the preview, in the preview's own words.
type shown map[string]string

var columns = regexp.MustCompile(`\s{2,}`)

// poolTable reads the table of pools in a preview.
func (w *world) poolTable(preview string) []shown {
	w.Helper()
	var head []string
	var pools []shown
	for line := range strings.Lines(preview) {
		cells := columns.Split(strings.TrimSpace(line), -1)
		switch {
		case head == nil && cells[0] == "pool" && len(cells) > 5:
			head = cells
		case head != nil && len(cells) != len(head):
			return pools
		case head != nil:
			row := shown{}
			for i, name := range head {
				row[name] = cells[i]
			}
			pools = append(pools, row)
		}
	}
	w.Fatalf("no table of pools in\n%s", preview)
	return nil
}

// pairs compares scontrol's fields of one component with what was shown.
func (w *world) pairs(n int, job map[string]string, want map[string]string) {
	w.Helper()
	for field, value := range want {
		if got := normal(field, job[field]); got != normal(field, value) {
			w.Errorf("component %d: %s was shown as %q, Slurm has %q", n, field, value, job[field])
		}
	}
}

// normal is a value in one spelling for all releases and for the preview.
func normal(field, value string) string {
	switch field {
	case "TresPerNode": // gres:gpu:h200:2 on 22.05, gres/gpu:h200:2 later
		return strings.NewReplacer("gres:", "", "gres/", "").Replace(value)
	case "TimeLimit":
		if days, clock, ok := strings.Cut(value, "-"); ok && days == "0" {
			return clock
		}
	case "NumNodes":
		if low, high, ok := strings.Cut(value, "-"); ok && low == high {
			return low
		}
	case "MinMemoryNode":
		return fmt.Sprint(mib(value))
	case "ReqTRES":
		parts := strings.Split(value, ",")
		for i, p := range parts {
			if memory, ok := strings.CutPrefix(p, "mem="); ok {
				parts[i] = fmt.Sprint("mem=", mib(memory))
			}
		}
		return strings.Join(parts, ",")
	}
	return value
}

func mib(text string) int {
	digits := strings.TrimRight(text, "MGT")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return -1
	}
	return int(n * map[string]float64{"M": 1, "": 1, "G": 1024, "T": 1024 * 1024}[text[len(digits):]])
}

// shownComponents adds up pools that share a component: equal rows but for pool
// and roles.
func (w *world) shownComponents(pools []shown) []map[string]string {
	w.Helper()
	var out []map[string]string
	index := map[string]int{}
	for _, p := range pools {
		nodes, gpus, _ := strings.Cut(p["nodes × GPUs"], " × ")
		key := fmt.Sprint(p["series"], gpus, p["CPUs"], p["memory"], p["partition"], p["time"], p["account"], p["QOS"], p["constraint"])
		at, known := index[key]
		if !known {
			at = len(out)
			index[key] = at
			out = append(out, map[string]string{"NumNodes": "0", "Partition": p["partition"], "TimeLimit": p["time"], "CPUs/Task": p["CPUs"],
				"MinMemoryNode": p["memory"], "TresPerNode": "gpu:" + p["series"] + ":" + gpus, "GPUs": gpus, "Series": p["series"]})
			if p["account"] != "default" { // or "research (default)", where accounting told
				out[at]["Account"] = strings.TrimSuffix(p["account"], " (default)")
			}
			if p["QOS"] != "default" {
				out[at]["QOS"] = p["QOS"]
			}
			if c := p["constraint"]; c != "" && c != "none" {
				out[at]["Features"] = c
			}
		}
		had, _ := strconv.Atoi(out[at]["NumNodes"])
		more, err := strconv.Atoi(nodes)
		w.ok(err)
		out[at]["NumNodes"] = fmt.Sprint(had + more)
	}
	for _, c := range out {
		n, _ := strconv.Atoi(c["NumNodes"])
		cpus, _ := strconv.Atoi(c["CPUs/Task"])
		gpus, _ := strconv.Atoi(c["GPUs"])
		c["NumTasks"], c["NumCPUs"], c["MinCPUsNode"] = c["NumNodes"], fmt.Sprint(n*cpus), c["CPUs/Task"]
		c["ReqTRES"] = fmt.Sprintf("cpu=%d,mem=%dM,node=%d,billing=%d,gres/gpu=%d,gres/gpu:%s=%d",
			n*cpus, n*mib(c["MinMemoryNode"]), n, n*cpus, n*gpus, c["Series"], n*gpus)
		delete(c, "GPUs")
		delete(c, "Series")
	}
	return out
}

// TestReadBack reads each field of the preview, as a person sees it, and then
// the job from Slurm: both must say the same.
func TestReadBack(t *testing.T) {
	cases := []struct {
		args       []string
		components int
		requeue    string
		want       []map[string]string // what the flags mean, beyond the preview
	}{
		{
			args: []string{"one", "--profile", "h200:2", "--time", "47m", "--mem", "100G", "--cpus-per-node", "5",
				"--qos", "high", "--account", "research", "--constraint", "ib"},
			components: 1, requeue: "0",
			want: []map[string]string{{"TimeLimit": "00:47:00", "MinMemoryNode": "100G", "CPUs/Task": "5", "QOS": "high", "Account": "research", "Features": "ib"}},
		},
		{
			args: []string{"two", "--profile", "rollout=h100:4", "--profile", "train=h200:8", "--requeue",
				"--time", "1h", "--time", "rollout=90s", "--mem", "0", "--mem", "rollout=300G", "--cpus-per-node", "32", "--cpus-per-node", "rollout=7",
				"--qos", "normal", "--qos", "rollout=low", "--account", "research", "--constraint", "hopper&ib", "--constraint", "rollout=h100"},
			components: 2, requeue: "1",
			want: []map[string]string{
				{"Partition": "h200", "TimeLimit": "01:00:00", "MinMemoryNode": "1000000M", "CPUs/Task": "32", "QOS": "normal", "Features": "hopper&ib"},
				{"Partition": "h100", "TimeLimit": "00:02:00", "MinMemoryNode": "300G", "CPUs/Task": "7", "QOS": "low", "Features": "h100"},
			},
		},
		{
			args:       []string{"two", "--profile", "train,rollout=h200:4", "--partition", "h200"},
			components: 1, requeue: "0",
			want: []map[string]string{{"NumNodes": "1", "TresPerNode": "gpu:h200:4", "CPUs/Task": "32", "MinMemoryNode": "500000M", "TimeLimit": "00:10:00"}},
		},
		{
			args:       []string{"two", "--profile", "train=h200:8", "--profile", "rollout=h200:8", "--name", "collapsed"},
			components: 1, requeue: "0",
			want: []map[string]string{{"NumNodes": "2", "NumTasks": "2", "TresPerNode": "gpu:h200:8"}},
		},
	}
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("one", map[string]string{"train": "sleep 60"})
		w.experiment("two", map[string]string{"train": "sleep 60", "rollout": "sleep 60"})
		w.commit()
		for _, c := range cases {
			s := w.submit(c.args...)
			if len(s.Differences) > 0 {
				w.Errorf("%v: tp sees differences: %q", c.args, s.Differences)
			}
			jobs := w.scontrol(s.job())
			table := w.shownComponents(w.poolTable(s.preview))
			if len(jobs) != c.components || len(table) != c.components {
				w.Fatalf("%v: %d components in the preview, %d in Slurm, wanted %d", c.args, len(table), len(jobs), c.components)
			}
			if kind := map[int]string{1: "one plain job", 2: "one heterogeneous job of 2 components"}[c.components]; !strings.Contains(s.preview, kind) {
				w.Errorf("%v: the preview does not say %q", c.args, kind)
			}
			name := c.args[0]
			if c.args[len(c.args)-2] == "--name" {
				name = c.args[len(c.args)-1]
			}
			for i, job := range jobs {
				if tres, old := job["TRES"]; old { // its name on 22.05, where it is a guess while the job pends
					job["ReqTRES"] = tres
					if job["JobState"] == "PENDING" {
						delete(table[i], "ReqTRES")
					}
				}
				if c.components == 1 && job["HetJobId"] != "" {
					w.Errorf("%v: het job %s, wanted a plain one", c.args, job["HetJobId"])
				}
				w.pairs(i, job, table[i])
				w.pairs(i, job, c.want[i])
				w.pairs(i, job, map[string]string{
					"JobName": name + "." + s.RunID, "UserId": fmt.Sprintf("alice(%d)", w.uid), "WorkDir": s.RunDir,
					"Requeue": c.requeue, "Comment": "tp:" + s.RunID, "NtasksPerN:B:S:C": "1:0:*:*",
				})
			}
			if shown := strings.Contains(s.preview, "requeue"); shown != (c.requeue == "1") {
				w.Errorf("%v: requeue is %s, and the preview says:\n%s", c.args, c.requeue, s.preview)
			}
			w.pairs(0, jobs[0], map[string]string{"StdOut": fmt.Sprintf("%s/logs/job-%d.log", s.RunDir, s.JobID)})
			w.slurm("scancel", s.job())
		}
	})
}

// differing are fields in which two jobs of the same request may differ.
var differing = map[string]bool{
	"JobId": true, "HetJobId": true, "HetJobIdSet": true, "Priority": true, "JobState": true, "Reason": true, "RunTime": true,
	"SubmitTime": true, "EligibleTime": true, "AccrueTime": true, "StartTime": true, "EndTime": true, "PreemptEligibleTime": true,
	"LastSchedEval": true, "Scheduler": true, "AllocNode:Sid": true, "NodeList": true, "SchedNodeList": true, "BatchHost": true,
	"NumNodes":  true, // as a range while it pends; the read-back test looks at it
	"AllocTRES": true, "ExitCode": true, "Command": true, "SubmitLine": true, "PreemptTime": true,
	// From 24.11 on sbatch repeats --cpus-per-task as TresPerTask, and slurmrestd
	// writes out OOMKillStep's default; CPUs/Task and the default are the same.
	"TresPerTask": true, "OOMKillStep": true,
}

// TestRenderEqualsSubmit submits the same experiment through REST and by giving
// the rendered script to sbatch, and compares the jobs field by field.
func TestRenderEqualsSubmit(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("one", map[string]string{"train": `echo done >"$TP_OUT_DIR/done"; sleep 2`})
		w.experiment("two", map[string]string{"train": `echo done >"$TP_OUT_DIR/done"; sleep 2`, "rollout": "sleep 600"})
		w.commit()
		for _, args := range [][]string{
			{"one", "--profile", "h200:2", "--time", "7m", "--qos", "high", "--account", "research", "--constraint", "ib"},
			{"two", "--profile", "train=h200:1", "--profile", "rollout=h100:2", "--mem", "2G", "--mem", "rollout=3G", "--requeue",
				"--time", "9m", "--time", "rollout=11m", "--qos", "rollout=low", "--cpus-per-node", "rollout=3", "--constraint", "rollout=ib"},
		} {
			rest := w.submit(args...)
			script, dir := w.render(args...)
			job := w.sbatch(script)
			same := func(jobs []map[string]string, runDir string) []map[string]string {
				for _, j := range jobs {
					id := j["JobId"]
					if per := j["TresPerTask"]; per != "" && per != "cpu="+j["CPUs/Task"] {
						w.Errorf("TresPerTask %q beside %s CPUs per task", per, j["CPUs/Task"])
					}
					if j["OOMKillStep"] == "1" {
						w.Error("OOMKillStep is on")
					}
					for field, value := range j {
						value = strings.NewReplacer(runDir, "RUN_DIR", runID(runDir), "RUN", "job-"+id+".log", "job-ID.log").Replace(value)
						j[field] = strings.TrimSpace(value)
						if differing[field] {
							delete(j, field)
						}
					}
				}
				return jobs
			}
			a, b := same(w.scontrol(rest.job()), rest.RunDir), same(w.scontrol(job), dir)
			if len(a) != len(b) {
				w.Fatalf("%v: %d components by REST, %d by sbatch", args, len(a), len(b))
			}
			for i := range a {
				for field := range merged(a[i], b[i]) {
					if a[i][field] != b[i][field] {
						w.Errorf("%v component %d: %s is %q by REST, %q by sbatch", args, i, field, a[i][field], b[i][field])
					}
				}
			}
			w.wait(rest.RunDir, "SUCCEEDED")
			if r := w.wait(dir, "SUCCEEDED"); r.job() != job {
				w.Errorf("the rendered run is said to be job %q, it is %s", r.job(), job)
			}
			if w.read(dir, "out", "done") != "done\n" {
				w.Error("the rendered run wrote nothing")
			}
		}
	})
}

func runID(dir string) string { return dir[strings.LastIndex(dir, "/")+1:] }

func merged(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}
