package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// update rewrites the golden parts of testdata/*.txtar and the generated
// documents: go test ./cmd/tp -update.
var update = flag.Bool("update", false, "rewrite golden files and generated documents")

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"tp": main}) }

// TestScripts runs testdata/*.txtar. Each script has a home directory of its
// own, the tools git and bash and nothing else of this machine (a squeue here
// would talk to another cluster), and a site file whose only fleet is a
// recorded slurmrestd. rogpeppe/go-internal is the go command's own script
// language, kept by its author, in tests only; it saves us a shell of our own.
// Commands beside testscript's own:
//
//	exits N CMD…         CMD ends with this exit code
//	norm stdout FILE     stdout (or stderr, or a file) without what differs from run to run;
//	                     -s: also with at most two blanks on end
//	commit [TEXT]        commits everything in the lab
//	state RUN STATE [REASON [EXIT]]  the job of a run changes
//	submits N            so many requests to submit have come
//	queued N             so many components are in the queue
//	refuse [TEXT]        the cluster refuses submissions; without a text no longer
//	silence on|off       the cluster queues jobs and hangs up
//	sbatch NAME          somebody queues a job of this name by hand
//	save NAME REGEXP     sets $NAME to the first group found in stdout
func TestScripts(t *testing.T) {
	for _, tool := range []string{"git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: false, RequireUniqueNames: true, Setup: setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "norm": norm, "commit": commit, "state": setState, "submits": submits, "queued": queued,
			"refuse": refuse, "silence": silence, "save": save, "sbatch": sbatch,
		},
	})
}

type daemonKey struct{}

func setup(env *testscript.Env) error {
	u, err := user.Current()
	if err != nil {
		return err
	}
	// A socket's path has at most 107 bytes, and work directories are deep.
	sock, err := os.MkdirTemp("", "tp")
	if err != nil {
		return err
	}
	d := slurmtest.NewRestd(u.Username)
	url, stop, err := d.Listen(filepath.Join(sock, "s"))
	if err != nil {
		return err
	}
	env.Defer(func() { stop(); os.RemoveAll(sock) })
	env.Values[daemonKey{}] = d

	env.Vars, err = isolated(env.WorkDir, u.Username, url)
	return err
}

// isolated makes a home, a site file and a directory of tools in work, and
// gives the environment that knows nothing else of this machine.
func isolated(work, username, url string) ([]string, error) {
	own, _, _ := strings.Cut(os.Getenv("PATH"), string(os.PathListSeparator)) // where tp is
	tools := filepath.Join(work, ".tools")
	home := filepath.Join(work, ".home")
	for _, dir := range []string{tools, home, filepath.Join(work, ".tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"git", "bash", "sh", "cat", "chmod", "ln", "ls", "mkdir", "rm",
		"awk", "cp", "date", "env", "getent", "grep", "mkfifo", "mktemp", "mv", "paste", "readlink", "sed", "sha256sum", "sleep", "sort", "tail", "tar", "uname", "xargs", "zstd"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
				return nil, err
			}
		}
	}
	site := fmt.Sprintf("run_root = %q\ndefault_fleet = \"lab\"\n\n[fleets.lab]\nurl = %q\n", filepath.Join(home, "runs"), url)
	sitePath := filepath.Join(work, ".site.toml")
	if err := os.WriteFile(sitePath, []byte(site), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"WORK=" + work, "HOME=" + home, "PATH=" + own + string(os.PathListSeparator) + tools, "TMPDIR=" + filepath.Join(work, ".tmp"),
		"TZ=UTC", "LANG=C.UTF-8", "TERM=dumb", "USER=" + username, "LOGNAME=" + username, "SHELL=/bin/bash",
		"TP_SITE=" + sitePath, "SITE=" + sitePath, "RESTD=" + url, "$=$", "/=/", ":=:", "exe=",
		"TP_TRANSPORT=url", // this machine may have a Slurm of its own
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.org",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}, nil
}

