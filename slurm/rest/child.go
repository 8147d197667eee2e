package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// children starts private slurmrestd processes, which speak HTTP on two pipes
// of ours (slurmrestd(8), inetd mode). The owner of the pipe is the proof of
// identity: no daemon, no token, no administrator. It has to be a pipe, and
// made by the very user: a socketpair is refused with 401 on 22.05 and 24.11,
// and so is another user's pipe.
//
// A child is ready after 11 to 15 ms and answers a ping in 2 ms, so requests
// share one instead of starting a second.
type children struct {
	path string
	env  []string

	mu   sync.Mutex
	args [][]string // what to try, in order; nil until a release is known
	rung int        // the one in use
	all  map[*pipes]struct{}
}

// childGrace is how long a child may take to die after SIGKILL, and to say why
// it died by itself.
const childGrace = time.Second

func newChildren(path string) *children {
	return &children{path: path, env: childEnv(os.Environ()), all: map[*pipes]struct{}{}}
}

// childEnv keeps what Slurm's libraries need. SLURM_JWT would make slurmrestd
// ask slurmctld with that token, SLURMRESTD_* are options of the daemon.
func childEnv(all []string) []string {
	var out []string
	for _, kv := range all {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "LD_LIBRARY_PATH", "TZ":
			out = append(out, kv)
		}
	}
	return append(out, "LC_ALL=C.UTF-8")
}

// plugins are the arguments to try for a dialect: with accounting, then
// without. slurmrestd up to 24.05 ends at once when it loads the accounting
// plugins and slurm.conf names no slurmdbd. The last row is for a dialect that
// the binary no longer has. Naming two of six plugins halves the start on 22.05
// (12 instead of 34 ms); on 24.11 and 26.05 it changes nothing.
func plugins(d dialect) [][]string {
	if d == 38 || d == 39 {
		only := fmt.Sprintf("openapi/%s", d)
		return [][]string{{"-s", fmt.Sprintf("%s,openapi/db%s", only, d)}, {"-s", only}, nil}
	}
	return [][]string{nil, {"-s", "openapi/slurmctld"}}
}

// dialectOf is the newest dialect of a release, "22.05.8"; 0 when unknown.
func dialectOf(release string) dialect {
	for i, first := range []string{"22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05"} {
		if strings.HasPrefix(release, first) {
			return oldest + dialect(i)
		}
	}
	return 0
}

// release asks the binary, in 3 ms.
func (k *children) release(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.path, "-V")
	cmd.Env, cmd.WaitDelay = k.env, time.Second
	out, err := cmd.Output()
	if err != nil { // the start proper will say what is wrong
		return ""
	}
	words := strings.Fields(string(out[:min(len(out), 200)])) // "slurm-wlm 24.11.5", "slurm 24.11.5"
	return words[max(0, len(words)-1):][0]
}

// speak chooses the arguments for a dialect.
func (k *children) speak(d dialect) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.args == nil {
		k.args, k.rung = plugins(d), 0
	}
}

// next goes on to other arguments after a child that ended before its first
// answer. It is false when there are none, or when err says something else.
func (k *children) next(err error) bool {
	var dead *childError
	if !errors.As(err, &dead) || !dead.mute {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rung == dead.rung && k.rung+1 < len(k.args) {
		k.rung++
	}
	return dead.rung != k.rung
}

// dial starts a child.
func (k *children) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	k.mu.Lock()
	rung, extra := k.rung, []string(nil)
	if rung < len(k.args) {
		extra = k.args[rung]
	}
	k.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		_ = theirIn.Close()
		_ = in.Close()
		return nil, err
	}
	p := &pipes{in: in, out: out, of: k, rung: rung, ended: make(chan struct{})}
	p.cmd = exec.Command(k.path, append([]string{"-a", "rest_auth/local"}, extra...)...)
	p.cmd.Env, p.cmd.Dir = k.env, "/"
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, &p.said
	p.cmd.WaitDelay = childGrace
	// A group of its own: an interrupt at the terminal is tp's to deal with.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = p.cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		_ = in.Close()
		_ = out.Close()
		return nil, err
	}
	go func() {
		p.failed = p.cmd.Wait()
		close(p.ended)
	}()
	k.mu.Lock()
	k.all[p] = struct{}{}
	k.mu.Unlock()
	return p, nil
}

