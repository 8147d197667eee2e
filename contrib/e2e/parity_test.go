package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/rest"
)

// ways are the transports whose jobs have to see what a job of sbatch sees.
var ways = map[string]func(w *world) slurm.Client{
	"rest-unix": func(w *world) slurm.Client { return w.rest("unix:") },
	"rest-tcp":  func(w *world) slurm.Client { return w.rest("http:") },
}

// rest is the release's slurmrestd: root's word on the socket is alice's.
func (w *world) rest(scheme string) slurm.Client {
	w.Helper()
	text, err := os.ReadFile(w.site)
	w.ok(err)
	url := regexp.MustCompile(`url = "(` + scheme + `[^"]*)"`).FindStringSubmatch(string(text))
	if url == nil {
		w.Fatalf("the site file has no %s address", scheme)
	}
	o := rest.Options{URL: url[1], User: "alice"}
	if scheme == "http:" {
		o.Token = func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, os.Getenv("TP_DEVCLUSTER"), "exec", w.release, "--", "scontrol", "token").Output()
			if err != nil {
				return "", err
			}
			return cli.ParseToken(out)
		}
	}
	c, err := rest.New(o)
	w.ok(err)
	return c
}

// mayDiffer are variables in which two jobs of one request may differ, each
// with the reason. Everything else has to be equal, name and value.
var mayDiffer = []struct{ name, why string }{
	{`TASK_PID|SRUN_COMM_PORT|SRUN_COMM_HOST|LAUNCH_NODE_IPADDR|STEP_LAUNCHER_PORT|STEPMGR`, "of this one process or step"},
	{`JOB_(START|END)_TIME|JOB_SLUID`, "of this one job"},
	{`TRES_PER_TASK`, "from 24.11 on sbatch says CPUS_PER_TASK twice"},
	{`PRIO_PROCESS`, "the nice value of the submitting shell"},
	{`HYDRA_BOOTSTRAP|HYDRA_LAUNCHER_EXTRA_ARGS|I_MPI_HYDRA_BOOTSTRAP(_EXEC_EXTRA_ARGS)?|(OMPI|PRTE)_MCA_plm_slurm_args`, "for an mpirun in the batch script"},
	{`limits`, "sbatch brings its own, slurmrestd leaves the node's"},
	{`JOB_GPUS|STEP_GPUS|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK`, "which devices were free"},
}

func allowed(name string) bool {
	for _, m := range mayDiffer {
		if regexp.MustCompile(`^(SLURM_)?(` + m.name + `)(_(HET|PACK)_GROUP_\d+)?$`).MatchString(name) {
			return true
		}
	}
	return false
}

// parityRequest has three components that differ in everything that srun looks at.
func (w *world) parityRequest(way, path, home string) *slurm.Request {
	dir := filepath.Join(w.dir, "lab", way)
	w.mkdir(dir)
	return &slurm.Request{
		Name: "parity", WorkDir: dir, Output: dir + "/log.%j", Requeue: true,
		Env: []slurm.EnvVar{{Name: "PATH", Value: path}, {Name: "HOME", Value: home}, {Name: "USER", Value: "alice"}, {Name: "MINE", Value: "a b"}},
		Components: []slurm.Component{
			{Partition: "h200", Account: "research", QOS: "normal", Nodes: 1, TasksPerNode: 2, CPUsPerTask: 3, Memory: 500, TimeLimit: 5,
				NodeList: []string{"h200-1"}, GRES: []slurm.GRES{{Name: "gpu", Type: "h200", Count: 2}}},
			{Partition: "h100", Account: "research", QOS: "low", Nodes: 2, TasksPerNode: 1, CPUsPerTask: 2, Memory: 300, TimeLimit: 6,
				GRES: []slurm.GRES{{Name: "gpu", Type: "h100", Count: 1}}},
			{Partition: "cpu", Account: "research", QOS: "high", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Memory: 200, TimeLimit: 7, NodeList: []string{"cpu-1"}},
		},
	}
}