func daemon(ts *testscript.TestScript) *slurmtest.Restd {
	return ts.Value(daemonKey{}).(*slurmtest.Restd)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N CMD…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// differing is what no two runs have in common.
var differing = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(?m)^.*site file \S+ belongs to uid \d+, not to root\n`), ""}, // said where the tests do not run as root
	{regexp.MustCompile(`run-[0-9a-f]{12}`), "run-XXXXXXXXXXXX"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST64"},
	{regexp.MustCompile(`(plan|--plan|commit) [0-9a-f]{12}\b`), "$1 DIGEST12"},
	{regexp.MustCompile(`(main|master) [0-9a-f]{12}\b`), "BRANCH DIGEST12"},
	{regexp.MustCompile(`\b\ds\b`), "Ns"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d \(in \d+m\)`), "TIME (in 30m)"},
	{regexp.MustCompile(`until \d\d:\d\d`), "until TIME"},
	{regexp.MustCompile(`\b\d+ms?\d*s? ago`), "AGE ago"},
	{regexp.MustCompile(`\d+\.\d KiB`), "N KiB"},
	{regexp.MustCompile(`\(uid \d+\)`), "(uid N)"},
	{regexp.MustCompile(`uid \d+`), "uid N"},
	{regexp.MustCompile(`tp dev\S*`), "tp VERSION"},
}

func norm(ts *testscript.TestScript, neg bool, args []string) {
	squeeze := len(args) == 3 && args[0] == "-s"
	if squeeze {
		args = args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: norm [-s] stdout|stderr|FILE FILE")
	}
	text := ts.ReadFile(args[0])
	text = strings.ReplaceAll(text, ts.Getenv("RESTD"), "$RESTD")
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "$WORK")
	text = strings.ReplaceAll(text, "/runs/"+ts.Getenv("USER")+"/", "/runs/$USER/")
	for _, d := range differing {
		text = d.re.ReplaceAllString(text, d.to)
	}
	if squeeze { // columns are as wide as this machine's paths
		text = regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

func commit(ts *testscript.TestScript, neg bool, args []string) {
	text := "a change"
	if len(args) > 0 {
		text = args[0]
	}
	ts.Check(ts.Exec("git", "add", "-A"))
	ts.Check(ts.Exec("git", "commit", "--quiet", "--allow-empty", "-m", text))
}

func setState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: state JOB STATE [REASON [EXIT]]")
	}
	id, err := strconv.Atoi(args[0])
	ts.Check(err)
	reason, exit := "None", 0
	if len(args) > 2 {
		reason = args[2]
	}
	if len(args) > 3 {
		exit, err = strconv.Atoi(args[3])
		ts.Check(err)
	}
	ts.Check(daemon(ts).Set(slurm.JobID(id), slurm.State(args[1]), reason, exit))
}

func submits(ts *testscript.TestScript, neg bool, args []string) {
	counted(ts, args, daemon(ts).Submits())
}

func queued(ts *testscript.TestScript, neg bool, args []string) {
	counted(ts, args, len(daemon(ts).Names()))
}

func counted(ts *testscript.TestScript, args []string, got int) {
	if len(args) != 1 || args[0] != strconv.Itoa(got) {
		ts.Fatalf("%d, want %s", got, strings.Join(args, " "))
	}
}

func refuse(ts *testscript.TestScript, neg bool, args []string) {
	daemon(ts).Refuse(strings.Join(args, " "))
}

func silence(ts *testscript.TestScript, neg bool, args []string) {
	daemon(ts).Silence(len(args) == 1 && args[0] == "on")
}

func sbatch(ts *testscript.TestScript, neg bool, args []string) { daemon(ts).Queue(args[0]) }

func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: save NAME REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	if len(m) != 2 {
		ts.Fatalf("%s is not found", args[1])
	}
	ts.Setenv(args[0], m[1])
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAResultThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{{"methods"}, {"methods", "custom/custom"}, {"methods", "--json"}, {"version"}} {
		streams, _, talk := ui.Test("")
		streams.Out = full{}
		if code := Main(args, streams); code != fault.Internal || !strings.Contains(talk.String(), "no space left on device") {
			t.Errorf("tp %s: exit code %d, %s", strings.Join(args, " "), code, talk)
		}
	}
}
