package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// fakes are commands that answer as real ones were seen to, and write what they
// were asked into the directory: "NAME ARG ARG …", a line each.
func fakes(t *testing.T, version string, commands map[string]string) *Client {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"sbatch": "exit 9", "squeue": "exit 9", "scontrol": "exit 9", "sacct": "exit 9", "scancel": "exit 9"}
	for name, body := range commands {
		all[name] = body
	}
	for name, body := range all {
		script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'slurm " + version + "'; exit; }\n" +
			"echo " + name + " \"$@\" >>'" + dir + "/log'\nD='" + dir + "'\n" + body + "\n"
		slurmtest.Program(t, filepath.Join(dir, name), script)
	}
	return New(Options{Tools: Tools{Dir: dir, Timeout: 5 * time.Second}, SubmitTimeout: 5 * time.Second})
}

// left is what a fake wrote; "" when it did not run.
func (c *Client) left(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.o.Tools.Dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

func request() *slurm.Request {
	return &slurm.Request{
		Name: "--qos=high : hetjob", Comment: "a 'b' \"c\" $(x)", Script: "#!/bin/sh\n#SBATCH hetjob\ntrue # 训练\n", WorkDir: "/home/alice/x y", Output: "/home/alice/%j.out",
		Env: []slurm.EnvVar{{Name: "PATH", Value: "/bin"}, {Name: "X", Value: "a,b\n'c'训"}, {Name: "SBATCH_QOS", Value: "low"}, {Name: "EMPTY"}},
		Components: []slurm.Component{
			{Partition: "h200", Nodes: 2, CPUsPerTask: 4, Memory: 4096, GRES: []slurm.GRES{{Name: "gpu", Type: "h200", Count: 8}}, TimeLimit: 60},
			{Partition: "h100", Memory: 4096, Nodes: 1, TimeLimit: 60},
		},
	}
}

// What sbatch is given: options one element each, script on stdin, environment
// in a pipe for each component, and nothing of the caller's environment.
func TestSubmitGivesSbatchTheRequestAndNothingElse(t *testing.T) {
	t.Setenv("SBATCH_PARTITION", "caller")
	t.Setenv("SLURM_JWT", "caller")
	t.Setenv("SLURM_CONF", "/etc/passwd")
	t.Setenv("CALLER", "caller")
	c := fakes(t, "24.11.5", map[string]string{"sbatch": `printf '%s\n' "$@" >"$D/argv"; env >"$D/env"; pwd >"$D/cwd"; cat >"$D/script"; cat <&3 >"$D/env3"; cat <&4 >"$D/env4"; echo 12`})
	r := request()
	r.Env = append(r.Env, slurm.EnvVar{Name: "BIG", Value: strings.Repeat("x", 100_000)}) // more than a pipe holds
	sub, err := c.Submit(t.Context(), r)
	if err != nil || sub.ID != 12 || len(sub.Warnings) != 0 {
		t.Fatalf("%+v, %v", sub, err)
	}
	argv := c.left(t, "argv")
	want := "--parsable\n--ignore-pbs\n--export=ALL\n--export-file=3\n--job-name=--qos=high : hetjob\n--comment=a 'b' \"c\" $(x)\n--chdir=/home/alice/x y\n"
	if !strings.HasPrefix(argv, want) || strings.Count(argv, "\n:\n") != 1 || !strings.Contains(argv, "\n:\n--ignore-pbs\n--export=ALL\n--export-file=4\n--partition=h100\n") {
		t.Errorf("argv:\n%s", argv)
	}
	if script := c.left(t, "script"); script != r.Script {
		t.Errorf("script %q", script)
	}
	block := "PATH=/bin\x00X=a,b\n'c'训\x00SBATCH_QOS=low\x00EMPTY=\x00BIG=" + r.Env[4].Value + "\x00SLURM_SUBMIT_DIR=/home/alice/x y\x00SLURM_JOB_NAME=--qos=high : hetjob\x00"
	if got := c.left(t, "env3"); got != block {
		t.Errorf("environment %.300q", got)
	}
	if got := c.left(t, "env4"); got != block {
		t.Errorf("environment of component 1 %.300q", got)
	}
	if env := c.left(t, "env"); strings.Contains(env, "=caller") || !strings.Contains(env, "SLURM_CONF=/etc/passwd\n") || !strings.Contains(env, "LC_ALL=C") {
		t.Errorf("sbatch got\n%s", env)
	}
	if cwd := c.left(t, "cwd"); cwd != "/\n" {
		t.Errorf("sbatch started in %s", cwd)
	}
}

// Truth is the id; without one, "not queued" is said only when Slurm said so.
func TestSubmitOutcomes(t *testing.T) {
	const refused = `echo "sbatch: error: Batch job submission failed: %s" >&2; exit 1`
	say := func(text string) string { return strings.ReplaceAll(refused, "%s", text) }
	for name, x := range map[string]struct {
		sbatch string
		id     slurm.JobID
		number int    // of an *slurm.Error
		words  string // in the error or the warnings
		sent   bool   // an *slurm.Unreachable without NotSent
		unsent bool   // one with
	}{
		"id":                 {sbatch: "echo 12", id: 12},
		"id and cluster":     {sbatch: "echo '12;lab'", id: 12},
		"not parsable":       {sbatch: "echo 'Submitted batch job 12 on cluster lab'", id: 12},
		"banner":             {sbatch: "echo 'Welcome to the 2026 cluster'; echo; echo 12; echo 'Have fun'", id: 12},
		"id, then failure":   {sbatch: "echo 12; echo 'sbatch: error: something' >&2; exit 1", id: 12, words: "sbatch: error: something"},
		"id, then hang":      {sbatch: "echo 12; exec sleep 60", id: 12},
		"warnings":           {sbatch: "echo 'sbatch: hello from job_submit' >&2; echo 12", id: 12, words: "sbatch: hello from job_submit"},
		"big id":             {sbatch: "echo 4294967293", id: 4294967293},
		"two ids":            {sbatch: "echo 12; echo 13", sent: true, words: "12 13"},
		"no id":              {sbatch: "echo done", sent: true, words: "done"},
		"id 0":               {sbatch: "echo 0", sent: true},
		"nothing":            {sbatch: "exit 0", sent: true},
		"wrapper broke":      {sbatch: "echo 'Traceback (most recent call last):' >&2; exit 1", sent: true, words: "Traceback"},
		"killed":             {sbatch: "kill -9 $$", sent: true},
		"hang":               {sbatch: "exec sleep 60", sent: true, words: "no answer within"},
		"partition":          {sbatch: `echo "sbatch: error: invalid partition specified: x" >&2;` + say("Invalid partition name specified"), number: 2000, words: "Invalid partition name specified; invalid partition specified: x"},
		"nodes":              {sbatch: say("Requested node configuration is not available"), number: 2014},
		"account":            {sbatch: say("Invalid account or account/partition combination specified"), number: 2045},
		"licence":            {sbatch: say("Invalid license specification"), number: 2048},
		"policy":             {sbatch: `echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2;` + say("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"), number: 2050, words: "QOSMaxSubmitJobPerUserLimit"},
		"QOS":                {sbatch: say("Invalid qos specification"), number: 2066},
		"array":              {sbatch: say("Invalid job array specification"), number: 2081},
		"site's own":         {sbatch: `echo "sbatch: error: ask for a project, see https://x" >&2;` + say("Unspecified error"), words: "ask for a project, see https://x"},
		"unknown option":     {sbatch: `echo "sbatch: unrecognized option '--segment=1'" >&2; exit 255`, words: "unrecognized option"},
		"controller is down": {sbatch: say("Unable to contact slurm controller (connect failure)"), unsent: true, words: "connect failure"},
		"controller is slow": {sbatch: say("Socket timed out on send/recv operation"), sent: true},
		"controller is gone": {sbatch: say("Unable to contact slurm controller (receive failure)"), sent: true},
		"zero bytes":         {sbatch: say("Zero Bytes were transmitted or received"), sent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fakes(t, "22.05.8", map[string]string{"sbatch": x.sbatch})
			if strings.Contains(name, "hang") {
				c.o.SubmitTimeout = 200 * time.Millisecond
			}
			sub, err := c.Submit(t.Context(), request())
			if sub.ID != x.id || (err == nil) != (x.id != 0) {
				t.Fatalf("%+v, %v", sub, err)
			}
			said := strings.Join(sub.Warnings, "\n")
			if err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, x.words) {
				t.Errorf("%q does not say %q", said, x.words)
			}
			var refusal *slurm.Error
			var doubt *slurm.Unreachable
			switch {
			case x.sent || x.unsent:
				if !errors.As(err, &doubt) || doubt.NotSent != x.unsent {
					t.Errorf("%#v", err)
				}
			case x.id == 0:
				if !errors.As(err, &refusal) || refusal.Number != x.number {
					t.Errorf("%#v", err)
				}
			}
		})
	}
	c := New(Options{Tools: Tools{Dir: t.TempDir()}})
	var doubt *slurm.Unreachable
	if _, err := c.Submit(t.Context(), request()); !errors.As(err, &doubt) || !doubt.NotSent {
		t.Errorf("without sbatch: %v", err)
	}
}

