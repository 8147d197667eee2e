// Package e2e walks tp's whole road on real Slurm clusters, one test per
// promise, each on every release that contrib/test brought up. The tests see
// what an ordinary user sees: they run tp, sbatch, scontrol and squeue as alice
// in the release's own world, and believe Slurm, not tp.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// folder holds everything of this process's tests: tp and a folder per test
// and release, at the same path in and outside the worlds.
var folder string

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for Slurm most of the time, so more of them than CPUs run at once.
	flag.Set("test.parallel", "9")
	os.Exit(func() int {
		defer func() {
			if folder != "" {
				os.RemoveAll(folder)
			}
		}()
		if reason := unset(); reason == "" {
			if err := build(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		code := m.Run()
		if len(domains.rows) > 0 {
			fmt.Println(domainTable())
		}
		return code
	}())
}

// unset says why there is nothing to test on.
func unset() string {
	switch {
	case os.Getenv("TP_E2E_RELEASES") == "" || os.Getenv("TP_DEVCLUSTER") == "":
		return "no cluster: TP_E2E_RELEASES and TP_DEVCLUSTER are not set (contrib/test sets them)"
	case os.Geteuid() != 0:
		return "running commands as alice in the clusters' worlds needs root"
	}
	return ""
}

func devclusterDir() string {
	if dir := os.Getenv("TP_DEVCLUSTER_DIR"); dir != "" {
		return dir
	}
	return "/var/lib/tp-devcluster"
}

func build() error {
	shared := filepath.Join(devclusterDir(), "shared", "e2e")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	var err error
	if folder, err = os.MkdirTemp(shared, ""); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(folder, "tp"), "../../cmd/tp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // one binary for all worlds' C libraries
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building tp: %w\n%s", err, out)
	}
	return nil
}

// world is one release as alice sees it, with a lab, a site file, a run root and
// an object store that belong to this test alone.
type world struct {
	*testing.T
	release string
	cluster string   // the devcluster's directory
	env     []string // of the devcluster script, beside the process's own
	folder  string   // holds tp and the folders of tests
	dir     string
	lab     string
	site    string
	// xdgState is where tp's own state is.
	xdgState string
	uid      int
	gid      int
}

// each runs a test on every release at once.
func each(t *testing.T, check func(w *world)) {
	if reason := unset(); reason != "" {
		t.Skip(reason)
	}
	t.Parallel()
	for _, release := range strings.Fields(os.Getenv("TP_E2E_RELEASES")) {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			check(newWorld(t, release))
		})
	}
}

func newWorld(t *testing.T, release string) *world {
	return worldIn(t, release, devclusterDir(), folder)
}

