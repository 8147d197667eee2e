package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// open gives a client whose directory has a name that shells trip over. When
// the test ends, no process of any of its jobs may be left.
func open(t *testing.T) *Client {
	t.Helper()
	dir := filepath.Join(t.TempDir(), `it's a "dir" $HOME \ 训练`)
	c, err := Open(Options{Dir: dir, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.root, c.minute = filepath.Join(dir, "root"), time.Second
	write(t, filepath.Join(c.root, "proc/meminfo"), "MemFree: 1 kB\nMemTotal:       2097152 kB\n")
	t.Cleanup(func() {
		ids, _ := c.ids()
		for _, id := range ids {
			if c.Cancel(context.Background(), id) == nil {
				wait(t, c, id)
			}
		}
		gone(t, c)
	})
	return c
}

// gone waits a moment for the supervisor, which ends right after its last word.
func gone(t *testing.T, c *Client) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); ; <-tick.C {
		left := processes(t, c.dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: %v", left)
			return
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// processes are those with the directory in environment or arguments.
func processes(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(dir)) {
				line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
				found[filepath.Base(filepath.Dir(f))] = strings.ReplaceAll(string(line), "\x00", " ")
			}
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // those of tree, whatever they have done to themselves
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && string(data) == "sleep\x00"+odd+"\x00" {
			found[filepath.Base(filepath.Dir(f))] = "sleep of the tree"
		}
	}
	delete(found, strconv.Itoa(os.Getpid()))
	return found
}

func request(t *testing.T, c *Client, body string) *slurm.Request {
	t.Helper()
	dir := t.TempDir()
	return &slurm.Request{
		Name: "hello.run-0123456789ab", Comment: "tp:run-0123456789ab", Script: "#!/bin/bash\n" + body,
		WorkDir: dir, Output: dir + "/100%%-job-%j.log",
		Env:        []slurm.EnvVar{{Name: "PATH", Value: c.Commands() + ":/usr/local/bin:/usr/bin:/bin"}, {Name: "HOME", Value: dir}},
		Components: []slurm.Component{{Partition: Partition, Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Memory: 100, TimeLimit: 60}},
	}
}

func submit(t *testing.T, c *Client, r *slurm.Request) slurm.JobID {
	t.Helper()
	sub, err := c.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return sub.ID
}

func show(t *testing.T, c *Client, id slurm.JobID) slurm.Job {
	t.Helper()
	jobs, err := c.Jobs(context.Background(), id)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("job %s: %+v, %v", id, jobs, err)
	}
	return jobs[0]
}

// wait polls until the job has ended.
func wait(t *testing.T, c *Client, id slurm.JobID) slurm.Job {
	t.Helper()
	return until(t, c, id, func(j slurm.Job) bool { return j.State.Ended() })
}

func until(t *testing.T, c *Client, id slurm.JobID, want func(slurm.Job) bool) slurm.Job {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(15 * time.Second); ; <-tick.C {
		j := show(t, c, id)
		if want(j) {
			return j
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s is %+v", id, j)
		}
	}
}

// appears waits for a file with something in it.
func appears(t *testing.T, path string) string {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-tick.C {
		if data, err := os.ReadFile(path); err == nil && len(data) > 0 && data[len(data)-1] == '\n' {
			return strings.TrimSpace(string(data))
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not appear", path)
		}
	}
}

func output(t *testing.T, r *slurm.Request, id slurm.JobID) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("%s/100%%-job-%s.log", r.WorkDir, id))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestConformance(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	slurmtest.Conform(t, func(t *testing.T) slurm.Client { return open(t) }, slurmtest.Cluster{
		User: u.Username, WorkDir: t.TempDir(), CPU: Partition, Wait: 10 * time.Second,
		Only: []string{"OddName", "UnknownID", "ExitCode"},
	})
}