// proven reports whether a child has answered and lives: a request to it is
// certain to be read.
func (k *children) proven() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for p := range k.all {
		if p.answered.Load() && !p.isOver() {
			return true
		}
	}
	return false
}

// close ends every child.
func (k *children) close() {
	k.mu.Lock()
	var all []*pipes
	for p := range k.all {
		all = append(all, p)
	}
	k.mu.Unlock()
	for _, p := range all {
		_ = p.Close()
	}
}

// pipes is the connection to one child.
type pipes struct {
	in, out *os.File
	cmd     *exec.Cmd
	of      *children
	rung    int
	said    tail // its stderr

	answered atomic.Bool
	ended    chan struct{} // closed when the process is reaped
	failed   error         // of Wait, valid then
	once     sync.Once
}

func (p *pipes) isOver() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Read gives, instead of the end of the stream, what the child died of.
func (p *pipes) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if n > 0 {
		p.answered.Store(true)
	}
	if n == 0 && errors.Is(err, io.EOF) {
		err = p.death(err)
	}
	return n, err
}

// Write says what the child died of, instead of a broken pipe.
func (p *pipes) Write(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = p.death(err)
	}
	return n, err
}

// death is why the child ended, or how that was noticed.
func (p *pipes) death(noticed error) error {
	select {
	case <-p.ended:
		if p.failed != nil {
			return &childError{rung: p.rung, mute: !p.answered.Load(), err: p.failed, said: p.said.last()}
		}
	case <-time.After(childGrace):
	}
	return noticed
}

// Close kills the child, which has nothing to lose: what it was asked is
// either with slurmctld already or will never be.
func (p *pipes) Close() error {
	p.once.Do(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // not reaped yet, or a group that is no more
		_ = p.in.Close()
		select {
		case <-p.ended:
		case <-time.After(childGrace):
		}
		_ = p.out.Close()
		p.of.mu.Lock()
		delete(p.of.all, p)
		p.of.mu.Unlock()
	})
	return nil
}

func (p *pipes) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipes) RemoteAddr() net.Addr { return pipeAddr{} }
func (p *pipes) SetDeadline(t time.Time) error {
	return cmp.Or(p.in.SetDeadline(t), p.out.SetDeadline(t))
}
func (p *pipes) SetReadDeadline(t time.Time) error  { return p.out.SetReadDeadline(t) }
func (p *pipes) SetWriteDeadline(t time.Time) error { return p.in.SetWriteDeadline(t) }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// childError is a child that ended on its own.
type childError struct {
	rung int
	mute bool // before its first answer
	err  error
	said string
}

func (e *childError) Error() string {
	s := "slurmrestd ended: " + e.err.Error()
	if e.said != "" {
		s += ": " + e.said
	}
	return s
}

// tail keeps the end of what a child says.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-maxTail):]...)
	t.buf = t.buf[max(0, len(t.buf)-maxTail):]
	return len(p), nil
}

// last is the last line with an error, else the last one: up to 24.11 lines
// begin with "slurmrestd: ", then with the time.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	best := ""
	for line := range strings.Lines(string(t.buf)) {
		if line = foreign(line); line != "" && (strings.Contains(line, "fatal: ") || strings.Contains(line, "error: ") || !strings.Contains(best, ": ")) {
			best = line
		}
	}
	for _, mark := range []string{"fatal: ", "error: "} {
		if _, text, ok := strings.Cut(best, mark); ok {
			return text
		}
	}
	return best
}

// prove makes sure of a child that reads before a request that must not get
// lost on the way.
func (c *Client) prove(ctx context.Context, op string) error {
	if c.wire.children == nil || c.wire.children.proven() {
		return nil
	}
	_, err := c.Ping(ctx)
	var u *slurm.Unreachable
	if errors.As(err, &u) {
		return &slurm.Unreachable{Op: op, Via: u.Via, NotSent: true, Err: u.Err}
	}
	return err
}

// Close ends the private slurmrestd, if there is one, and idle connections.
func (c *Client) Close() error {
	c.wire.reads.CloseIdleConnections()
	c.wire.writes.CloseIdleConnections()
	if c.wire.children != nil {
		c.wire.children.close()
	}
	return nil
}
