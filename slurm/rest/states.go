package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

const (
	// few jobs are asked for one by one: a GET costs 2 ms, squeue 8 ms, and
	// tells less.
	few = 4
	// idsPerState bounds the line of a request to 7 kB: proxies in front of
	// slurmrestd allow 8. 2,000 ids took 24.11 and 26.05 less than 0.3 s.
	idsPerState = 400
	// idsPerRecord is less because accounting takes 0.5 to 3 ms for each.
	idsPerRecord = 200
)

// States asks the controller once: for the caller's own jobs through squeue
// where there is one that talks to the same cluster, else for states alone in
// batches (from v0.0.40), which then lack name and reason, else, on Slurm
// 22.05, one by one. Accounting is asked for what the controller does not know;
// if it cannot answer, those jobs are absent.
func (c *Client) States(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	const op = "list job states"
	d, err := c.agree(ctx, op)
	if err != nil {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	ids = slices.DeleteFunc(ids, func(id slurm.JobID) bool { return id == 0 })
	found, err := c.ctldStates(ctx, d, op, ids)
	if err != nil {
		return nil, err
	}
	if gone := missing(ids, found); len(gone) > 0 {
		found = append(found, c.dbStates(ctx, d, op, gone)...)
	}
	return found, nil
}

// ctldStates is what the controller knows of the ids.
func (c *Client) ctldStates(ctx context.Context, d dialect, op string, ids []slurm.JobID) ([]slurm.Job, error) {
	var found []slurm.Job
	if len(ids) > few && c.o.Mine != nil {
		if mine, err := c.o.Mine(ctx); err == nil {
			found = pick(ids, mine)
			ids = missing(ids, found)
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	if len(ids) > few && d.jobStates() {
		more, err := c.batches(ctx, ids, idsPerState, func(ctx context.Context, some []slurm.JobID) ([]slurm.Job, error) {
			var b wire.JobStates
			err := c.read(ctx, op, "/slurm/%s/jobs/state?"+d.idList("job_id", some), &b)
			return b.Model(), err
		})
		if !notOffered(err) { // 23.11.0 to .4 lack it
			return append(found, more...), err
		}
	}
	more, err := c.batches(ctx, ids, 1, func(ctx context.Context, one []slurm.JobID) ([]slurm.Job, error) { return c.ctldJob(ctx, one[0]) })
	for _, j := range more {
		if !slices.ContainsFunc(found, func(have slurm.Job) bool { return have.ID == j.ID }) {
			found = append(found, j)
		}
	}
	return found, err
}

// dbStates is what accounting knows of the ids, nothing where it cannot answer.
func (c *Client) dbStates(ctx context.Context, d dialect, op string, ids []slurm.JobID) []slurm.Job {
	steps := ""
	if d.skipSteps() {
		steps = "&skip_steps=true"
	}
	found, err := c.batches(ctx, ids, idsPerRecord, func(ctx context.Context, some []slurm.JobID) ([]slurm.Job, error) {
		return c.dbJobs(ctx, op+" in accounting", "/slurmdb/%s/jobs?"+d.idList("step", some)+steps)
	})
	if err != nil {
		return nil
	}
	return found
}

// batches asks for so many ids at a time, a few batches at once.
func (c *Client) batches(ctx context.Context, ids []slurm.JobID, size int, ask func(context.Context, []slurm.JobID) ([]slurm.Job, error)) ([]slurm.Job, error) {
	some := slices.Collect(slices.Chunk(ids, size))
	lists := make([][]slurm.Job, len(some))
	err := parallel(ctx, jobsAtOnce, len(some), func(ctx context.Context, i int) (err error) {
		lists[i], err = ask(ctx, some[i])
		return err
	})
	return slices.Concat(lists...), err
}

// notOffered: the path is unknown to this slurmrestd.
func notOffered(err error) bool {
	var refusal *slurm.Error
	return errors.As(err, &refusal) && refusal.Number == 0 && strings.HasPrefix(refusal.Text, fmt.Sprintf(notOfferedText, ""))
}

// missing are the ids that no job answers to.
func missing(ids []slurm.JobID, jobs []slurm.Job) []slurm.JobID {
	have := map[slurm.JobID]bool{}
	for _, j := range jobs {
		have[j.ID], have[j.HetJob], have[j.ArrayJob] = true, true, true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id slurm.JobID) bool { return have[id] })
}

// pick keeps the jobs that were asked for; ids are sorted.
func pick(ids []slurm.JobID, jobs []slurm.Job) []slurm.Job {
	return slices.DeleteFunc(jobs, func(j slurm.Job) bool {
		for _, id := range []slurm.JobID{j.ID, j.HetJob, j.ArrayJob} {
			if _, asked := slices.BinarySearch(ids, id); asked && id != 0 {
				return false
			}
		}
		return true
	})
}
