package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/tuneplane/tp/slurm"
)

type cancelBody struct {
	envelope
	Status []struct { // from v0.0.42
		Error maybe[struct {
			Code    num  `json:"code"`
			Text    text `json:"string"`
			Message text `json:"message"`
		}] `json:"error"`
	} `json:"status"`
}

func (b *cancelBody) empty() bool { return true }

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
			return &slurm.Error{Op: op, Number: errInvalidJobID, Text: "Invalid job id specified", HTTP: http.StatusNotFound}
		}
	}
	a, err := c.do(ctx, op, http.MethodDelete, fmt.Sprintf("/slurm/%%s/job/%s", id), nil)
	if err != nil {
		return err
	}
	var b cancelBody
	if err := c.understand(op, a, &b); err != nil {
		return err
	}
	for _, s := range b.Status {
		if e := s.Error.v; e.Code.count() != 0 {
			return &slurm.Error{Op: op, Number: e.Code.count(), Text: string(cmp.Or(e.Message, e.Text)), HTTP: a.status}
		}
	}
	return nil
}
