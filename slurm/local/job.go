package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm"
)

// job is jobs/<id>/request.json.
type job struct {
	id  slurm.JobID
	dir string

	Request   slurm.Request `json:"request"` // without script and environment, which are files of their own
	User      string        `json:"user"`
	Submitted time.Time     `json:"submitted"`
	Devices   []int         `json:"devices,omitempty"`
}

// process is jobs/<id>/process.json, written by the supervisor when it begins.
type process struct {
	durable.Process
	Began int64 `json:"began"` // seconds since 1970
}

// end is jobs/<id>/end.json, written when the job has ended.
type end struct {
	State  slurm.State `json:"state"`
	Exit   int         `json:"exit"`
	Signal int         `json:"signal"`
	Reason string      `json:"reason"`
	// Description says what happened to the supervisor.
	Description string `json:"description,omitempty"`
	Time        int64  `json:"time"`
}

// maxFile bounds a file of a job: the request without script has some kilobytes.
const maxFile = 16 << 20

func (c *Client) path(id slurm.JobID) string { return filepath.Join(c.dir, "jobs", id.String()) }

// ids are all jobs, oldest first.
func (c *Client) ids() ([]slurm.JobID, error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, "jobs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var ids []slurm.JobID
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 32); err == nil && n > 0 {
			ids = append(ids, slurm.JobID(n))
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// read decodes a file of a job; ok is false when it is not there.
func read(path string, into any) (ok bool, err error) {
	data, err := durable.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		if err = json.Unmarshal(data, into); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	return true, err
}

// load is nil for an unknown job, and for one that never came to its supervisor.
func (c *Client) load(id slurm.JobID) (*job, *process, error) {
	j, p := &job{id: id, dir: c.path(id)}, &process{}
	for name, into := range map[string]any{"request.json": j, "process.json": p} {
		if ok, err := read(filepath.Join(j.dir, name), into); err != nil || !ok {
			return nil, nil, err
		}
	}
	return j, p, nil
}

// ended is how the job ended, nil while it runs. A job whose supervisor is gone
// without a word is ended here: what is left of it is killed, and that is
// written down.
func (c *Client) ended(j *job) (*end, error) {
	for range 2 {
		var e end
		if ok, err := read(filepath.Join(j.dir, "end.json"), &e); ok || err != nil {
			return &e, err
		}
		if alive, err := locked(filepath.Join(j.dir, "lock")); alive || err != nil {
			return nil, err
		}
		// It may have written its last word between our two looks.
		if ok, err := read(filepath.Join(j.dir, "end.json"), &e); ok || err != nil {
			return &e, err
		}
		if err := c.bury(j); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s cannot be written", j.dir)
}

// locked reports whether a supervisor lives: it holds the lock, and the kernel
// takes it away when it dies.
func locked(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return false, nil
}

func (c *Client) bury(j *job) error {
	var p process
	if _, err := read(filepath.Join(j.dir, "process.json"), &p); err != nil {
		return err
	}
	what := "the process that kept the job was killed, and what was left of the job with it"
	if p.Boot != durable.BootID() {
		what = "the machine was started again while the job ran"
	} else if bash, err := exec.LookPath("bash"); err != nil {
		return err
	} else {
		cmd := exec.Command(bash, filepath.Join(c.bin, "supervise"), "clean", j.dir)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if err := c.install(); err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("end what is left of job %s: %w: %s", j.id, err, out)
		}
	}
	last, err := json.Marshal(end{State: slurm.NodeFail, Exit: -1, Reason: "NodeDown", Description: what, Time: time.Now().Unix()})
	if err != nil {
		return err
	}
	if err := durable.Create(filepath.Join(j.dir, "end.json"), last, 0o600); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// report is the job as squeue would show it; ok is false for an unknown one.
func (c *Client) report(id slurm.JobID) (out slurm.Job, ok bool, err error) {
	j, p, err := c.load(id)
	if err != nil || j == nil {
		return out, false, err
	}
	e, err := c.ended(j)
	if err != nil {
		return out, false, err
	}
	r, comp := j.Request, j.Request.Components[0]
	out = slurm.Job{
		ID: id, Name: r.Name, User: j.User, Comment: r.Comment, State: slurm.Running, Submit: j.Submitted, Start: time.Unix(p.Began, 0),
		Partition: comp.Partition, Account: comp.Account, QOS: comp.QOS, Reservation: comp.Reservation, Constraint: comp.Constraint,
		Nodes: comp.Nodes, NodeList: c.host, Tasks: comp.Tasks(), CPUs: max(1, comp.CPUsPerTask) * comp.Tasks(), CPUsPerTask: comp.CPUsPerTask,
		Memory: comp.Memory, GRES: comp.GRES, Total: comp.GRES, TimeLimit: comp.TimeLimit, WorkDir: r.WorkDir, Output: r.Output, Requeue: r.Requeue,
	}
	if e != nil {
		out.State, out.ExitCode, out.Signal = e.State, e.Exit, e.Signal
		out.Reason, out.Description, out.End = e.Reason, e.Description, time.Unix(e.Time, 0)
	}
	return out, true, nil
}

// Jobs reports the jobs with these ids.
func (c *Client) Jobs(_ context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	var out []slurm.Job
	for _, id := range slices.Compact(ids) {
		j, ok, err := c.report(id)
		if err != nil {
			return nil, &slurm.Error{Op: "show job " + id.String(), Text: err.Error()}
		}
		if ok {
			out = append(out, j)
		}
	}
	return out, nil
}

// JobsByName looks through all jobs.
func (c *Client) JobsByName(ctx context.Context, user, name string) ([]slurm.Job, error) {
	ids, err := c.ids()
	if err != nil {
		return nil, &slurm.Error{Op: "look up jobs", Text: err.Error()}
	}
	var named []slurm.JobID
	for _, id := range ids {
		if j, _, err := c.load(id); err != nil {
			return nil, &slurm.Error{Op: "look up jobs", Text: err.Error()}
		} else if j != nil && j.User == user && j.Request.Name == name {
			named = append(named, id)
		}
	}
	return c.Jobs(ctx, named...)
}

// running are the jobs that have not ended.
func (c *Client) running() ([]*job, error) {
	ids, err := c.ids()
	if err != nil {
		return nil, err
	}
	var out []*job
	for _, id := range ids {
		if _, err := os.Stat(filepath.Join(c.path(id), "end.json")); err == nil {
			continue
		}
		j, _, err := c.load(id)
		if err != nil {
			return nil, err
		}
		if j == nil {
			continue
		}
		if e, err := c.ended(j); err != nil {
			return nil, err
		} else if e == nil {
			out = append(out, j)
		}
	}
	return out, nil
}

// Cancel asks the supervisor to end the job. It does nothing to one that has
// ended, like scancel.
func (c *Client) Cancel(_ context.Context, id slurm.JobID) error {
	op := "cancel job " + id.String()
	j, p, err := c.load(id)
	if err == nil && j == nil {
		return &slurm.Error{Op: op, Number: 2017, Text: "Invalid job id specified"}
	}
	if err != nil {
		return &slurm.Error{Op: op, Text: err.Error()}
	}
	if e, err := c.ended(j); err != nil {
		return &slurm.Error{Op: op, Text: err.Error()}
	} else if e != nil {
		return nil
	}
	// FindProcess holds on to the process (pidfd), so that between look and
	// signal no other one can take its number.
	target, err := os.FindProcess(p.PID)
	if err == nil && !p.Here() {
		err = errors.New("its supervisor cannot be reached from here: it runs in another container of this machine")
	}
	if err == nil {
		err = target.Signal(syscall.SIGTERM)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return &slurm.Error{Op: op, Text: err.Error()}
	}
	return nil
}

// States is Jobs.
func (c *Client) States(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	return c.Jobs(ctx, ids...)
}