// A wrapper that is given up must not submit later.
func TestGivingUpEndsTheWrapperToo(t *testing.T) {
	c := fakes(t, "24.11.5", map[string]string{"sbatch": `(sleep 1; touch "$D/late") & wait`})
	c.o.SubmitTimeout = 100 * time.Millisecond
	if _, err := c.Submit(t.Context(), request()); err == nil {
		t.Fatal("no error")
	}
	tick := time.NewTimer(1500 * time.Millisecond)
	<-tick.C
	if _, err := os.Stat(filepath.Join(c.o.Tools.Dir, "late")); err == nil {
		t.Error("the wrapper's child went on")
	}
}

const (
	unknownID = `echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1`
	noDBD     = `echo "Slurm accounting storage is disabled" >&2; exit 1`
	dbdDown   = `echo "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to host:localhost:6819: Connection refused" >&2
echo "sacct: error: Sending PersistInit msg: Connection refused" >&2; echo "sacct: error: Problem talking to the database: Connection refused" >&2; exit 1`
	down = `echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1`
)

func TestWithoutAccounting(t *testing.T) {
	for name, sacct := range map[string]string{"disabled": noDBD, "down": dbdDown} {
		c := fakes(t, "22.05.8", map[string]string{"squeue": `case $* in *--me*|*--user*) exit 0;; esac; ` + unknownID, "sacct": sacct,
			"scontrol": "echo 'ClusterName             = lab'; echo 'SLURM_VERSION           = 22.05.8'"})
		if jobs, err := c.Jobs(t.Context(), 7); err != nil || len(jobs) != 0 {
			t.Errorf("%s: Jobs: %+v, %v", name, jobs, err)
		}
		if jobs, err := c.States(t.Context(), 7, 8); err != nil || len(jobs) != 0 {
			t.Errorf("%s: States: %+v, %v", name, jobs, err)
		}
		if jobs, err := c.JobsByName(t.Context(), "alice", "x"); err != nil || len(jobs) != 0 {
			t.Errorf("%s: JobsByName: %+v, %v", name, jobs, err)
		}
		if info, err := c.Info(t.Context()); err != nil || info.Account || info.Cluster != "lab" || info.Release != "22.05.8" {
			t.Errorf("%s: Info: %+v, %v", name, info, err)
		}
	}
}

