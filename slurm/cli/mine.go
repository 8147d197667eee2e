package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/tuneplane/tp/slurm"
)

// Mine lists the caller's jobs that slurmctld remembers, ended ones included,
// as far as squeue tells. Both --me and the state filter are applied by the
// controller, not here.
func (t Tools) Mine(ctx context.Context) ([]slurm.Job, error) {
	return New(Options{Tools: t}).squeueStates(ctx, "list own jobs", "--me")
}

// JobsByName merges what squeue and accounting know of the user's jobs with
// exactly this name.
func (c *Client) JobsByName(ctx context.Context, user, name string) ([]slurm.Job, error) {
	queued, queueErr := c.squeueStates(ctx, "look up jobs by name", "--user="+user)
	queued = slices.DeleteFunc(queued, func(j slurm.Job) bool { return j.Name != name })
	recorded, dbErr := c.recordedByName(ctx, user, name)
	if queueErr != nil && dbErr != nil {
		return nil, fmt.Errorf("%w (%v; %v)", slurm.ErrCannotLookUp, queueErr, dbErr)
	}
	if queueErr != nil && len(recorded) == 0 {
		// A controller that is down may hold what accounting has not heard of.
		return nil, fmt.Errorf("%w (%v)", slurm.ErrCannotLookUp, queueErr)
	}
	var ids []slurm.JobID
	for _, j := range slices.Concat(queued, recorded) {
		ids = append(ids, j.ID)
	}
	if queueErr != nil {
		return recorded, nil
	}
	jobs, err := c.Jobs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !j.Named(user, name) })
	for _, j := range queued { // forgotten since squeue saw them
		if !slices.ContainsFunc(jobs, func(have slurm.Job) bool { return have.ID == j.ID }) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}