// worldIn is a world of a devcluster in this directory.
func worldIn(t *testing.T, release, cluster, folder string, env ...string) *world {
	w := &world{T: t, release: release, cluster: cluster, env: env, folder: folder, dir: filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-"))}
	w.lab, w.site = filepath.Join(w.dir, "lab"), filepath.Join(w.dir, "site.toml")
	w.xdgState = w.dir + "/state"
	alice, err := user.Lookup("alice")
	w.ok(err)
	w.uid, err = strconv.Atoi(alice.Uid)
	w.ok(err)
	w.gid, err = strconv.Atoi(alice.Gid)
	w.ok(err)
	w.ok(os.Mkdir(w.dir, 0o755)) // root's, and so is the site file
	for _, name := range []string{"lab", "runs", "state", "objects"} {
		w.mkdir(filepath.Join(w.dir, name))
	}
	// The cluster's own site file with a place of ours, and objects in a directory.
	text, err := os.ReadFile(filepath.Join(cluster, "site-"+release+".toml"))
	w.ok(err)
	w.ok(os.WriteFile(w.site, text, 0o644))
	w.edit(`(?m)^run_root = .*$`, fmt.Sprintf("run_root = %q\npoll_seconds = 2", w.dir+"/runs"))
	w.edit(`(?ms)^\[objects\].*?\n\n`, fmt.Sprintf("[objects]\nkind = \"dir\"\npath = %q\n\n", w.dir+"/objects"))
	w.write("tp.toml", "name = \"e2e\"\n")
	t.Cleanup(w.tidy)
	return w
}

// turns lets one test per release have heterogeneous jobs in the queue: where
// SchedulerParameters lacks bf_hetjob_prio, three of 1+1 nodes and one of 1+2
// keep each other waiting for ever (seen on 22.05 beside one running job).
var turns sync.Map

// hetTurn waits for the release's turn and keeps it until the test ends.
func (w *world) hetTurn() {
	lock, _ := turns.LoadOrStore(w.release, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	w.Cleanup(lock.(*sync.Mutex).Unlock)
	w.Cleanup(w.leave)
}

// edit changes the site file; the pattern must be there.
func (w *world) edit(pattern, with string) {
	w.Helper()
	text, err := os.ReadFile(w.site)
	w.ok(err)
	re := regexp.MustCompile(pattern)
	if !re.Match(text) {
		w.Fatalf("the site file has no %s:\n%s", pattern, text)
	}
	w.ok(os.WriteFile(w.site, re.ReplaceAllLiteral(text, []byte(with)), 0o644))
}

// tidy cancels the jobs of this test, which are those that work below its folder.
func (w *world) tidy() {
	if w.Failed() {
		for _, id := range w.jobs("all") {
			w.Logf("job at the end: %s", w.slurm("squeue", "-h", "-t", "all", "-j", id, "-o", "%A %T %r %j").out)
		}
	}
	w.leave()
	os.RemoveAll(w.dir)
}

// leave cancels the jobs of this test and waits until they are gone.
func (w *world) leave() {
	const alive = "PD,R,CG,S,RQ,CF"
	w.waitFor(time.Minute, "the jobs of this test to leave the queue", func() bool {
		ids := w.jobs(alive)
		if len(ids) > 0 {
			w.slurm(append([]string{"scancel"}, ids...)...)
		}
		return len(ids) == 0
	})
}

// jobs are the ids of this test's jobs in the given states, or "all". Slurm
// shows ended ones for MinJobAge.
func (w *world) jobs(states string) []string {
	var ids []string
	for line := range strings.Lines(w.slurm("squeue", "-h", "--me", "-t", states, "-o", "%A %Z").out) {
		if id, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(dir, w.dir+"/") && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) mkdir(dir string) {
	w.Helper()
	w.ok(os.MkdirAll(dir, 0o755))
	for ; strings.HasPrefix(dir, w.dir+"/"); dir = filepath.Dir(dir) {
		w.ok(os.Lchown(dir, w.uid, w.gid))
	}
}

// write makes a file of the lab, alice's and executable.
func (w *world) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.lab, name)
	w.mkdir(filepath.Dir(path))
	w.ok(os.WriteFile(path, []byte(text), 0o755))
	w.ok(os.Lchown(path, w.uid, w.gid))
}

// experiment writes a custom/custom experiment with one script per role; train
// drives.
func (w *world) experiment(name string, scripts map[string]string) {
	w.Helper()
	lock, err := os.ReadFile("../lab/experiments/hello-pools/recipe.lock.json")
	w.ok(err)
	dir := "experiments/" + name + "/"
	w.write(dir+"recipe.lock.json", string(lock))
	roles := []string{`"train"`}
	for role, text := range scripts {
		w.write(dir+role+".sh", "#!/usr/bin/env bash\nset -euo pipefail\n"+text+"\n")
		if role != "train" {
			roles = append(roles, strconv.Quote(role))
		}
	}
	w.write(dir+"job.toml", "time = \"10m\"\nroles = ["+strings.Join(roles, ", ")+"]\n")
}

// exampleLab is contrib/lab instead of experiments of the test's own.
func (w *world) exampleLab() {
	w.Helper()
	const from = "../lab"
	w.ok(filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.Contains(path, "__pycache__") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			w.write(strings.TrimPrefix(path, from+"/"), string(text))
		}
		return err
	}))
}

// commit makes the lab a git repository in a clean state.
func (w *world) commit() {
	w.Helper()
	w.must("git", "init", "-q", "-b", "main")
	w.must("git", "add", "-A")
	w.must("git", "-c", "user.name=alice", "-c", "user.email=alice@localhost", "commit", "-q", "-m", "As the test wants it")
}

