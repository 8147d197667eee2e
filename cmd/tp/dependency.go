package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// dependency turns what the job waits for into Slurm's words: jobs for runs,
// and nothing that has come true already. It refuses what cannot come true,
// for 22.05 starts a job at once whose dependency it does not know, and others
// would keep it in the queue for ever. A plan that was shown keeps its text, so
// that it stays the same plan; what has become impossible since is refused.
func (a *app) dependency(ctx context.Context, cl *cluster, after []string, shown bool) (text string, notes []string, err error) {
	if len(after) == 0 {
		return "", nil, nil
	}
	if cl == nil {
		return "", nil, fault.New(fault.Unreachable, "what the job waits for, %s, cannot be looked up without the cluster", strings.Join(after, ",")).WithHint("tp doctor")
	}
	var out []string
	for _, one := range after {
		kind, ids, _ := strings.Cut(one, ":")
		var wait []string
		for id := range strings.SplitSeq(ids, ":") {
			job, err := a.jobOf(id, cl)
			if err != nil {
				return "", nil, err
			}
			met, err := cl.met(ctx, kind, id, job)
			if err != nil {
				return "", nil, err
			}
			if met != "" && !shown {
				notes = append(notes, met)
				continue
			}
			wait = append(wait, job)
		}
		if len(wait) > 0 {
			out = append(out, kind+":"+strings.Join(wait, ":"))
		}
	}
	return strings.Join(out, ","), notes, nil
}

// jobOf is a job's id as sbatch takes it: digits, perhaps with _TASK or
// +MINUTES. A run's id is that of its newest attempt.
func (a *app) jobOf(id string, cl *cluster) (string, error) {
	if !strings.HasPrefix(id, ledger.IDPrefix) {
		return id, nil
	}
	l, err := a.ledger()
	if err != nil {
		return "", err
	}
	name, delay, delayed := strings.Cut(id, "+")
	r, err := l.Find(name)
	if err != nil {
		return "", err
	}
	switch {
	case r.JobID() == 0:
		return "", fault.New(fault.Usage, "run %s has no job yet that another could wait for", r.ID).WithHint("tp job status %s", r.ID)
	case r.Cluster != cl.info.Cluster:
		return "", fault.New(fault.Usage, "run %s is on cluster %s, and Slurm waits for jobs of its own cluster only (%s)", r.ID, r.Cluster, cl.info.Cluster)
	}
	text := r.JobID().String()
	if delayed {
		text += "+" + delay
	}
	return text, nil
}

// met says that a job has done already what is waited for; "" when it may still
// do it. An error says that it cannot.
func (cl *cluster) met(ctx context.Context, kind, shown, id string) (string, error) {
	digits, _, _ := strings.Cut(id, "+")
	digits, _, _ = strings.Cut(digits, "_")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 {
		return "", fault.New(fault.Usage, "%q is no id of a job or run", shown).WithHint("tp job ls, or squeue --me")
	}
	jobs, err := cl.Jobs(ctx, slurm.JobID(n))
	if err != nil {
		return "", reach(err, cl.fleet)
	}
	what := "job " + id
	if shown != id {
		what = shown + " (job " + id + ")"
	}
	if len(jobs) == 0 {
		return "", fault.New(fault.Usage, "%s is not known to cluster %s: it never was, or both controller and accounting have forgotten it", what, cl.info.Cluster).
			WithHint("tp job ls, or squeue --me")
	}
	ended, well, begun := true, true, true
	var state slurm.State
	for _, j := range jobs {
		ended = ended && j.State.Ended()
		well = well && j.State == slurm.Completed
		begun = begun && j.State != slurm.Pending
		if state == "" || j.State != slurm.Completed {
			state = j.State
		}
	}
	never := func() (string, error) {
		return "", fault.New(fault.Usage, "%s ended as %s, so %s can never come true: the job would be cancelled at once", what, state, kind).
			WithHint("--dependency afterany:%s to go on whatever became of it", shown)
	}
	done := fmt.Sprintf("%s ended as %s already: there is nothing to wait for", what, state)
	switch {
	case kind == "after" && strings.Contains(id, "+"): // so many minutes after its start, which Slurm counts
		return "", nil
	case kind == "after" && begun:
		return fmt.Sprintf("%s has begun already: there is nothing to wait for", what), nil
	case !ended:
		return "", nil
	case kind == "afterok" && !well:
		return never()
	case kind == "afternotok" && well:
		return never()
	case kind == "aftercorr": // by tasks, which Slurm pairs
		return "", nil
	}
	return done, nil
}