// parityScript leaves the environment of the batch script and of every task.
func parityScript(r *slurm.Request) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for i, options := range r.Options() {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		for _, o := range options {
			if b.WriteString("#SBATCH --" + o.Name); !o.Bare {
				b.WriteString("=" + shell.Directive(o.Value))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("export OUT=$PWD\nenv -0 >\"$OUT/batch.env\"; umask >\"$OUT/umask\"; ulimit -a >\"$OUT/limits\"\n")
	for g := range r.Components {
		fmt.Fprintf(&b, "srun --overlap --het-group=%d bash -c 'env -0 >\"$OUT/step%d.$SLURM_PROCID\"' || echo %d >>\"$OUT/failed\"\n", g, g, g)
	}
	b.WriteString("touch \"$OUT/done\"\n")
	return b.String()
}

// TestParity submits one text by sbatch and through every transport, and
// compares the environment of the batch script and of a step in each het group.
func TestParity(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		path, home := strings.TrimSpace(w.must("printenv", "PATH")), strings.TrimSpace(w.must("printenv", "HOME"))
		conf := strings.TrimSpace(w.slurm("printenv", "SLURM_CONF").out)
		r := w.parityRequest("sbatch", path, home)
		env := []string{"-i", "PATH=" + path, "HOME=" + home, "USER=alice", "MINE=a b"}
		if conf != "" {
			env = append(env, "SLURM_CONF="+conf)
		}
		script := filepath.Join(w.dir, "parity.sh")
		w.ok(os.WriteFile(script, []byte(parityScript(r)), 0o644))
		w.must(slices.Concat([]string{"env", "-C", r.WorkDir}, env, []string{"sh", "-c", `umask 077; exec sbatch --parsable "$1"`, "sh", script})...)
		want := w.left(r)
		for _, way := range slices.Sorted(maps.Keys(ways)) {
			r := w.parityRequest(way, path, home)
			if conf != "" {
				r.Env = append(r.Env, slurm.EnvVar{Name: "SLURM_CONF", Value: conf})
			}
			r.Script = parityScript(r)
			sub, err := ways[way](w).Submit(w.Context(), r)
			w.ok(err)
			w.Cleanup(func() { w.slurm("scancel", sub.ID.String()) })
			got := w.left(r)
			for _, part := range slices.Sorted(maps.Keys(merge(want, got))) {
				for _, name := range slices.Sorted(maps.Keys(merge(want[part], got[part]))) {
					a, inWant := want[part][name]
					b, inGot := got[part][name]
					if (a != b || inWant != inGot) && !allowed(name) {
						w.Errorf("%s, %s: %s is %s, by sbatch %s", way, part, name, told(b, inGot), told(a, inWant))
					}
				}
			}
		}
	})
}

func told(value string, there bool) string {
	if !there {
		return "not there"
	}
	return fmt.Sprintf("%q", value)
}

func merge[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return all
}

// left waits for a job's files: part of the job, name, value. What names the
// job is replaced.
func (w *world) left(r *slurm.Request) map[string]map[string]string {
	w.Helper()
	w.waitFor(busy, "the job in "+r.WorkDir, func() bool {
		_, err := os.Stat(r.WorkDir + "/done")
		return err == nil
	})
	if failed := w.read(r.WorkDir, "failed"); failed != "" {
		logs, _ := filepath.Glob(r.WorkDir + "/log.*")
		w.Errorf("srun failed in het groups %q: %s", failed, w.read(strings.Join(logs, "")))
	}
	files, err := filepath.Glob(r.WorkDir + "/*.env")
	w.ok(err)
	steps, err := filepath.Glob(r.WorkDir + "/step*")
	w.ok(err)
	out := map[string]map[string]string{"batch": {"umask": w.read(r.WorkDir, "umask"), "limits": w.read(r.WorkDir, "limits")}}
	var ids []string
	for _, file := range slices.Concat(files, steps) {
		part := strings.TrimSuffix(filepath.Base(file), ".env")
		if out[part] == nil {
			out[part] = map[string]string{}
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(w.read(file), "\x00"), "\x00") {
			name, value, _ := strings.Cut(entry, "=")
			out[part][name] = value
			if strings.HasPrefix(name, "SLURM_JOB_ID") || strings.HasPrefix(name, "SLURM_JOBID") {
				ids = append(ids, value)
			}
		}
	}
	slices.Sort(ids)
	for i, id := range slices.Compact(ids) {
		for part := range out {
			for name, value := range out[part] {
				value = strings.ReplaceAll(value, r.WorkDir, "DIR")
				out[part][name] = regexp.MustCompile(`\b`+id+`\b`).ReplaceAllString(value, fmt.Sprintf("ID+%d", i))
			}
		}
	}
	return out
}
