package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// jobsAtOnce bounds parallel GETs: each is an RPC to slurmctld.
const jobsAtOnce = 4

// Jobs asks the controller for each id, and accounting for those that it has
// forgotten (slurm.conf(5) MinJobAge, 300 s by default).
func (c *Client) Jobs(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	if _, err := c.agree(ctx, "show jobs"); err != nil {
		return nil, err
	}
	found := make([][]slurm.Job, len(ids))
	err := parallel(ctx, jobsAtOnce, len(ids), func(ctx context.Context, i int) (err error) {
		found[i], err = c.job(ctx, ids[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []slurm.Job
	for _, list := range found {
		for _, j := range list {
			if !slices.ContainsFunc(out, func(have slurm.Job) bool { return have.ID == j.ID }) {
				out = append(out, j)
			}
		}
	}
	return out, nil
}

func (c *Client) job(ctx context.Context, id slurm.JobID) ([]slurm.Job, error) {
	list, err := c.ctldJob(ctx, id)
	if len(list) > 0 || err != nil {
		return list, err
	}
	op := fmt.Sprintf("show job %s in accounting", id)
	list, err = c.dbJobs(ctx, op, fmt.Sprintf("/slurmdb/%%s/job/%s", id))
	if errors.Is(err, errNoAccounting) {
		return nil, nil
	}
	return list, cmp.Or(err, c.about(op, id, list))
}

// about refuses an answer that is about other jobs: something between tp and
// Slurm mixes them up, and the state of a stranger's job would become the run's.
func (c *Client) about(op string, id slurm.JobID, list []slurm.Job) error {
	if len(list) == 0 || slices.ContainsFunc(list, func(j slurm.Job) bool { return j.ID == id || j.HetJob == id || j.ArrayJob == id }) {
		return nil
	}
	return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("the answer is about job %s", list[0].ID)}
}

// ctldJob returns nothing for an id that the controller does not know.
func (c *Client) ctldJob(ctx context.Context, id slurm.JobID) ([]slurm.Job, error) {
	var b wire.Jobs
	op := fmt.Sprintf("show job %s", id)
	err := c.read(ctx, op, fmt.Sprintf("/slurm/%%s/job/%s", id), &b)
	var refusal *slurm.Error
	if errors.As(err, &refusal) && refusal.Number == wire.ErrInvalidJobID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := b.Model()
	return list, c.about(op, id, list)
}

// dbJobs reads jobs of accounting.
func (c *Client) dbJobs(ctx context.Context, op, path string) ([]slurm.Job, error) {
	var b wire.DBJobs
	if err := c.read(ctx, op, path, &b); err != nil {
		return nil, err
	}
	return b.Model(), nil
}
