package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Cancel ends a job as scancel does: SIGTERM, then SIGKILL after KillWait. The
// leader's id ends every component. scancel ends with 0 even for an id that
// nobody has; with --verbose it says so.
func (c *Client) Cancel(ctx context.Context, id slurm.JobID) error {
	op := fmt.Sprintf("cancel job %s", id)
	call := c.o.Tools.call("scancel", "--verbose", id.String())
	out, err := call.run(ctx)
	if err != nil {
		return &slurm.Unreachable{Op: op, Via: call.path, NotSent: !out.started, Err: err}
	}
	for line := range strings.Lines(out.stderr) {
		if _, text, found := strings.Cut(strings.TrimSpace(line), "Kill job error on job id "); found {
			_, text, _ = strings.Cut(text, ": ")
			if numbers[text] == errAlreadyDone {
				return nil
			}
			return failure(op, call.path, outcome{stderr: text, code: out.code})
		}
	}
	if out.code != 0 {
		return failure(op, call.path, out)
	}
	return nil
}

const errAlreadyDone = 2021 // ESLURM_ALREADY_DONE