func TestReadsBackWhatWasAsked(t *testing.T) {
	c := open(t)
	r := request(t, c, "echo said; echo told >&2; exit 3\n")
	id := submit(t, c, r)
	if found, err := c.JobsByName(t.Context(), c.user, r.Name); err != nil || len(found) != 1 || found[0].ID != id {
		t.Errorf("by name: %+v, %v", found, err)
	}
	if found, err := c.JobsByName(t.Context(), "somebody", r.Name); err != nil || len(found) != 0 {
		t.Errorf("by name, of somebody else: %+v, %v", found, err)
	}
	j := wait(t, c, id)
	if j.State != slurm.Failed || j.ExitCode != 3 || j.Reason != "NonZeroExitCode" || j.NodeList != c.host || j.End.Before(j.Start) || j.Start.IsZero() {
		t.Errorf("%+v", j)
	}
	if got := output(t, r, id); got != "said\ntold\n" {
		t.Errorf("log %q", got)
	}
	script, _ := os.ReadFile(filepath.Join(c.path(id), "script.sh"))
	if string(script) != r.Script {
		t.Errorf("script %q", script)
	}
	for _, name := range []string{"script.sh", "env", "request.json", "process.json", "end.json"} {
		if info, err := os.Stat(filepath.Join(c.path(id), name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestEnvironmentIsExactlyTheRequests(t *testing.T) {
	t.Setenv("TP_TEST_CALLER", "must not arrive")
	t.Setenv("SLURM_JOB_ID", "4711")
	t.Setenv("BASH_ENV", "/nonexistent")
	c := open(t)
	r := request(t, c, `exec cat "/proc/$$/environ" >environ`+"\n")
	hard := []slurm.EnvVar{
		{Name: "T_EMPTY"}, {Name: "T_LINES", Value: "one\ntwo\n"}, {Name: "T_QUOTES", Value: `'"$(id)` + "`\\"},
		{Name: "T_ODD", Value: slurmtest.OddName}, {Name: "T_BYTES", Value: "\xff\xfe\x01"}, {Name: "T_SPACE", Value: "  x "},
		{Name: "tp_var", Value: "1"}, {Name: "job", Value: "2"}, {Name: "env", Value: "3"}, {Name: "leader", Value: "4"},
	}
	r.Env = append(r.Env, hard...)
	id := submit(t, c, r)
	if j := wait(t, c, id); j.State != slurm.Completed {
		t.Fatalf("%+v: %s", j, output(t, r, id))
	}
	data, err := os.ReadFile(filepath.Join(r.WorkDir, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for v := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	for _, v := range r.Env {
		if value, ok := got[v.Name]; !ok || value != v.Value {
			t.Errorf("%s is %q, want %q", v.Name, value, v.Value)
		}
		delete(got, v.Name)
	}
	if got["SLURM_JOB_ID"] != id.String() || got["SLURM_JOB_NAME"] != r.Name || got["SLURM_JOB_NODELIST"] != c.host || got["SLURM_SUBMIT_DIR"] != r.WorkDir {
		t.Errorf("Slurm's own: %v", got)
	}
	for name := range maps.Keys(got) {
		if !strings.HasPrefix(name, "SLURM") && !slices.Contains([]string{"SRUN_CPUS_PER_TASK", "TP_LOCAL_JOB", "PWD", "OLDPWD", "SHLVL", "_"}, name) {
			t.Errorf("%s=%q is nobody's", name, got[name])
		}
	}
}

func TestTwoSubmitsAtOnceGetTwoIDs(t *testing.T) {
	c := open(t)
	r := request(t, c, "true\n")
	ids := make([]slurm.JobID, 4)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			sub, err := c.Submit(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			ids[i] = sub.ID
		})
	}
	group.Wait()
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 4 {
		t.Errorf("ids %v", ids)
	}
}

// tree starts processes that hide in every way a training does: sessions of
// their own, deaf ones, environments cleared below a child, daemons.
var tree = strings.ReplaceAll(`
trap '' TERM
setsid sleep 31415 &
(setsid sleep 31415 &) &
env -i setsid sleep 31415 &
env -i sh -c 'trap "" TERM; sleep 31415 & wait' &
srun --overlap bash -c 'trap "" TERM; setsid sleep 31415 & sleep 31415 & wait' &
echo up >up
sleep 31415 & wait; sleep 31415
`, "31415", odd)

// odd is a sleep by which the processes of this test are known.
var odd = fmt.Sprint("31415.", os.Getpid())

func TestCancelEndsTheWholeTree(t *testing.T) {
	c := open(t)
	r := request(t, c, tree)
	id := submit(t, c, r)
	appears(t, filepath.Join(r.WorkDir, "up"))
	start := time.Now()
	if err := c.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if j := wait(t, c, id); j.State != slurm.Cancelled || time.Since(start) < 900*time.Millisecond {
		t.Errorf("%s after %s, want CANCELLED after the grace period", j.State, time.Since(start))
	}
	if err := c.Cancel(t.Context(), id); err != nil {
		t.Errorf("cancelling what has ended: %v", err)
	}
}

func TestNothingIsLeftAfterTheScript(t *testing.T) {
	c := open(t)
	id := submit(t, c, request(t, c, "setsid sleep 300 &\nsrun sh -c 'sleep 300 & exit 4'\n"))
	if j := wait(t, c, id); j.State != slurm.Failed || j.ExitCode != 4 {
		t.Errorf("%+v", j)
	}
	gone(t, c)
}

func TestScriptsOwnTrapHearsTheTimeLimit(t *testing.T) {
	c := open(t)
	r := request(t, c, "trap 'echo asked; exit 7' TERM\nwhile :; do sleep 0.05; done\n")
	r.Components[0].TimeLimit = 1
	id := submit(t, c, r)
	if j := wait(t, c, id); j.State != slurm.Timeout || j.ExitCode != 7 || j.Reason != "TimeLimit" {
		t.Errorf("%+v", j)
	}
	if got := output(t, r, id); !strings.HasSuffix(got, "asked\n") {
		t.Errorf("log %q", got)
	}
}

func TestKilledSupervisorIsNoticed(t *testing.T) {
	c := open(t)
	r := request(t, c, tree)
	id := submit(t, c, r)
	appears(t, filepath.Join(r.WorkDir, "up"))
	_, p, err := c.load(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if j := wait(t, c, id); j.State != slurm.NodeFail || !strings.Contains(j.Description, "killed") || j.End.IsZero() {
		t.Errorf("%+v", j)
	}
}

func TestMachineWasStartedAgain(t *testing.T) {
	c := open(t)
	id := submit(t, c, request(t, c, "true\n"))
	wait(t, c, id)
	// As a crash leaves it: the supervisor of another boot, and no last word. Its
	// pid means this test now, which must not be harmed.
	if err := os.Remove(filepath.Join(c.path(id), "end.json")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.path(id), "process.json"), fmt.Sprintf(`{"boot":"other","space":"pid:[1]","pid":%d,"start":1,"began":1}`, os.Getpid()))
	if j := wait(t, c, id); j.State != slurm.NodeFail || !strings.Contains(j.Description, "started again") {
		t.Errorf("%+v", j)
	}
	if err := c.Cancel(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// TestMain lets the test binary be a tp that submits and dies.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TP_TEST_SUBMIT"); dir != "" {
		c, err := Open(Options{Dir: dir})
		if err != nil {
			panic(err)
		}
		sub, err := c.Submit(context.Background(), &slurm.Request{
			Name: "n", Script: "#!/bin/bash\necho up >up\nwhile [ ! -e go ]; do sleep 0.02; done\necho done >done\n", WorkDir: os.Getenv("TP_TEST_WORK"), Output: "/dev/null",
			Env: []slurm.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}}, Components: []slurm.Component{{Partition: Partition, Nodes: 1}},
		})
		fmt.Println(sub.ID, err)
		syscall.Kill(0, syscall.SIGKILL) // the whole process group, as a closed terminal might
	}
	os.Exit(m.Run())
}

func TestJobOutlivesTp(t *testing.T) {
	c := open(t)
	work := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TP_TEST_SUBMIT="+filepath.Dir(c.dir), "TP_TEST_WORK="+work)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	if err == nil || strings.TrimSpace(string(out)) != "1 <nil>" {
		t.Fatalf("%s, %v", out, err)
	}
	appears(t, filepath.Join(work, "up"))
	if j := show(t, c, 1); j.State != slurm.Running {
		t.Errorf("%+v", j)
	}
	write(t, filepath.Join(work, "go"), "")
	if j := wait(t, c, 1); j.State != slurm.Completed {
		t.Errorf("%+v", j)
	}
	appears(t, filepath.Join(work, "done"))
}

func TestGPUsAreTakenOnce(t *testing.T) {
	c := open(t)
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"} {
		write(t, filepath.Join(c.root, "dev", name), "")
	}
	gpus := func(n int) *slurm.Request {
		r := request(t, c, "echo \"$CUDA_VISIBLE_DEVICES\" >devices\nsleep 300\n")
		if n > 0 {
			r.Components[0].GRES = []slurm.GRES{{Name: "gpu", Count: n}}
		}
		return r
	}
	two, none := gpus(2), gpus(0)
	id := submit(t, c, two)
	if got := appears(t, filepath.Join(two.WorkDir, "devices")); got != "0,1" {
		t.Errorf("devices %q", got)
	}
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := snap.Nodes[0]
	if slurm.Count(n.GRES, "gpu", "") != 3 || slurm.Count(n.GRESUsed, "gpu", "") != 2 || len(n.Jobs) != 1 || n.Jobs[0].Name != two.Name || n.Memory != 2048 || n.CPUs == 0 {
		t.Errorf("%+v", n)
	}
	var refusal *slurm.Error
	if _, err := c.Submit(t.Context(), gpus(2)); !errors.As(err, &refusal) || !strings.Contains(refusal.Text, "1 of the 3 GPUs") || !strings.Contains(refusal.Text, two.Name) {
		t.Errorf("two more: %v", err)
	}
	one := gpus(1)
	submit(t, c, one)
	if got := appears(t, filepath.Join(one.WorkDir, "devices")); got != "2" {
		t.Errorf("devices %q", got)
	}
	submit(t, c, none)
	if data, _ := os.ReadFile(filepath.Join(none.WorkDir, "devices")); strings.TrimSpace(string(data)) != "" {
		t.Errorf("a job without GPUs sees %q", data)
	}
	if err := c.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wait(t, c, id)
	again := gpus(2)
	submit(t, c, again)
	if got := appears(t, filepath.Join(again.WorkDir, "devices")); got != "0,1" {
		t.Errorf("devices %q after they were given back", got)
	}
}

