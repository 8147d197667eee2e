package slurm

import (
	"errors"
	"fmt"
)

// ErrCannotLookUp says that neither the controller nor accounting can be asked
// for jobs by name. It is not an answer of "none".
var ErrCannotLookUp = errors.New("jobs cannot be looked up by name: neither squeue nor accounting is available")

// Error is a refusal by the cluster.
type Error struct {
	Op     string // "submit", "cancel job 12", …
	Number int    // Slurm error number (slurm_errno.h); 0 when none was given
	Text   string // Slurm's own words, and the site's job_submit message
	HTTP   int    // status, 0 for the command line
}

func (e *Error) Error() string {
	if e.Number != 0 {
		return fmt.Sprintf("%s: %s (Slurm error %d)", e.Op, e.Text, e.Number)
	}
	return fmt.Sprintf("%s: %s", e.Op, e.Text)
}

// Unreachable says that no answer came: refused, timed out, cut off. After a
// submission the job may exist.
type Unreachable struct {
	Op  string
	Via string // transport that was tried
	// NotSent is true when no byte of the request left: then a submission
	// certainly queued nothing. Otherwise it may have.
	NotSent bool
	Err     error
}

func (e *Unreachable) Error() string {
	return fmt.Sprintf("%s: no answer from %s: %v", e.Op, e.Via, e.Err)
}
func (e *Unreachable) Unwrap() error { return e.Err }

// AuthError says that the token is missing, stale or refused: nothing was
// done. Where that is only likely, as after a submission to Slurm 22.05, it
// comes wrapped in an [Unreachable].
type AuthError struct {
	Op   string
	Text string
	// Missing says that there was no token to send: its file or command failed.
	Missing bool
}

func (e *AuthError) Error() string {
	if e.Missing {
		return fmt.Sprintf("%s: no token: %s", e.Op, e.Text)
	}
	return fmt.Sprintf("%s: token expired or invalid: %s", e.Op, e.Text)
}
