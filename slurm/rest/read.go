package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// read gets path into v. With a list in hand, errors beside it do not count:
// v0.0.40 and .41 report a missing slurmdbd along with perfectly good jobs.
func (c *Client) read(ctx context.Context, op, path string, v wire.Answer) error {
	a, err := c.do(ctx, op, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return c.understand(op, a, v)
}

func (c *Client) understand(op string, a answer, v wire.Answer) error {
	if a.status == http.StatusNoContent {
		return nil // 26.05: an empty result
	}
	if !a.json {
		return c.textual(op, a)
	}
	if err := wire.Decode(a.body, v); err != nil {
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("answer is not whole JSON: %w", err)}
	}
	env := v.About()
	if !v.Empty() || env.Has(wire.ErrEmptyResult) {
		return nil
	}
	if len(env.Errors) > 0 || a.status >= 400 {
		return c.failure(op, a, env)
	}
	return nil
}

// textual is the error of an answer that is no JSON: a router, a proxy, a
// login page. After a submission only a plain refusal is certain.
func (c *Client) textual(op string, a answer) error {
	switch {
	case a.status < 300:
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("status %d with an answer that is no JSON: %s", a.status, a.text())}
	case a.status < 400:
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: errors.New(a.text())}
	case a.status >= 500, a.status == http.StatusRequestTimeout:
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("status %d: %s", a.status, a.text())}
	}
	return &slurm.Error{Op: op, Text: a.text(), HTTP: a.status}
}

// failure tells a refusal by Slurm from slurmrestd's own trouble in reaching
// it; after the latter a submission is in doubt.
func (c *Client) failure(op string, a answer, env *wire.Envelope) error {
	refusal := env.Refusal(op, a.status)
	refusal.Text = foreign(refusal.Text)
	if communication(refusal.Number) || a.status >= 500 && refusal.Number <= 0 {
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("slurmctld: %s", refusal.Text)}
	}
	return refusal
}

// communication reports error numbers of the RPC layer (slurm_errno.h): system
// errors, 1000s protocol, 1800s controller, 5000s socket, 7000 slurmdbd.
func communication(number int) bool {
	switch {
	case number == wire.ErrProtocolAuth:
		return false
	case number > 0 && number < 200, number >= 1000 && number <= 1016, number >= 1800 && number < 1900,
		number >= 5000 && number <= 5010, number == wire.ErrNoDBConnection:
		return true
	}
	return false
}
