package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tuneplane/tp/slurm/slurmtest"
)

// terminal is a process on a pseudo-terminal of 100 columns: stdin, stdout and
// stderr are the terminal, as in a user's shell.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	seen   bytes.Buffer
}

func openTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	defer slave.Close()
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { kill.Stop() })
	return &terminal{t: t, master: master, cmd: cmd}
}

// until reads until the screen holds text.
func (x *terminal) until(text string) {
	x.t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(x.seen.String(), text) {
		n, err := x.master.Read(buf)
		x.seen.Write(buf[:n])
		if err != nil {
			x.t.Fatalf("%q never came; the screen has\n%s", text, x.seen.String())
		}
	}
}

func (x *terminal) send(text string) {
	x.t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// end reads to the end and gives the exit code. Linux says EIO when the last
// writer is gone.
func (x *terminal) end() (screen string, code int) {
	x.t.Helper()
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.seen.Write(buf[:n])
		if err != nil {
			break
		}
	}
	x.cmd.Wait() //nolint:errcheck // the code is read below
	return x.seen.String(), x.cmd.ProcessState.ExitCode()
}

// built is the program as users get it, without the test binary's own start.
func built(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tp")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// tree is every file below dir with its mode, size and time of change.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHelpIsInnocent: on a terminal with every reason to be colourful, help and
// version write no escape byte, change no file and open no socket.
func TestHelpIsInnocent(t *testing.T) {
	bin := built(t)
	home := t.TempDir()
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home, "XDG_DATA_HOME=" + home,
		"PATH=/nonexistent", "TERM=xterm-256color", "CLICOLOR_FORCE=1", "COLORTERM=truecolor", "TP_SLURMREST_URL=http://127.0.0.1:1", "SLURM_JWT=x"}
	if err := os.Chmod(home, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(home, 0o755) })
	for _, args := range [][]string{{"--help"}, {"--version"}, {"version"}, {}, {"submit", "--help"}, {"job", "logs", "--help"}, {"completion"}} {
		t.Run(strings.Join(append([]string{"tp"}, args...), " "), func(t *testing.T) {
			before := tree(t, home)
			cmd := exec.Command(bin, args...)
			cmd.Env, cmd.Dir = env, home
			screen, code := openTerminal(t, cmd).end()
			if code != 0 || screen == "" {
				t.Errorf("exit code %d, %d bytes", code, len(screen))
			}
			if i := strings.IndexByte(screen, 0x1b); i >= 0 {
				t.Errorf("an escape byte at %d of %q", i, screen)
			}
			if after := tree(t, home); after != before {
				t.Errorf("files changed from\n%sto\n%s", before, after)
			}
			traced(t, bin, args, env, home)
		})
	}
}

var (
	sockets = regexp.MustCompile(`\b(socket|connect|bind|sendto|sendmsg|socketpair|listen)\(`)
	changes = regexp.MustCompile(`\b(mkdir|mkdirat|unlink|unlinkat|rename|renameat2?|link|linkat|symlink|symlinkat|truncate|chmod|fchmodat|creat)\(|O_(CREAT|WRONLY|RDWR|TRUNC)`)
	runs    = regexp.MustCompile(`\bexecve\(`)
)

// traced looks at the system calls, where strace is here and may be used.
func traced(t *testing.T, bin string, args, env []string, dir string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Log("system calls are not looked at: strace is not here")
		return
	}
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, append([]string{"-f", "-qq", "-o", out, "-e", "trace=%network,%file,%process", bin}, args...)...)
	cmd.Env, cmd.Dir = env, dir
	screen, code := openTerminal(t, cmd).end()
	data, err := os.ReadFile(out)
	if err != nil || code != 0 || len(data) == 0 {
		t.Logf("system calls are not looked at: strace does not work here: %v %s", err, screen)
		return
	}
	programs := 0
	for line := range strings.Lines(string(data)) {
		if runs.MatchString(line) {
			programs++
		}
		if sockets.MatchString(line) || changes.MatchString(line) {
			t.Errorf("system call: %s", line)
		}
	}
	if programs != 1 {
		t.Errorf("%d programs were started, want tp alone", programs)
	}
}

