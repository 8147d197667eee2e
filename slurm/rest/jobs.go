package rest

import (
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
	list, err = c.dbJobs(ctx, fmt.Sprintf("show job %s in accounting", id), fmt.Sprintf("/slurmdb/%%s/job/%s", id))
	if errors.Is(err, errNoAccounting) {
		return nil, nil
	}
	return list, err
}

// ctldJob returns nothing for an id that the controller does not know.
func (c *Client) ctldJob(ctx context.Context, id slurm.JobID) ([]slurm.Job, error) {
	var b wire.Jobs
	err := c.read(ctx, fmt.Sprintf("show job %s", id), fmt.Sprintf("/slurm/%%s/job/%s", id), &b)
	var refusal *slurm.Error
	if errors.As(err, &refusal) && refusal.Number == wire.ErrInvalidJobID {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return b.Model(), nil
}

// dbJobs reads jobs of accounting.
func (c *Client) dbJobs(ctx context.Context, op, path string) ([]slurm.Job, error) {
	var b wire.DBJobs
	if err := c.read(ctx, op, path, &b); err != nil {
		return nil, err
	}
	return b.Model(), nil
}

// States is Jobs.
func (c *Client) States(ctx context.Context, ids ...slurm.JobID) ([]slurm.Job, error) {
	return c.Jobs(ctx, ids...)
}
