package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Separators of squeue's and sacct's records. Neither can be in what tp sends;
// a name that somebody else gave them is cut short.
const (
	separator = "\x1f"
	endOfJob  = "\x1e"
)

// Jobs asks the controller for all ids in one call, and accounting for those
// that it has forgotten (slurm.conf(5) MinJobAge, 300 s by default).
func (c *Client) Jobs(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	return c.find(ctx, "show jobs", ids, c.squeueJobs)
}

// States is Jobs with what one call of squeue prints cheaply.
func (c *Client) States(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	return c.find(ctx, "list job states", ids, c.squeueStates)
}

// squeue asks the controller; args select the jobs.
type squeue func(ctx context.Context, op string, args ...string) ([]slurm.Job, error)

const (
	// idsPerCall keeps one argument of a command below Linux's 128 KiB.
	idsPerCall = 10_000
	// strangers is how many ids are asked for one by one: other users' living
	// jobs, of which accounting knows too little, and all others where it is off.
	strangers = 64
)

// find looks jobs up: with one id squeue asks slurmctld for that job alone; with
// more it would fetch the whole queue of the cluster, unless --me makes
// slurmctld send the caller's only. Of what that misses accounting knows the
// ended jobs; for the others slurmctld is asked one by one.
func (c *Client) find(ctx context.Context, op string, ids []slurm.JobID, ask squeue) ([]slurm.Job, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	ids = slices.DeleteFunc(ids, func(id slurm.JobID) bool { return id == 0 })
	if len(ids) == 0 {
		return nil, nil
	}
	var found []slurm.Job
	if len(ids) > 1 {
		for some := range slices.Chunk(ids, idsPerCall) {
			jobs, err := ask(ctx, op, "--me", "--jobs="+joined(some))
			if err != nil {
				return nil, err
			}
			found = append(found, jobs...)
		}
	} else {
		jobs, err := c.one(ctx, op, ids[0], ask)
		if err != nil {
			return nil, err
		}
		found = jobs
	}
	rest := missing(ids, found)
	if len(rest) == 0 {
		return pick(ids, found), nil
	}
	recorded, _ := c.recorded(ctx, rest) // accounting may be off
	over := slices.DeleteFunc(slices.Clone(recorded), func(j slurm.Job) bool { return !j.State.Ended() })
	found = append(found, recorded...)
	if rest = missing(rest, over); len(ids) == 1 || len(rest) == 0 {
		return pick(ids, found), nil
	}
	if len(rest) > strangers {
		jobs, err := ask(ctx, op, "--jobs="+joined(rest[:min(len(rest), idsPerCall)]))
		return pick(ids, append(found, jobs...)), err
	}
	lists := make([][]slurm.Job, len(rest))
	err := together(ctx, len(rest), func(ctx context.Context, i int) (err error) {
		lists[i], err = c.one(ctx, op, rest[i], ask)
		return err
	})
	return pick(ids, slices.Concat(append(lists, found)...)), err
}

// one asks for a single id; nothing when the controller does not know it.
func (c *Client) one(ctx context.Context, op string, id slurm.JobID, ask squeue) ([]slurm.Job, error) {
	jobs, err := ask(ctx, op, "--jobs="+id.String())
	var refusal *slurm.Error
	if errors.As(err, &refusal) && refusal.Number == wire.ErrInvalidJobID {
		return nil, nil
	}
	return jobs, err
}

func joined(ids []slurm.JobID) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(id.String())
	}
	return b.String()
}

// names are the ids under which a job can be asked for.
func names(j slurm.Job) []slurm.JobID { return []slurm.JobID{j.ID, j.HetJob, j.ArrayJob} }

// missing are the ids that no job answers to; ids are sorted.
func missing(ids []slurm.JobID, jobs []slurm.Job) []slurm.JobID {
	have := map[slurm.JobID]bool{}
	for _, j := range jobs {
		for _, id := range names(j) {
			have[id] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id slurm.JobID) bool { return have[id] })
}

// pick keeps the jobs that were asked for, each once; the controller's word
// comes before accounting's.
func pick(ids []slurm.JobID, jobs []slurm.Job) []slurm.Job {
	jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool {
		return !slices.ContainsFunc(names(j), func(id slurm.JobID) bool {
			_, asked := slices.BinarySearch(ids, id)
			return asked
		})
	})
	slices.SortStableFunc(jobs, func(a, b slurm.Job) int {
		switch {
		case a.FromDB == b.FromDB:
			return int(int64(a.ID) - int64(b.ID))
		case a.FromDB:
			return 1
		}
		return -1
	})
	seen := map[slurm.JobID]bool{}
	return slices.DeleteFunc(jobs, func(j slurm.Job) bool {
		again := seen[j.ID]
		seen[j.ID] = true
		return again
	})
}
