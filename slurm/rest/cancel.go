package rest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Cancel ends a job as scancel does: SIGTERM, then SIGKILL after KillWait.
func (c *Client) Cancel(ctx context.Context, id slurm.JobID) error {
	op := fmt.Sprintf("cancel job %s", id)
	d, err := c.agree(ctx, op)
	if err != nil {
		return err
	}
	if d.silentCancel() {
		known, err := c.ctldJob(ctx, id)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			return &slurm.Error{Op: op, Number: wire.ErrInvalidJobID, Text: "Invalid job id specified", HTTP: http.StatusNotFound}
		}
	}
	a, err := c.do(ctx, op, http.MethodDelete, fmt.Sprintf("/slurm/%%s/job/%s", id), nil)
	if err != nil {
		return err
	}
	var b wire.Cancellation
	if err := c.understand(op, a, &b); err != nil {
		return err
	}
	if number, words := b.Complaint(); number != 0 {
		return &slurm.Error{Op: op, Number: number, Text: words, HTTP: a.status}
	}
	return nil
}
