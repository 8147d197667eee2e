package cli

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// parsers are the JSON dialects that the commands of a release print, the
// newest that package wire knows for each. Up to 23.02 there is none to pin:
// scontrol has no JSON, and squeue's is the whole queue whatever it was asked.
var parsers = []struct {
	from   major
	parser string
}{
	{major{26, 5}, "v0.0.45"}, // to be removed in 28.05
	{major{25, 11}, "v0.0.44"},
	{major{25, 5}, "v0.0.43"},
	{major{24, 11}, "v0.0.42"},
	{major{24, 5}, "v0.0.41"},
	{major{23, 11}, "v0.0.40"},
}

// parser is the value of --json; "" where the commands are asked for text.
func (c *Client) parser(ctx context.Context) (string, error) {
	version, err := c.Version(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.noJSON {
		for _, p := range parsers {
			if !release(version).before(p.from) {
				return p.parser, nil
			}
		}
	}
	return "", nil
}

// errNoJSON says that the commands cannot print JSON after all.
var errNoJSON = errors.New("the commands of Slurm were built without JSON")

// read asks for JSON. errNoJSON makes the caller ask for text.
func (c *Client) read(ctx context.Context, op string, v wire.Answer, name string, args ...string) error {
	call := c.o.Tools.call(name, args...)
	out, err := call.run(ctx)
	if err != nil {
		return &slurm.Unreachable{Op: op, Via: call.path, NotSent: !out.started, Err: err}
	}
	body := out.stdout
	if i := strings.IndexByte(body, '{'); i > 0 { // squeue --clusters prints the name before
		body = body[i:]
	}
	switch {
	case out.code != 0 && buildLacksJSON(out.stderr):
		c.mu.Lock()
		c.noJSON = true
		c.mu.Unlock()
		return errNoJSON
	case out.code != 0:
		return failure(op, call.path, out)
	case strings.TrimSpace(body) == "":
		// squeue says "Invalid job id specified" and ends with 0.
		return failure(op, call.path, out)
	}
	if err := wire.Decode([]byte(body), v); err != nil {
		return &slurm.Unreachable{Op: op, Via: call.path, Err: errors.New("the answer is no JSON: " + err.Error())}
	}
	if v.Empty() && len(v.About().Errors) > 0 && !v.About().Has(wire.ErrEmptyResult) {
		return v.About().Refusal(op, 0)
	}
	return nil
}

// buildLacksJSON: the serializer or the parser is a plugin that a site need
// not have built or installed.
func buildLacksJSON(stderr string) bool {
	lower := strings.ToLower(stderr)
	for _, word := range []string{"json", "serializer", "data_parser"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// Snapshot reads nodes, partitions and reservations at once.
func (c *Client) Snapshot(ctx context.Context) (*slurm.Snapshot, error) {
	parser, err := c.parser(ctx)
	if err != nil {
		return nil, err
	}
	s := &slurm.Snapshot{Taken: c.o.Clock()}
	steps := []func(context.Context) error{
		func(ctx context.Context) (err error) { s.Info, err = c.Info(ctx); return err },
		func(ctx context.Context) (err error) { s.Nodes, err = c.nodes(ctx, parser); return err },
		func(ctx context.Context) (err error) { s.Partitions, err = c.partitions(ctx, parser); return err },
		func(ctx context.Context) (err error) { s.Reservations, err = c.reservations(ctx, parser); return err },
	}
	if err := together(ctx, len(steps), func(ctx context.Context, i int) error { return steps[i](ctx) }); err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Client) nodes(ctx context.Context, parser string) ([]slurm.Node, error) {
	const op = "list nodes"
	if parser != "" {
		var b wire.Nodes
		if err := c.read(ctx, op, &b, "scontrol", "--all", "--json="+parser, "show", "nodes"); !errors.Is(err, errNoJSON) {
			return b.Model(), err
		}
	}
	out, err := c.ask(ctx, op, "scontrol", "--all", "--details", "--oneliner", "show", "nodes")
	return parseNodes(out), err
}

func (c *Client) partitions(ctx context.Context, parser string) ([]slurm.Partition, error) {
	const op = "list partitions"
	if parser != "" {
		var b wire.Partitions
		err := c.read(ctx, op, &b, "scontrol", "--all", "--json="+parser, "show", "partitions")
		if err == nil && parser < "v0.0.45" {
			list := b.Model()
			return list, c.o.Tools.FillDefault(ctx, list)
		}
		if !errors.Is(err, errNoJSON) {
			return b.Model(), err
		}
	}
	out, err := c.ask(ctx, op, "scontrol", "--all", "--oneliner", "show", "partitions")
	return parsePartitions(out), err
}

// FillDefault sets Default of the partitions as scontrol shows it: the JSON of
// v0.0.39 to .44 does not tell.
func (t Tools) FillDefault(ctx context.Context, partitions []slurm.Partition) error {
	out, err := t.call("scontrol", "--all", "--oneliner", "show", "partitions").output(ctx)
	if err != nil {
		return err
	}
	for _, p := range parsePartitions(string(out)) {
		for i := range partitions {
			if partitions[i].Name == p.Name {
				partitions[i].Default = p.Default
			}
		}
	}
	return nil
}

func (c *Client) reservations(ctx context.Context, parser string) ([]slurm.Reservation, error) {
	const op = "list reservations"
	if parser != "" {
		var b wire.Reservations
		if err := c.read(ctx, op, &b, "scontrol", "--all", "--json="+parser, "show", "reservations"); !errors.Is(err, errNoJSON) {
			return b.Model(), err
		}
	}
	out, err := c.ask(ctx, op, "scontrol", "--all", "--oneliner", "show", "reservations")
	return parseReservations(out), err
}

// atOnce bounds commands that run side by side: each is a process and an RPC.
const atOnce = 4

// together calls f for 0 … n-1, a few at once. The first error stops the rest.
func together(ctx context.Context, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
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
