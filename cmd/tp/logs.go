package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/run"
	"github.com/tuneplane/tp/internal/track"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/internal/view"
)

type jobLogsCmd struct {
	ID     string   `arg:"" optional:"" help:"Run id or its first digits, or the id of its job; the newest run without it."`
	N      int      `short:"n" default:"2000" help:"Begin with so many of the last lines; 0 for all."`
	Follow bool     `short:"f" negatable:"" default:"true" help:"Follow until the run has ended."`
	Role   []string `placeholder:"ROLE" help:"Only these roles (repeat); job is the batch script's own log."`
}

// logPoll is how often files are looked at; the cluster is asked at the site's
// own pace.
const logPoll = 500 * time.Millisecond

func (c *jobLogsCmd) Run(ctx context.Context, a *app) error {
	if err := a.textOnly("tp job logs"); err != nil {
		return err
	}
	if c.N < 0 {
		return fault.New(fault.Usage, "-n %d: expected how many lines, 0 for all", c.N).WithHint("tp job logs -n 0")
	}
	r, err := a.current(ctx, c.ID)
	if err != nil {
		return err
	}
	if c.ID == "" {
		a.talk("%s %s, the newest run", r.ID, r.Experiment)
	}
	if err := c.check(r); err != nil {
		return err
	}
	f := track.Follower{Dir: filepath.Join(r.Dir, "logs"), Only: c.only()}
	width := 0
	print := func(l track.Line) {
		width = max(width, ui.Width(l.Source))
		fmt.Fprintf(a.Out, "%s %s\n", a.Paint(source(l.Source), ui.Pad(l.Source+":", width+1)), ui.Clean(l.Text))
	}
	if err := f.Skip(c.N, print); err != nil {
		return err
	}
	if !c.Follow || r.State.Final() {
		err := f.Poll(true, print)
		if err == nil && c.Follow {
			a.talk("%s %s", r.ID, view.State(r))
		}
		return err
	}
	said, w := "", a.watch(r)
	err = f.Follow(ctx, logPoll, func() bool {
		w.look(ctx)
		r = w.run
		if r.State == ledger.Queued && said != r.Reason {
			said = r.Reason
			a.talk("%s %s: %s", r.ID, view.State(r), view.Why(r).Sentence)
		}
		return r.State.Final()
	}, print)
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "%s goes on without a reader", r.ID).WithHint("tp job logs %s", r.ID)
	}
	if err != nil {
		return err
	}
	a.talk("%s %s", r.ID, view.State(r))
	return nil
}

// check refuses roles that the run does not have: their logs would be awaited
// for ever.
func (c *jobLogsCmd) check(r *ledger.Run) error {
	if len(c.Role) == 0 {
		return nil
	}
	names := []string{"job"}
	if p, err := run.Plan(r); err == nil {
		for _, role := range p.Fixed.Spec.Roles {
			names = append(names, role.Name)
		}
	}
	for _, p := range r.Pools {
		names = append(names, p.Roles...)
	}
	if files, err := filepath.Glob(filepath.Join(r.Dir, "logs", "*.log")); err == nil {
		for _, f := range files {
			role, _, _ := strings.Cut(track.Source(filepath.Base(f)), "/")
			names = append(names, role)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, asked := range c.Role {
		role, _, _ := strings.Cut(asked, "/")
		if !slices.Contains(names, role) {
			near := cmp.Or(fault.Nearest(role, names), names[0])
			return fault.New(fault.Usage, "%s has no role %q; it has %s", r.ID, asked, strings.Join(names, ", ")).WithHint("tp job logs %s --role %s", r.ID, near)
		}
	}
	return nil
}

func (c *jobLogsCmd) only() func(string) bool {
	if len(c.Role) == 0 {
		return nil
	}
	return func(source string) bool {
		for _, role := range c.Role {
			if source == role || strings.HasPrefix(source, role+"/") {
				return true
			}
		}
		return false
	}
}

// source gives each role its own colour.
func source(name string) ui.Style {
	styles := []ui.Style{ui.Green, ui.Blue, ui.Yellow}
	sum := 0
	role, _, _ := strings.Cut(name, "/")
	if role == "job" {
		return ui.Faint
	}
	for _, r := range role {
		sum += int(r)
	}
	return styles[sum%len(styles)]
}
