package slurmtest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tuneplane/tp/slurm"
)

// Fake is a cluster in memory, for faults that no real one can be driven into.
// The zero value queues everything. Fields are set before use; the methods
// count what was asked.
type Fake struct {
	// OnSubmit decides about one submission, after it was counted: whether the
	// job exists from then on, and the answer. nil queues and says so.
	OnSubmit func(n int, r *slurm.Request) (exists bool, err error)
	// OnLook fails a look-up by name; nil answers.
	OnLook func(n int) error
	// Hidden jobs exist and are not found by name yet.
	Hidden bool
	// OnJobs fails a question about ids.
	OnJobs error
	// Bare makes States tell ids and states alone, as slurmrestd does where
	// there is no squeue.
	Bare bool

	mu        sync.Mutex
	jobs      []slurm.Job
	submits   int
	looks     int
	states    int
	jobsAsked int
	cancels   []slurm.JobID
	warnings  []string
}

var _ slurm.Client = (*Fake)(nil)

// Info is a made-up cluster.
func (f *Fake) Info(context.Context) (slurm.Info, error) {
	return slurm.Info{Cluster: "lab", Release: "24.11.5", Transport: "memory", Account: true}, nil
}

// Snapshot is empty.
func (f *Fake) Snapshot(ctx context.Context) (*slurm.Snapshot, error) {
	info, err := f.Info(ctx)
	return &slurm.Snapshot{Info: info}, err
}

// Submit makes a job of the request, as OnSubmit says.
func (f *Fake) Submit(_ context.Context, r *slurm.Request) (slurm.Submitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submits++
	exists, err := true, error(nil)
	if f.OnSubmit != nil {
		exists, err = f.OnSubmit(f.submits, r)
	}
	var id slurm.JobID
	if exists {
		id = slurm.JobID(100 + 10*len(f.jobs))
		for i, c := range r.Components {
			j := slurm.Job{ID: id + slurm.JobID(i), Name: r.Name, User: "ann", State: slurm.Pending, Reason: "Priority", Partition: c.Partition,
				Nodes: c.Nodes, Tasks: c.Tasks(), CPUsPerTask: c.CPUsPerTask, Memory: c.Memory, GRES: c.GRES, TimeLimit: c.TimeLimit,
				Account: c.Account, QOS: c.QOS, Comment: r.Comment, WorkDir: r.WorkDir, Output: r.Output, Requeue: r.Requeue}
			if len(r.Components) > 1 {
				j.HetJob, j.HetOffset = id, i
			}
			f.jobs = append(f.jobs, j)
		}
	}
	if err != nil {
		return slurm.Submitted{}, err
	}
	return slurm.Submitted{ID: id, Warnings: f.warnings}, nil
}

// States is Jobs, counted. Bare ones have ids and states alone.
func (f *Fake) States(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	jobs, err := f.Jobs(ctx, ids...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobsAsked, f.states = f.jobsAsked-1, f.states+1
	for i, j := range jobs {
		if f.Bare && !j.FromDB {
			jobs[i] = slurm.Job{ID: j.ID, HetJob: j.HetJob, HetOffset: j.HetOffset, State: j.State, Flags: j.Flags}
		}
	}
	return jobs, err
}

// Asked counts the questions for states and for whole jobs.
func (f *Fake) Asked() (states, jobs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states, f.jobsAsked
}

// Jobs finds by id, all components of a heterogeneous one.
func (f *Fake) Jobs(_ context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobsAsked++
	if f.OnJobs != nil {
		return nil, f.OnJobs
	}
	var out []slurm.Job
	for _, j := range f.jobs {
		if slices.Contains(ids, j.Leader()) || slices.Contains(ids, j.ID) {
			out = append(out, j)
		}
	}
	return out, nil
}

// JobsByName finds by name.
func (f *Fake) JobsByName(_ context.Context, _, name string) ([]slurm.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	if f.OnLook != nil {
		if err := f.OnLook(f.looks); err != nil {
			return nil, err
		}
	}
	var out []slurm.Job
	for _, j := range f.jobs {
		if j.Name == name && !f.Hidden {
			out = append(out, j)
		}
	}
	return out, nil
}

// Cancel ends a job.
func (f *Fake) Cancel(_ context.Context, id slurm.JobID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancels = append(f.cancels, id)
	found := false
	for i := range f.jobs {
		if f.jobs[i].Leader() == id {
			f.jobs[i].State, found = slurm.Cancelled, true
		}
	}
	if !found {
		return &slurm.Error{Op: fmt.Sprintf("cancel job %s", id), Number: 2017, Text: "Invalid job id specified"}
	}
	return nil
}

// Put adds jobs as they are, or replaces those with the same id.
func (f *Fake) Put(jobs ...slurm.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range jobs {
		f.jobs = slices.DeleteFunc(f.jobs, func(have slurm.Job) bool { return have.ID == j.ID })
		f.jobs = append(f.jobs, j)
	}
}

// Drop forgets every job.
func (f *Fake) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = nil
}

// Warn makes every later submission carry warnings.
func (f *Fake) Warn(text ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warnings = text
}

// Submits counts calls of Submit: the assertion of every test about doubt.
func (f *Fake) Submits() int { return f.count(&f.submits) }

// Looks counts look-ups by name.
func (f *Fake) Looks() int { return f.count(&f.looks) }

func (f *Fake) count(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

// Cancels lists the ids that were cancelled.
func (f *Fake) Cancels() []slurm.JobID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.cancels)
}