// result is what a command left.
type result struct {
	out, err string
	code     int
}

// slurm runs a command as alice in the release's world, in the lab.
func (w *world) slurm(command ...string) result {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv("TP_DEVCLUSTER"), append([]string{"exec", w.release, "--"}, command...)...)
	cmd.Env = append(os.Environ(), w.env...)
	cmd.Dir = w.lab
	if _, err := os.Stat(w.lab); err != nil {
		cmd.Dir = w.folder
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	r := result{out.String(), stderr.String(), 0}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		r.code = exit.ExitCode()
	} else if err != nil {
		w.Errorf("%v: %v", command, err)
	}
	return r
}

// must runs a command that has to succeed, and returns its stdout.
func (w *world) must(command ...string) string {
	w.Helper()
	r := w.slurm(command...)
	if r.code != 0 {
		w.Fatalf("%q: exit code %d\n%s%s", command, r.code, r.out, r.err)
	}
	return r.out
}

// tp runs tp in the lab, with further variables NAME=VALUE before the arguments.
func (w *world) tp(args ...string) result {
	w.Helper()
	return w.tpWith(nil, args...)
}

func (w *world) tpWith(env []string, args ...string) result {
	w.Helper()
	return w.slurm(w.command(env, args...)...)
}

// command is the line that runs tp in the world.
func (w *world) command(env []string, args ...string) []string {
	line := append([]string{"env", "TP_SITE=" + w.site, "XDG_STATE_HOME=" + w.xdgState, "XDG_CONFIG_HOME=" + w.dir + "/config"}, env...)
	return append(append(line, filepath.Join(w.folder, "tp")), args...)
}

// run is what tp job status says of a run.
type run struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Reason   string `json:"reason"`
	Gate     string `json:"gate"`
	Attempts []struct {
		JobID   uint32 `json:"job_id"`
		JobName string `json:"job_name"`
	} `json:"attempts"`
	dir string
}

func (r run) ended() bool {
	switch r.State {
	case "SUCCEEDED", "FAILED", "TIMEOUT", "PREEMPTED", "CANCELLED":
		return true
	}
	return false
}

// job is the id of the newest attempt, "" when there is none.
func (r run) job() string {
	if len(r.Attempts) == 0 || r.Attempts[len(r.Attempts)-1].JobID == 0 {
		return ""
	}
	return fmt.Sprint(r.Attempts[len(r.Attempts)-1].JobID)
}

// submission is what tp submit --json prints, with the preview beside it.
type submission struct {
	RunID       string   `json:"run_id"`
	JobID       uint32   `json:"job_id"`
	State       string   `json:"state"`
	Existed     bool     `json:"existed"`
	RunDir      string   `json:"run_dir"`
	PlanDigest  string   `json:"plan_digest"`
	Differences []string `json:"differences"`
	preview     string
}

func (s submission) job() string { return fmt.Sprint(s.JobID) }

// submit queues an experiment, which has to succeed.
func (w *world) submit(args ...string) submission {
	w.Helper()
	return w.submitted(w.tp(append([]string{"submit", "--yes", "--json"}, args...)...))
}

