package rest

import (
	"context"
	"sync"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Snapshot reads nodes, partitions and reservations at once.
func (c *Client) Snapshot(ctx context.Context) (*slurm.Snapshot, error) {
	if _, err := c.agree(ctx, "take a snapshot"); err != nil {
		return nil, err
	}
	s := &slurm.Snapshot{Taken: c.o.Clock()}
	var nodes wire.Nodes
	var partitions wire.Partitions
	var reservations wire.Reservations
	steps := []func(context.Context) error{
		func(ctx context.Context) (err error) { s.Info, err = c.Info(ctx); return err },
		func(ctx context.Context) error { return c.read(ctx, "list nodes", "/slurm/%s/nodes", &nodes) },
		func(ctx context.Context) error {
			return c.read(ctx, "list partitions", "/slurm/%s/partitions", &partitions)
		},
		func(ctx context.Context) error {
			return c.read(ctx, "list reservations", "/slurm/%s/reservations", &reservations)
		},
	}
	err := parallel(ctx, len(steps), len(steps), func(ctx context.Context, i int) error { return steps[i](ctx) })
	if err != nil {
		return nil, err
	}
	s.Nodes, s.Partitions, s.Reservations = nodes.Model(), partitions.Model(), reservations.Model()
	return s, nil
}

// parallel calls f for 0 … n-1, at most limit at once. The first error stops
// the rest.
func parallel(ctx context.Context, limit, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, max(1, limit))
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