func TestWithoutController(t *testing.T) {
	c := fakes(t, "22.05.8", map[string]string{"squeue": down, "sacct": dbdDown, "scontrol": down})
	var gone *slurm.Unreachable
	if _, err := c.Jobs(t.Context(), 7); !errors.As(err, &gone) {
		t.Errorf("Jobs: %v", err)
	}
	if _, err := c.States(t.Context(), 7, 8); !errors.As(err, &gone) {
		t.Errorf("States: %v", err)
	}
	if _, err := c.JobsByName(t.Context(), "alice", "x"); !errors.Is(err, slurm.ErrCannotLookUp) {
		t.Errorf("JobsByName: %v", err)
	}
	if _, err := c.Info(t.Context()); !errors.As(err, &gone) {
		t.Errorf("Info: %v", err)
	}
}

func TestCancelHearsWhatScancelMutters(t *testing.T) {
	c := fakes(t, "26.05.5", map[string]string{"scancel": `echo "scancel: Terminating job $2" >&2
case $2 in 7) echo "scancel: error: Kill job error on job id 7: Invalid job id specified" >&2;; 8) echo "scancel: error: Kill job error on job id 8: Job/step already completing or completed" >&2;; 9) echo "scancel: error: Kill job error on job id 9: Access/permission denied" >&2; exit 1;; esac`})
	var refusal *slurm.Error
	if err := c.Cancel(t.Context(), 7); !errors.As(err, &refusal) || refusal.Number != 2017 || refusal.Text != "Invalid job id specified" {
		t.Errorf("unknown: %v", err)
	}
	if err := c.Cancel(t.Context(), 8); err != nil {
		t.Errorf("ended: %v", err)
	}
	if err := c.Cancel(t.Context(), 9); !errors.As(err, &refusal) || refusal.Number != 2002 {
		t.Errorf("somebody else's: %v", err)
	}
	if err := c.Cancel(t.Context(), 10); err != nil {
		t.Errorf("running: %v", err)
	}
}

