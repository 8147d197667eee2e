package rest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// lookBack bounds a look-up by user: names carry a run id, so only recent
// jobs matter, and a user's whole history may have a million records.
const lookBack = 30 * 24 * time.Hour

// errNoFilter says that accounting cannot be asked for this very name.
var errNoFilter = errors.New("v0.0.38 cannot ask accounting for a name with commas, quotes or letters beyond ASCII")

// JobsByName merges what squeue --me (Options.Mine) and accounting know.
// Accounting alone may be late for a job just queued: 5 s on 22.05, where
// slurmctld sends records in batches; milliseconds on 24.11 and 26.05.
func (c *Client) JobsByName(ctx context.Context, user, name string) ([]slurm.Job, error) {
	d, err := c.agree(ctx, "look up jobs by name")
	if err != nil {
		return nil, err
	}
	var mine []slurm.Job
	mineErr := slurm.ErrCannotLookUp
	if c.o.Mine != nil {
		mine, mineErr = c.o.Mine(ctx)
		mine = slices.DeleteFunc(mine, func(j slurm.Job) bool { return j.Name != name || j.User != user })
	}
	recorded, dbErr := c.recorded(ctx, d, user, name)
	var ids []slurm.JobID
	for _, j := range slices.Concat(mine, recorded) {
		if !slices.Contains(ids, j.ID) {
			ids = append(ids, j.ID)
		}
	}
	if len(ids) == 0 {
		return nil, cannotTell(mineErr, dbErr)
	}
	jobs, err := c.Jobs(ctx, ids...)
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !j.Named(user, name) })
	for _, j := range mine { // forgotten since squeue saw them
		if !slices.ContainsFunc(jobs, func(have slurm.Job) bool { return have.ID == j.ID }) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// cannotTell decides what finding nothing means. squeue's word is enough.
// Accounting's is enough only where there is no squeue to ask; a squeue that
// failed might have known the job.
func cannotTell(mineErr, dbErr error) error {
	switch {
	case mineErr == nil:
		return nil
	case errors.Is(mineErr, slurm.ErrCannotLookUp):
		if dbErr == nil {
			return nil
		}
		return fmt.Errorf("%w (accounting: %v)", slurm.ErrCannotLookUp, dbErr)
	}
	return fmt.Errorf("%w (%v)", slurm.ErrCannotLookUp, mineErr)
}

// recorded asks accounting.
func (c *Client) recorded(ctx context.Context, d dialect, user, name string) ([]slurm.Job, error) {
	query := url.Values{}
	switch {
	case slurm.FilterableName(name):
		query.Set("job_name", name)
	case d.jobUserFilter():
		// v0.0.40 and .41 refuse a bare number; "uts" is sbatch's --begin syntax.
		query.Set("start_time", fmt.Sprintf("uts%d", c.o.Clock().Add(-lookBack).Unix()))
	default:
		return nil, errNoFilter
	}
	if d.jobUserFilter() {
		query.Set("users", user)
	}
	if d.skipSteps() {
		query.Set("skip_steps", "true")
	}
	// %20, not +, which slurmrestd takes literally.
	encoded := strings.ReplaceAll(query.Encode(), "+", "%20")
	path := "/slurmdb/%s/jobs?" + strings.ReplaceAll(encoded, "%", "%%")
	list, err := c.dbJobs(ctx, "look up jobs by name in accounting", path)
	return slices.DeleteFunc(list, func(j slurm.Job) bool { return !j.Named(user, name) }), err
}
