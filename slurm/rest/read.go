package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tuneplane/tp/slurm"
)

// payload is the body of a read.
type payload interface {
	envelopeOf() *envelope
	empty() bool
}

func (e *envelope) envelopeOf() *envelope { return e }

type pingBody struct {
	envelope
	Pings []struct {
		Host       text  `json:"hostname"`
		Ping       text  `json:"ping"`       // v0.0.38
		Pinged     text  `json:"pinged"`     // .39 to .44
		Responding *bool `json:"responding"` // from .42
	} `json:"pings"`
}

func (b *pingBody) empty() bool { return len(b.Pings) == 0 }

// down is the error when no controller answers slurmrestd.
func (b *pingBody) down(via string) error {
	for _, p := range b.Pings {
		if p.Ping == "UP" || p.Pinged == "UP" || p.Responding != nil && *p.Responding {
			return nil
		}
	}
	return &slurm.Unreachable{Op: "ping", Via: via, Err: errors.New("slurmctld does not answer slurmrestd")}
}

type clustersBody struct {
	envelope
	Clusters []struct {
		Name text `json:"name"`
	} `json:"clusters"`
}

func (b *clustersBody) empty() bool { return len(b.Clusters) == 0 }

type nodesBody struct {
	envelope
	Nodes []wireNode `json:"nodes"`
}

func (b *nodesBody) empty() bool { return len(b.Nodes) == 0 }

type partitionsBody struct {
	envelope
	Partitions []wirePartition `json:"partitions"`
}

func (b *partitionsBody) empty() bool { return len(b.Partitions) == 0 }

type reservationsBody struct {
	envelope
	Reservations []wireReservation `json:"reservations"`
}

func (b *reservationsBody) empty() bool { return len(b.Reservations) == 0 }

type jobsBody struct {
	envelope
	Jobs []wireJob `json:"jobs"`
}

func (b *jobsBody) empty() bool { return len(b.Jobs) == 0 }

type dbJobsBody struct {
	envelope
	Jobs []dbJob `json:"jobs"`
}

func (b *dbJobsBody) empty() bool { return len(b.Jobs) == 0 }

// read gets path into v. With a list in hand, errors beside it do not count:
// v0.0.40 and .41 report a missing slurmdbd along with perfectly good jobs.
func (c *Client) read(ctx context.Context, op, path string, v payload) error {
	a, err := c.do(ctx, op, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return c.understand(op, a, v)
}

func (c *Client) understand(op string, a answer, v payload) error {
	if a.status == http.StatusNoContent {
		return nil // 26.05: an empty result
	}
	if !a.json {
		return c.textual(op, a)
	}
	if err := decode(a.body, v); err != nil {
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("answer is not whole JSON: %w", err)}
	}
	env := v.envelopeOf()
	if !v.empty() || env.has(errEmptyResult) {
		return nil
	}
	if len(env.Errors) > 0 || a.status >= 400 {
		return c.failure(op, a, env)
	}
	return nil
}

// textual is the error of an answer that is no JSON: a router, a proxy.
func (c *Client) textual(op string, a answer) error {
	if a.status >= 500 {
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("status %d: %s", a.status, a.text())}
	}
	return &slurm.Error{Op: op, Text: a.text(), HTTP: a.status}
}

// failure tells a refusal by Slurm from slurmrestd's own trouble in reaching
// it; after the latter a submission is in doubt.
func (c *Client) failure(op string, a answer, env *envelope) error {
	refusal := env.refusal(op, a.status)
	if communication(refusal.Number) || a.status >= 500 && refusal.Number <= 0 {
		return &slurm.Unreachable{Op: op, Via: c.wire.via, Err: fmt.Errorf("slurmctld: %s", refusal.Text)}
	}
	return refusal
}

// communication reports error numbers of the RPC layer (slurm_errno.h): system
// errors, 1000s protocol, 1800s controller, 5000s socket, 7000 slurmdbd.
func communication(number int) bool {
	switch {
	case number == errProtocolAuth:
		return false
	case number > 0 && number < 200, number >= 1000 && number <= 1016, number >= 1800 && number < 1900,
		number >= 5000 && number <= 5010, number == errNoDBConnection:
		return true
	}
	return false
}
