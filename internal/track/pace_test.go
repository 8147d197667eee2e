package track

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The times between questions, in whole seconds, with what came of each.
func intervals(p *Pace, now time.Time, n int, came func(i int) (bool, error)) []int {
	var out []int
	for i := range n {
		next := p.Next()
		out = append(out, int(next.Sub(now).Seconds()))
		now = next
		changed, err := came(i)
		p.Asked(now, changed, err)
	}
	return out
}

func TestPace(t *testing.T) {
	start := time.Unix(1750000000, 0)
	down := errors.New("no answer")
	quiet := func(int) (bool, error) { return false, nil }

	p := NewPace(10*time.Second, start)
	for _, s := range intervals(p, start, 5, func(int) (bool, error) { return true, nil }) {
		if s < 10 || s > 11 {
			t.Errorf("%d s while things change; the floor is 10 s", s)
		}
	}
	p = NewPace(10*time.Second, start)
	list := intervals(p, start, 120, quiet)
	for i, s := range list {
		if s < 10 || s > 132 {
			t.Errorf("question %d after %d s", i, s)
		}
	}
	if list[5] > 11 || list[119] < 100 {
		t.Errorf("a long wait is asked about less and less often: %v", list)
	}
	p = NewPace(10*time.Second, start)
	list = intervals(p, start, 7, func(i int) (bool, error) {
		if i < 5 {
			return false, down
		}
		return true, nil
	})
	for i, want := range []int{10, 20, 40, 80, 120, 120, 10} {
		if list[i] < want || float64(list[i]) > 1.1*float64(want) {
			t.Errorf("failures are doubled up to two minutes, then forgotten: %v", list)
			break
		}
	}
	// A floor above two minutes holds too.
	p = NewPace(5*time.Minute, start)
	if list := intervals(p, start, 3, func(int) (bool, error) { return false, down }); list[0] < 300 || list[2] < 300 {
		t.Errorf("%v", list)
	}
}

// A sign is worth three looks, not one every half second for as long as it is there.
func TestASignIsWorthThreeLooks(t *testing.T) {
	start := time.Unix(1750000000, 0)
	p := NewPace(10*time.Second, start)
	p.Sign(start)
	list := intervals(p, start, 5, func(int) (bool, error) { return false, nil })
	if list[0] != 0 || list[1] != 1 || list[2] != 3 || list[3] < 10 || list[4] < 10 {
		t.Errorf("%v", list)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := NewPace(time.Hour, time.Now())
	if err := p.Wait(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	looked := 0
	p = NewPace(time.Hour, time.Now().Add(-time.Second))
	if err := p.Wait(t.Context(), func() bool { looked++; return looked == 1 }); err != nil || looked == 0 {
		t.Errorf("%d looks, %v", looked, err)
	}
}