func (w *world) submitted(r result) submission {
	w.Helper()
	s := submission{preview: r.err}
	if r.code != 0 {
		w.Fatalf("tp submit: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	w.decode(r.out, &s)
	if s.JobID == 0 || !filepath.IsAbs(s.RunDir) {
		w.Fatalf("tp submit says %s", r.out)
	}
	return s
}

func (w *world) decode(text string, v any) {
	w.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		w.Fatalf("%v in %q", err, text)
	}
}

// render returns the batch script and the run directory of a staged run.
func (w *world) render(args ...string) (script, runDir string) {
	w.Helper()
	r := w.tp(append([]string{"render"}, args...)...)
	if r.code != 0 {
		w.Fatalf("tp render: exit code %d\n%s", r.code, r.err)
	}
	m := regexp.MustCompile(`(?m)^export TP_RUN_DIR=(.*)$`).FindStringSubmatch(r.out)
	if m == nil {
		w.Fatalf("no TP_RUN_DIR in\n%s", r.out)
	}
	return r.out, m[1]
}

// sbatch gives a script to sbatch as a user would, and returns the job id.
func (w *world) sbatch(script string, env ...string) string {
	w.Helper()
	path := filepath.Join(w.dir, fmt.Sprintf("job-%d.sh", time.Now().UnixNano()))
	w.ok(os.WriteFile(path, []byte(script), 0o644))
	out := w.must(append(append([]string{"env"}, env...), "sbatch", "--parsable", path)...)
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	return id
}

// status asks tp about a run.
func (w *world) status(dir string) run {
	w.Helper()
	r := w.tp("job", "status", "--json", filepath.Base(dir))
	if r.code != 0 {
		w.Fatalf("tp job status: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	s := run{dir: dir}
	w.decode(r.out, &s)
	return s
}

// waitFor polls until done or fails the test.
func (w *world) waitFor(limit time.Duration, what string, done func() bool) {
	w.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("waited %s for %s in vain", limit, what)
		}
	}
}

// busy is how long a run may wait for its turn: other tests hold the GPUs.
const busy = 4 * time.Minute

// await polls tp job status until the run is in a state that done accepts.
func (w *world) await(dir, what string, done func(run) bool) run {
	w.Helper()
	var last run
	began, nudged := time.Now(), time.Now()
	for {
		last = w.status(dir)
		if done(last) {
			return last
		}
		if last.ended() || time.Since(began) > busy {
			w.Fatalf("%s is %s (%s), wanted %s\n%s", filepath.Base(dir), last.State, last.Reason, what, w.tp("job", "logs", "--no-follow", filepath.Base(dir)).out)
		}
		// 22.05 starts a requeued or pending het job on an idle cluster only when
		// something else changes the queue.
		if time.Since(nudged) > 5*time.Second && last.State == "QUEUED" {
			nudged = time.Now()
			w.must("sbatch", "-Q", "-p", "cpu", "-n1", "--mem=1", "-t1", "-J", "nudge", "-o", "/dev/null", "-D", "/tmp", "--wrap", "true")
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// wait polls until the run has ended, which must be in this state.
func (w *world) wait(dir, state string) run {
	w.Helper()
	return w.await(dir, state, func(r run) bool { return r.State == state })
}

// appears waits for a file that a script of the test writes.
func (w *world) appears(dir, name string) {
	w.Helper()
	w.await(dir, "a file "+name, func(run) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// read is a file of a run directory, "" when it is not there.
func (w *world) read(path ...string) string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.Error(err)
	}
	return string(data)
}

// scontrol reads a job's components as Slurm shows them, in order: a map from
// the words of scontrol show job to their values.
func (w *world) scontrol(job string) []map[string]string {
	w.Helper()
	var jobs []map[string]string
	for block := range strings.SplitSeq(w.must("scontrol", "show", "job", job), "\n\n") {
		if strings.TrimSpace(block) != "" {
			jobs = append(jobs, parseJob(block))
		}
	}
	return jobs
}

// free are fields whose value may hold spaces and runs to the end of the line.
var free = map[string]bool{"JobName": true, "Comment": true, "WorkDir": true, "StdErr": true, "StdOut": true, "StdIn": true, "Command": true, "Extra": true}

func parseJob(block string) map[string]string {
	job := map[string]string{}
	for line := range strings.Lines(block) {
		rest := strings.TrimSpace(line)
		for rest != "" {
			key, after, ok := strings.Cut(rest, "=")
			if !ok {
				break
			}
			if free[key] {
				job[key] = after
				break
			}
			job[key], rest, _ = strings.Cut(after, " ")
			rest = strings.TrimSpace(rest)
		}
	}
	return job
}

// environ parses what env -0 wrote.
func (w *world) environ(path ...string) map[string]string {
	w.Helper()
	vars := map[string]string{}
	for entry := range strings.SplitSeq(w.read(path...), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			vars[name] = value
		}
	}
	if len(vars) == 0 {
		w.Errorf("%s is empty", filepath.Join(path...))
	}
	return vars
}
