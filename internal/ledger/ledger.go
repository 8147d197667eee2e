// Package ledger is the record of runs. The run directories are the truth:
//
//	<run_root>/<user>/<slug(experiment)>/<run id>/
//	    plan.json script.sh manifest.json provenance.json   as shown and approved
//	    events.jsonl        what happened; its first line holds the run's header
//	    events.<host>.jsonl what other hosts added
//	    claims/ ends/       written by the job's own script
//	    logs/ out/
//
// A run's state is what [Replay] makes of its events; nothing else stores it.
// sqlite only remembers what was replayed before, so that a list of thousands
// of runs does not read them all: the index may be deleted or broken at any
// time, and nothing but [Ledger.List] and [Ledger.Newest] ever opens it.
//
//	l, err := ledger.Open(ledger.Options{Roots: []string{root}, User: user, StateDir: state})
//	run, err := l.Create(ledger.Header{Experiment: "grpo", …}, files)
//	err = l.Append(run, ledger.Event{Type: ledger.Intent, Attempt: 1, Token: token, JobName: run.JobName()})
//	id := submit()
//	err = l.Append(run, ledger.Event{Type: ledger.Submitted, Attempt: 1, JobID: id})
//
// Every file is changed through package durable, so a kill -9 at any point
// leaves either no run or a whole one, and at worst a torn last line.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
)

// Options say where the runs are.
type Options struct {
	// Roots are run roots: new runs go to the first, all are searched. A site
	// that moves its run root keeps the old one here.
	Roots []string
	User  string // whose runs; a directory below every root
	// StateDir holds the index, one file per host; "" works without one.
	StateDir string
	Now      func() time.Time // default time.Now
	Host     string           // default os.Hostname; each host has its own event file
}

// Ledger finds, makes and extends runs. Its methods may be called from several
// goroutines and processes; a *Run belongs to one goroutine.
type Ledger struct {
	opt Options

	mu    sync.Mutex
	index *index // opened by the first list
	tried bool
}

// Open makes a ledger. It touches no file.
func Open(opt Options) (*Ledger, error) {
	if len(opt.Roots) == 0 || opt.User == "" {
		return nil, errors.New("ledger: a run root and a user are needed")
	}
	for _, r := range opt.Roots {
		if !filepath.IsAbs(r) {
			return nil, fault.New(fault.Usage, "run root %q is no absolute path", r)
		}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Host == "" {
		opt.Host, _ = os.Hostname()
	}
	return &Ledger{opt: opt}, nil
}

// Close closes the index if it was opened.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == nil {
		return nil
	}
	err := l.index.close()
	l.index, l.tried = nil, false
	return err
}

// userDir is the directory of a user below a root.
func userDir(root, user string) string { return filepath.Join(root, Slug(user)) }

// ensureUserDir makes <root>/<user>, private to the user, and distrusts one
// that somebody else put there or may write to.
func (l *Ledger) ensureUserDir(root string) (string, error) {
	dir := userDir(root, l.opt.User)
	if err := ensureRoot(root); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if uid := owner(info); uid != os.Getuid() || info.Mode().Perm()&0o022 != 0 || !info.IsDir() {
		return "", fault.New(fault.Usage, "%s belongs to uid %d with mode %v; a directory of uid %d that nobody else may write is needed",
			dir, uid, info.Mode().Perm(), os.Getuid()).WithHint("choose another run_root in ~/.config/tp/user.toml, or ask the owner to remove it")
	}
	return dir, nil
}

// ensureRoot makes a missing root only where it would be the user's own: made
// by the first user who comes, a root for all would shut out the others.
func ensureRoot(root string) error {
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(root)
	for {
		info, err := os.Stat(above)
		if err == nil {
			if owner(info) == os.Getuid() {
				return os.MkdirAll(root, 0o700)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || above == filepath.Dir(above) {
			break
		}
		above = filepath.Dir(above)
	}
	return fault.New(fault.Usage, "run root %s does not exist, and %s is not yours", root, above).
		WithHint("ask the administrator for `mkdir -m 1777 %s`, or set run_root in ~/.config/tp/user.toml", root)
}

// Ready reports why no run can be kept here, without making anything: the run
// root, or what is above it, has to be a directory that takes ours.
func (l *Ledger) Ready() error {
	root := l.opt.Roots[0]
	at := userDir(root, l.opt.User)
	for {
		info, err := os.Stat(at)
		switch {
		case err == nil && !info.IsDir():
			return l.unready(fmt.Errorf("%s is no directory", at))
		case err == nil:
			if err := syscall.Access(at, 2|1); err != nil { // W_OK, X_OK
				return l.unready(fmt.Errorf("%s cannot be written to: %w", at, err))
			}
			if len(at) < len(root) && owner(info) != os.Getuid() { // see ensureRoot
				return ensureRoot(root)
			}
			return nil
		case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
			at = filepath.Dir(at) // the file that is in the way comes
		default:
			return l.unready(err)
		}
	}
}

func (l *Ledger) unready(why error) error {
	return fault.New(fault.Usage, "run root %s: %w", l.opt.Roots[0], why).
		WithHint("run_root in the site file or in ~/.config/tp/user.toml names another place; tp config show says where it is set")
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// Load reads the run in dir.
func (l *Ledger) Load(dir string) (*Run, error) {
	r, _, err := load(dir)
	return r, err
}

// load also returns the stamp under which the run may be remembered. It is
// taken first: what is appended while we read makes the stamp untrue, and the
// next list reads again.
func load(dir string) (*Run, string, error) {
	others, err := otherEvents(dir)
	if err != nil {
		return nil, "", err
	}
	stamp, err := stampOf(dir, others)
	if err != nil {
		return nil, "", err
	}
	events, err := ReadEvents(dir)
	if err != nil {
		return nil, "", err
	}
	r := Replay(events)
	if r.ID == "" {
		return nil, "", fmt.Errorf("%s has no readable %q event", filepath.Join(dir, mainEvents), Created)
	}
	r.Dir = dir
	return &r, stamp, nil
}

// broken stands for a directory that cannot be read, so that a list shows it.
func broken(dir string, err error) *Run {
	return &Run{
		Header: Header{ID: ID(filepath.Base(dir)), Dir: dir, Experiment: filepath.Base(filepath.Dir(dir)),
			User: filepath.Base(filepath.Dir(filepath.Dir(dir)))},
		State: Unknown, Reason: "unreadable: " + strings.TrimSpace(err.Error()),
	}
}

// Lease takes the right to issue attempts of a run: [durable.ErrHeld] when
// another process is at it.
func (l *Ledger) Lease(k *durable.Keeper, r *Run) (*durable.Lease, error) {
	return k.Try(filepath.Join(r.Dir, "lease"))
}

// Probe makes the user's directory and checks that exclusive creation works
// there: the one thing that every guarantee of the ledger stands on.
func (l *Ledger) Probe() error {
	dir, err := l.ensureUserDir(l.opt.Roots[0])
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ".probe-"+randomHex(6))
	defer os.Remove(path)
	if err := durable.Create(path, []byte("probe\n"), 0o600); err != nil {
		return err
	}
	if err := durable.Create(path, []byte("probe\n"), 0o600); !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("a file could be created twice (%v): exclusive creation does not work on this file system", err)
	}
	return nil
}
