package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Check encodes without sending: an error for what tp or the dialect refuses,
// warnings for what the dialect cannot carry. It belongs in the preview.
func (c *Client) Check(ctx context.Context, r *slurm.Request) (warnings []string, err error) {
	d, err := c.agree(ctx, "submit")
	if err != nil {
		return nil, err
	}
	_, warnings, err = encode(r, d, c.o.Host)
	return warnings, err
}

// Submit queues the request once. It never sends a second time, except after
// an answer that proves that the first was not looked at: a refused token, or
// a 404 for a dialect that the server does not speak.
func (c *Client) Submit(ctx context.Context, r *slurm.Request) (slurm.Submitted, error) {
	for again := true; ; again = false {
		d, err := c.agree(ctx, "submit")
		if err != nil {
			return slurm.Submitted{}, notSent(err)
		}
		body, warnings, err := encode(r, d, c.o.Host)
		if err != nil {
			return slurm.Submitted{}, fmt.Errorf("submit: %w", err)
		}
		if err := c.prove(ctx, "submit"); err != nil {
			return slurm.Submitted{}, err
		}
		a, err := c.doIn(ctx, d, "submit", http.MethodPost, "/slurm/%s/job/submit", body)
		if again && errors.Is(err, errOtherDialect) {
			continue
		}
		if err != nil {
			return slurm.Submitted{}, err
		}
		sub, err := c.queued(a)
		sub.Warnings = slices.Concat(warnings, sub.Warnings)
		return sub, err
	}
}

// notSent marks a failure from before the submission itself.
func notSent(err error) error {
	var u *slurm.Unreachable
	if errors.As(err, &u) {
		u.NotSent = true
	}
	return err
}

// queued reads the answer to a submission.
func (c *Client) queued(a answer) (slurm.Submitted, error) {
	const op = "submit"
	if !a.json {
		return slurm.Submitted{}, c.textual(op, a)
	}
	var b wire.Submission
	if err := wire.Decode(a.body, &b); err != nil {
		return slurm.Submitted{}, &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("answer is not whole JSON: %w", err)}
	}
	message := b.Said()
	if id := b.Queued(); id != 0 {
		sub := slurm.Submitted{ID: id, Warnings: b.Notes()}
		if message != "" {
			sub.Warnings = append(sub.Warnings, message)
		}
		return sub, nil
	}
	err := c.failure(op, a, &b.Envelope)
	var refusal *slurm.Error
	if errors.As(err, &refusal) {
		if message = foreign(message); message != "" && !strings.Contains(refusal.Text, message) {
			refusal.Text = foreign(refusal.Text + ": " + message)
		}
		if refusal.Number == wire.ErrParsing {
			// 22.05.8, tried: gres "shard:2" where the cluster has no shard.
			refusal.Text += "; slurmrestd gives no reason, an unknown GRES name is the usual one"
		}
	}
	return slurm.Submitted{}, err
}
