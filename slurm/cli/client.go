package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Options of a client. The zero value is the cluster of this host.
type Options struct {
	Tools Tools
	// SubmitTimeout bounds a submission; default 60 s: sbatch itself tries
	// again while the controller is busy, and giving up early leaves the job in
	// doubt.
	SubmitTimeout time.Duration
	// Known is an earlier Info: while the release is the same, accounting that
	// was there is not asked whether it answers.
	Known slurm.Info
	Clock func() time.Time
}

// Client is a cluster behind Slurm's commands.
type Client struct {
	o Options

	mu      sync.Mutex
	version string      // of the commands, "24.11.5"
	noJSON  bool        // they were built without it
	pong    *slurm.Info // of the last Ping
	info    *slurm.Info
}

var _ slurm.Client = (*Client)(nil)

// New makes a client without starting a command.
func New(o Options) *Client {
	o.SubmitTimeout = cmp.Or(o.SubmitTimeout, 60*time.Second)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Client{o: o}
}

// ask runs a command and returns its stdout. An error is an *slurm.Error or an
// *slurm.Unreachable.
func (c *Client) ask(ctx context.Context, op, name string, args ...string) (string, error) {
	call := c.o.Tools.call(name, args...)
	out, err := call.run(ctx)
	switch {
	case err != nil:
		return "", &slurm.Unreachable{Op: op, Via: call.path, NotSent: !out.started, Err: err}
	case out.code != 0:
		return "", failure(op, call.path, out)
	}
	return out.stdout, nil
}

// Version is the release of the commands, "24.11.5"; slurmctld may be newer.
func (c *Client) Version(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.version
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	const op = "ask for the version"
	call := c.o.Tools.program(c.o.Tools.Path("sbatch"), "--version")
	call.slurm = true
	out, err := call.output(ctx)
	if err != nil {
		return "", &slurm.Unreachable{Op: op, Via: call.path, NotSent: true, Err: err}
	}
	version := parseVersion(string(out))
	if version == "" {
		return "", &slurm.Error{Op: op, Text: fmt.Sprintf("%s --version says %q, which is no Slurm", call.path, strings.TrimSpace(string(out)))}
	}
	c.mu.Lock()
	c.version = version
	c.mu.Unlock()
	return version, nil
}

// parseVersion reads "slurm 24.11.5" and Debian's "slurm-wlm 24.11.5", in
// whatever a wrapper prints around it.
func parseVersion(out string) string {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) == 2 && strings.HasPrefix(f[0], "slurm") && release(f[1]) != (major{}) {
			return f[1]
		}
	}
	return ""
}

// major is a release of Slurm, year and month.
type major struct{ year, month int }

func (m major) String() string { return fmt.Sprintf("%d.%02d", m.year, m.month) }

func (m major) before(other major) bool {
	return m.year < other.year || m.year == other.year && m.month < other.month
}

// release reads "24.11.5"; zero when it is none.
func release(version string) (m major) {
	if n, _ := fmt.Sscanf(version, "%2d.%2d", &m.year, &m.month); n != 2 || m.year < 1 {
		return major{}
	}
	return m
}

// Info asks the controller for its name, and accounting whether it answers.
// After a Ping only accounting is left to be asked.
func (c *Client) Info(ctx context.Context) (slurm.Info, error) {
	c.mu.Lock()
	known, pong := c.info, c.pong
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	if pong == nil {
		fresh, err := c.Ping(ctx)
		if err != nil {
			return slurm.Info{}, err
		}
		pong = &fresh
	}
	info := *pong
	if k := c.o.Known; k.Account && k.Cluster == info.Cluster && k.Release == info.Release {
		info.Account = true
	} else {
		_, err := c.ask(ctx, "ask accounting", "sacct", "--noheader", "--parsable2", "--allocations", "--format=jobid", "--jobs=1")
		info.Account = err == nil
	}
	c.mu.Lock()
	c.info = &info
	c.mu.Unlock()
	return info, nil
}

// Ping is Info without a question to accounting: Account is false.
func (c *Client) Ping(ctx context.Context) (slurm.Info, error) {
	const op = "show the configuration"
	version, err := c.Version(ctx)
	if err != nil {
		return slurm.Info{}, err
	}
	out, err := c.ask(ctx, op, "scontrol", "show", "config")
	if err != nil {
		return slurm.Info{}, err
	}
	info := slurm.Info{Cluster: setting(out, "ClusterName"), Release: cmp.Or(setting(out, "SLURM_VERSION"), version)}
	if info.Cluster == "" {
		return slurm.Info{}, &slurm.Error{Op: op, Text: "scontrol show config names no ClusterName"}
	}
	info.Transport = fmt.Sprintf("Slurm %s commands in %s (sbatch)", version, c.directory())
	c.mu.Lock()
	c.pong = &info
	c.mu.Unlock()
	return info, nil
}

// directory is where the commands are found.
func (c *Client) directory() string {
	path, err := exec.LookPath(c.o.Tools.Path("sbatch"))
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return cmp.Or(c.o.Tools.Dir, "PATH")
	}
	return filepath.Dir(path)
}

// setting finds a key in "scontrol show config".
func setting(config, key string) string {
	for line := range strings.Lines(config) {
		if k, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