func TestRefusals(t *testing.T) {
	c := open(t)
	for what, change := range map[string]func(*slurm.Request){
		"two components": func(r *slurm.Request) { r.Components = append(r.Components, r.Components[0]) },
		"two nodes":      func(r *slurm.Request) { r.Components[0].Nodes = 2 },
		"partition":      func(r *slurm.Request) { r.Components[0].Partition = "h200" },
		"GPUs":           func(r *slurm.Request) { r.Components[0].GRES = []slurm.GRES{{Name: "gpu", Count: 1}} },
		"interpreter":    func(r *slurm.Request) { r.Script = "echo\n" },
		"directory":      func(r *slurm.Request) { r.WorkDir = "/nonexistent" },
		"log":            func(r *slurm.Request) { r.Output = "/nonexistent/log" },
		"hold":           func(r *slurm.Request) { r.Hold = true },
		"dependency":     func(r *slurm.Request) { r.Dependency = "afterok:1" },
	} {
		r := request(t, c, "true\n")
		change(r)
		var refusal *slurm.Error
		if sub, err := c.Submit(t.Context(), r); !errors.As(err, &refusal) || sub.ID != 0 {
			t.Errorf("%s: %+v, %v", what, sub, err)
		}
		if found, err := c.JobsByName(t.Context(), c.user, r.Name); err != nil || len(found) != 0 {
			t.Errorf("%s: %+v, %v", what, found, err)
		}
	}
}

