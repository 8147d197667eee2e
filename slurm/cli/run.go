package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Tools are the commands to run. The zero value finds them in PATH.
type Tools struct {
	Dir     string // directory of the commands; "" for PATH
	Cluster string // --clusters of every command; "" for the cluster of slurm.conf
	// Timeout of one command; default 10 s: a healthy controller answers in
	// milliseconds, and the commands themselves retry for minutes.
	Timeout time.Duration
}

// Path is what runs for a command's name.
func (t Tools) Path(name string) string {
	if t.Dir == "" {
		return name
	}
	return filepath.Join(t.Dir, name)
}

// maxOutput bounds what is kept of a command's output: 100,000 queue lines.
const maxOutput = 32 << 20

// maxTalk bounds what is kept of stderr, where a refusal is a few lines.
const maxTalk = 64 << 10

// command is one start of a program.
type command struct {
	path    string
	args    []string
	dir     string
	stdin   io.Reader
	files   []*os.File // file descriptors 3, 4, …
	timeout time.Duration
	slurm   bool // one of Slurm's: it reads slurm.conf
}

// MissingConfig is why Slurm's programs cannot start: SLURM_CONF names a file
// that is not there, for which they would wait a minute. nil when it is there,
// or not set.
func MissingConfig() error {
	conf := os.Getenv("SLURM_CONF")
	if conf == "" {
		return nil
	}
	if _, err := os.Stat(conf); err != nil {
		return fmt.Errorf("SLURM_CONF: %w", err)
	}
	return nil
}

// outcome is what a program left, as far as it got.
type outcome struct {
	stdout, stderr string
	code           int  // exit status; -1 when it did not exit by itself
	started        bool // false: certainly nothing was asked of Slurm
}

// run starts a program and waits. The error says why there is no exit status:
// it did not start, took too long, was killed, or said too much.
func (c command) run(ctx context.Context) (outcome, error) {
	if c.slurm {
		if err := MissingConfig(); err != nil {
			return outcome{code: -1}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stdout, stderr := bounded{limit: maxOutput}, bounded{limit: maxTalk}
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Env = environment(os.Environ())
	cmd.Dir, cmd.Stdin, cmd.ExtraFiles = c.dir, c.stdin, c.files
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	// A group of its own: a site's wrapper must not leave its sbatch behind,
	// and Ctrl-C on the terminal must not cut a submission in two.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return outcome{code: -1}, err
	}
	err := cmd.Wait()
	out := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode(), started: true}
	var exited *exec.ExitError
	switch {
	case out.code >= 0 && !errors.Is(err, exec.ErrWaitDelay) && (err == nil || errors.As(err, &exited)):
	case ctx.Err() != nil:
		return out, fmt.Errorf("%s: no answer within %s: %w", c.path, c.timeout, ctx.Err())
	case out.code >= 0 && errors.Is(err, exec.ErrWaitDelay): // a child of a wrapper holds the pipe
	default:
		return out, fmt.Errorf("%s: %w", c.path, err)
	}
	if stdout.over {
		return out, fmt.Errorf("%s: more than %d MiB of output", c.path, maxOutput>>20)
	}
	return out, nil
}

// call prepares one of Slurm's commands for the cluster of t.
func (t Tools) call(name string, args ...string) command {
	if t.Cluster != "" {
		args = append([]string{"--clusters=" + t.Cluster}, args...)
	}
	c := t.program(t.Path(name), args...)
	c.slurm = true
	return c
}

func (t Tools) program(path string, args ...string) command {
	return command{path: path, args: args, timeout: cmp.Or(t.Timeout, 10*time.Second)}
}

func (c command) output(ctx context.Context) ([]byte, error) {
	out, err := c.run(ctx)
	switch {
	case err != nil:
		return nil, err
	case out.code != 0:
		return nil, fmt.Errorf("%s: exit status %d: %s", c.path, out.code, strings.Join(strings.Fields(out.stderr), " "))
	}
	return []byte(out.stdout), nil
}

// environment keeps what the commands need. SLURM_JWT would make them try
// the token, SQUEUE_*, SBATCH_* and SLURM_* change filters, formats and options.
func environment(all []string) []string {
	keep := []string{"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "LD_LIBRARY_PATH", "TZ"}
	var out []string
	for _, kv := range all {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(keep, name) {
			out = append(out, kv)
		}
	}
	return append(out, "LC_ALL=C.UTF-8")
}

// bounded is a buffer that stops keeping at its limit.
type bounded struct {
	bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:room])
	} else {
		b.Buffer.Write(p)
	}
	return len(p), nil
}
