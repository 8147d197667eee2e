package track

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pace says when a loop may ask the cluster again. The site's floor holds; a
// wait in which nothing happens, and a cluster that does not answer, are asked
// about less and less often.
//
//	pace := track.NewPace(conf.Poll, time.Now())
//	for !run.State.Final() {
//		err := pace.Wait(ctx, func() bool { return markers changed })
//		changed, err := ask()
//		pace.Asked(time.Now(), changed, err)
//	}
type Pace struct {
	floor   time.Duration
	last    time.Time // of the last question
	changed time.Time // when something was new
	fails   int
	jitter  float64
	early   []time.Time
}

const (
	// slowest is how rarely a loop asks at worst.
	slowest = 2 * time.Minute
	// patience: a change is seen late by at most this part of the time that
	// went by without one.
	patience = 10
	// Loops of many users that began together drift apart by so much.
	drift = 0.1
)

// hints are the early looks that a sign of change is worth: Slurm needs a
// moment after the job's script has written its end marker. They are few, so
// the floor is broken thrice for each sign and no more.
var hints = []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second}

// NewPace begins after a question that was asked now.
func NewPace(floor time.Duration, now time.Time) *Pace {
	return &Pace{floor: floor, last: now, changed: now, jitter: 1 + drift*rand.Float64()}
}

// Next is when the next question may be asked.
func (p *Pace) Next() time.Time {
	interval := p.floor
	if p.fails > 0 {
		interval = p.floor << min(p.fails, 10)
	} else if quiet := p.last.Sub(p.changed) / patience; quiet > interval {
		interval = quiet
	}
	interval = max(p.floor, min(interval, slowest))
	next := p.last.Add(time.Duration(float64(interval) * p.jitter))
	if len(p.early) > 0 && p.early[0].Before(next) {
		return p.early[0]
	}
	return next
}

// Asked notes a question and what came of it.
func (p *Pace) Asked(now time.Time, changed bool, err error) {
	p.last = now
	p.fails++
	if err == nil {
		p.fails = 0
	}
	if changed {
		p.changed = now
	}
	for len(p.early) > 0 && !p.early[0].After(now) {
		p.early = p.early[1:]
	}
}

// Sign says that the cluster will soon have something new.
func (p *Pace) Sign(now time.Time) {
	p.early = nil
	for _, d := range hints {
		p.early = append(p.early, now.Add(d))
	}
}

// Wait returns when the next question is due. Every second it looks for a sign,
// which costs the cluster nothing.
func (p *Pace) Wait(ctx context.Context, sign func() bool) error {
	for {
		if sign() {
			p.Sign(time.Now())
		}
		left := time.Until(p.Next())
		if left <= 0 {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, time.Second)):
		}
	}
}
