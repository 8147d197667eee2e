package main

import (
	"context"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/track"
)

// watch follows one run at the site's pace. Every loop that asks a cluster again
// and again goes through it.
type watch struct {
	a    *app
	run  *ledger.Run
	pace *track.Pace
	ends int // end markers that were seen
}

// watch begins after the run was brought up to date.
func (a *app) watch(r *ledger.Run) *watch {
	w := &watch{a: a, run: r, pace: track.NewPace(a.conf.Poll, a.now())}
	if w.ends = w.markers(); w.ends > 0 {
		w.pace.Sign(a.now()) // perhaps of this very start
	}
	return w
}

func (w *watch) markers() int {
	ends, err := ledger.Ends(w.run.Dir)
	if err != nil {
		return w.ends
	}
	return len(ends)
}

// sign reports a new end marker, once: the cluster will soon know as well.
func (w *watch) sign() bool {
	n := w.markers()
	defer func() { w.ends = n }()
	return n > w.ends
}

// wait asks again when it is time.
func (w *watch) wait(ctx context.Context) error {
	if err := w.pace.Wait(ctx, w.sign); err != nil {
		return err
	}
	return w.ask(ctx)
}

// look asks again if it is time.
func (w *watch) look(ctx context.Context) {
	now := w.a.now()
	if w.sign() {
		w.pace.Sign(now)
	}
	if !now.Before(w.pace.Next()) {
		_ = w.ask(ctx) // said; the next look tries again
	}
}

func (w *watch) ask(ctx context.Context) error {
	r, err := w.a.record.Load(w.run.Dir) // others may have added events
	if err != nil {
		w.pace.Asked(w.a.now(), false, err)
		return err
	}
	seq := w.run.Seq
	w.run = r
	silence, err := w.a.update(ctx, r)
	if silence == nil {
		silence = err
	}
	w.pace.Asked(w.a.now(), r.Seq != seq, silence)
	return err
}