// Many ids are one question for the caller's own jobs, not the whole queue.
func TestManyIDsAreOneQuestion(t *testing.T) {
	row := strings.Join([]string{"5", "5", "5", "N/A", "RUNNING", "None", "alice", "cpu", "N/A", "N/A", "N/A", "1", "1:00:00", "x"}, separator) + endOfJob
	c := fakes(t, "22.05.8", map[string]string{"squeue": "case $* in *--me*) echo '" + row + "';; esac", "sacct": noDBD})
	var ids []slurm.JobID
	for id := range slurm.JobID(5000) {
		ids = append(ids, id)
	}
	jobs, err := c.States(t.Context(), ids...)
	if err != nil || len(jobs) != 1 || jobs[0].ID != 5 {
		t.Errorf("%+v, %v", jobs, err)
	}
	log := c.left(t, "log")
	if n := strings.Count(log, "squeue "); n != 2 || !strings.Contains(log, "squeue --me --jobs=1,2,3,") {
		t.Errorf("%d calls of squeue", n)
	}
	if n := strings.Count(log, "sacct "); n != 1 {
		t.Errorf("%d calls of sacct: it is off", n)
	}
}

// Accounting knows other users' living jobs badly: a pending component is not
// in it, a state may be late. slurmctld is asked for them one by one, and not
// for those that have ended.
func TestOtherUsersJobs(t *testing.T) {
	queued := strings.Join([]string{"7", "7", "7", "N/A", "RUNNING", "None", "bob", "cpu", "N/A", "N/A", "N/A", "1", "1:00:00", "x"}, separator) + endOfJob
	row := func(id, state string) string {
		f := make([]string, len(recordFields))
		f[0], f[1], f[2], f[3], f[9], f[23] = id, id, "bob", state, "cpu", "x"
		return strings.Join(f, separator)
	}
	c := fakes(t, "22.05.8", map[string]string{
		"squeue": "case $* in *--me*) exit 0;; *--jobs=7\\ *) echo '" + queued + "'; exit;; esac; " + unknownID,
		"sacct":  "echo '" + row("7", "PENDING") + "'; echo '" + row("8", "COMPLETED") + "'; echo '" + row("9", "RUNNING") + "'",
	})
	jobs, err := c.States(t.Context(), 7, 8, 9, 10)
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for _, j := range jobs {
		if want := map[slurm.JobID]slurm.State{7: slurm.Running, 8: slurm.Completed, 9: slurm.Running}[j.ID]; j.State != want || j.FromDB != (j.ID != 7) {
			t.Errorf("%+v", j)
		}
	}
	if log := c.left(t, "log"); strings.Contains(log, "--jobs=8 ") || !strings.Contains(log, "--jobs=10 ") {
		t.Errorf("asked\n%s", log)
	}
}

// Commands that were built without JSON are asked for text, once and for all.
func TestWithoutJSON(t *testing.T) {
	whole := recording(t, "24.11", "whole")
	recorded, err := parseWhole(whole)
	if err != nil || len(recorded) != 6 {
		t.Fatalf("%d jobs, %v", len(recorded), err)
	}
	c := fakes(t, "24.11.5", map[string]string{"squeue": `case $* in
*--json*) echo "squeue: error: cannot find serializer plugin for mime type application/json" >&2; exit 1;;
*--Format*) cat "$D/whole";;
esac`})
	if err := os.WriteFile(filepath.Join(c.o.Tools.Dir, "whole"), []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if jobs, err := c.Jobs(t.Context(), recorded[0].ID, recorded[1].ID); err != nil || len(jobs) != 2 {
			t.Errorf("%+v, %v", jobs, err)
		}
	}
	if n := strings.Count(c.left(t, "log"), "--json"); n != 1 {
		t.Errorf("JSON was asked for %d times", n)
	}
}