// inLab is a lab with an experiment hello and a recorded cluster; it gives
// commands of tp in the lab.
func inLab(t *testing.T) (*slurmtest.Restd, func(args ...string) *exec.Cmd) {
	t.Helper()
	for _, tool := range []string{"git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	sock, err := os.MkdirTemp("", "tp")
	if err != nil {
		t.Fatal(err)
	}
	d := slurmtest.NewRestd(u.Username)
	url, stop, err := d.Listen(filepath.Join(sock, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); os.RemoveAll(sock) })
	work := t.TempDir()
	env, err := isolated(work, u.Username, url)
	if err != nil {
		t.Fatal(err)
	}
	bin := built(t)
	command := func(dir string, name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Dir = append(env, "TERM=xterm-256color"), dir
		return cmd
	}
	lab := filepath.Join(work, "lab")
	git, _ := exec.LookPath("git")
	for _, cmd := range []*exec.Cmd{command(work, bin, "init", "lab"), command(lab, bin, "new", "hello"), command(lab, git, "add", "-A"), command(lab, git, "commit", "-qm", "x")} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
	}
	return d, func(args ...string) *exec.Cmd { return command(lab, bin, args...) }
}

// TestConfirmOnATerminal: only a "y" or "yes" queues.
func TestConfirmOnATerminal(t *testing.T) {
	d, tp := inLab(t)
	for _, c := range []struct {
		answer string
		code   int
		says   string
		queues bool
	}{
		{"n\n", 0, "Nothing was submitted. The plan is kept until", false},
		{"\n", 0, "Nothing was submitted", false},
		{"yess\n", 0, "Nothing was submitted", false},
		{"\x04", 0, "Nothing was submitted", false}, // end of input
		{"y\n", 0, "QUEUED (capacity)", true},
		{"YES\n", 0, "QUEUED (capacity)", true},
		{"\x03", -1, "", false}, // interrupt
	} {
		t.Run(fmt.Sprintf("%q", c.answer), func(t *testing.T) {
			before := d.Submits()
			term := openTerminal(t, tp("submit", "hello", "--profile", "h200:8"))
			term.until("Submit? [y/N] ")
			if d.Submits() != before {
				t.Error("submitted before the answer")
			}
			term.send(c.answer)
			screen, code := term.end()
			if c.code >= 0 && code != c.code || !strings.Contains(screen, c.says) {
				t.Errorf("exit code %d, want %d, and %q on\n%s", code, c.code, c.says, screen)
			}
			want := before
			if c.queues {
				want++
			}
			if got := d.Submits(); got != want {
				t.Errorf("%d submissions, want %d", got-before, want-before)
			}
			if c.code < 0 && code != 130 {
				t.Errorf("an interrupt gives exit code %d, want 130", code)
			}
		})
	}
}

// TestCancelAsksWhichRun: the newest run may not be the one that was meant.
func TestCancelAsksWhichRun(t *testing.T) {
	_, tp := inLab(t)
	if out, err := tp("submit", "hello", "--profile", "h200:8", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct{ answer, state string }{{"n\n", "QUEUED"}, {"\n", "QUEUED"}, {"y\n", "CANCELLED"}} {
		term := openTerminal(t, tp("job", "cancel"))
		term.until("Cancel it? [y/N] ")
		term.send(c.answer)
		if screen, code := term.end(); code != 0 {
			t.Errorf("%q: exit code %d\n%s", c.answer, code, screen)
		}
		if out, err := tp("job", "status").CombinedOutput(); err != nil || !strings.Contains(string(out), c.state) {
			t.Errorf("%q: wanted %s, %v\n%s", c.answer, c.state, err, out)
		}
	}
}
