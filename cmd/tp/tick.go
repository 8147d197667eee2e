package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/ledger"
)

type tickCmd struct{}

// Run is the one idempotent step that cron calls: it settles what dead
// processes left, adopts scripts given to sbatch by hand, and records states.
func (c *tickCmd) Run(ctx context.Context, a *app) error {
	l, err := a.ledger()
	if err != nil {
		return err
	}
	runs, err := l.List(ledger.Filter{})
	if err != nil {
		return err
	}
	settled, adopted, err := a.settle(ctx, runs)
	if err != nil {
		return err
	}
	if _, err := a.refresh(ctx, runs); err != nil {
		return err
	}
	if err := a.renew(ctx, runs); err != nil {
		return err
	}
	a.sweep()
	open := 0
	for _, r := range runs {
		if !r.State.Final() {
			open++
		}
	}
	if a.cli.JSON {
		return a.printJSON(map[string]int{"runs": len(runs), "open": open, "settled": settled, "adopted": adopted})
	}
	fmt.Fprintf(a.Out, "%d runs, %d open; %d settled, %d adopted\n", len(runs), open, settled, adopted)
	return nil
}

// sweep removes the unfinished files and run directories of processes that were
// killed. Nothing else ever looks at them.
func (a *app) sweep() {
	mine := filepath.Join(a.conf.RunRoot, ledger.Slug(a.me))
	for _, pattern := range []string{mine, mine + "/*", mine + "/.once", a.conf.StateDir, a.conf.StateDir + "/*"} {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			_ = durable.Sweep(dir, sweepAge) // no directory, or gone meanwhile
		}
	}
}

// sweepAge is far above any write, also that of a bundle's list of files.
const sweepAge = 24 * time.Hour

type reindexCmd struct{}

func (c *reindexCmd) Run(a *app) error {
	l, err := a.ledger()
	if err != nil {
		return err
	}
	n, err := l.Reindex()
	if err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(map[string]int{"runs": n})
	}
	fmt.Fprintf(a.Out, "%d runs indexed\n", n)
	return nil
}