func TestCommands(t *testing.T) {
	c := open(t)
	r := request(t, c, `
scontrol show hostnames "$SLURM_JOB_NODELIST"
scontrol -o show node "$SLURM_JOB_NODELIST" | sed -n 's/^NodeName=\([^ ]*\) .*NodeAddr=\([^ ]*\) .*/\1 \2/p'
srun --job-name=x --overlap --mpi=none --kill-on-bad-exit=1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=3 --gres='gpu:1' \
  bash -c 'echo "$SLURM_PROCID $SLURM_NTASKS $SLURM_STEP_ID $SLURM_CPUS_PER_TASK $1"' - "a  b"
srun --nodes=2 true; echo "two nodes: $?"
srun --nosuch true; echo "unknown: $?"
srun -N 1 -n1 -c 2 sh -c 'exit 5'; echo "exit: $?"
srun sh -c 'kill -9 $$'; echo "signal: $?"
(trap '' INT; srun --overlap bash -c 'trap "echo int; exit 0" INT; echo >ready; while :; do sleep 0.05; done') &
while [ ! -s ready ]; do sleep 0.02; done
scancel --quiet --signal=INT "$SLURM_JOB_ID"
wait; echo "int: $?"
bash -c 'srun --overlap bash -c "trap \"echo bye; exit 6\" TERM; echo >again; while :; do sleep 0.05; done" & p=$!
while [ ! -s again ]; do sleep 0.02; done
kill -TERM $p; wait $p; echo "term: $?"'
scancel 4711; echo "another job: $?"
scancel "$SLURM_JOB_ID"; sleep 300
`)
	id := submit(t, c, r)
	if j := wait(t, c, id); j.State != slurm.Cancelled {
		t.Errorf("%+v", j)
	}
	want := strings.ReplaceAll(`HOST
HOST 127.0.0.1
0 1 0 3 a  b
srun (local fleet of tp): --nodes=2: a local job has one node and one task; a Slurm fleet has more
two nodes: 1
srun (local fleet of tp): option --nosuch is not known here
unknown: 1
exit: 5
signal: 137
int
int: 0
bye
term: 6
scancel (local fleet of tp): a job can signal itself only, and 1 is not 4711: tp job cancel
another job: 1
`, "HOST", c.host)
	// bash says it of the sleep that it waited for.
	if got := strings.ReplaceAll(output(t, r, id), "Terminated\n", ""); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
