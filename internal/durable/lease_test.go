package durable

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLeaseOfKilledProcessIsFreeAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lease")
	cmd := start(t, "hold", dir)
	k := new(Keeper)
	_, err := k.Try(dir)
	var held *HeldError
	if !errors.As(err, &held) || held.Holder.Owner != "child" || held.Holder.Process.PID != cmd.Process.Pid {
		t.Fatalf("while the child lives: %v", err)
	}
	kill(t, cmd)
	l, err := k.Try(dir)
	if err != nil || l.Number() != 2 {
		t.Fatalf("after kill -9: %v, %v", l, err)
	}
}

// foreign turns the holder into one of another host, who cannot be judged by
// its process.
func foreign(t *testing.T, l *Lease) {
	t.Helper()
	l.holder.Process.Boot = "another boot"
	if err := l.write(); err != nil {
		t.Fatal(err)
	}
}

func TestLeaseStaleness(t *testing.T) {
	for _, memory := range []string{"", t.TempDir()} {
		dir := filepath.Join(t.TempDir(), "lease")
		l, err := new(Keeper).Try(dir)
		if err != nil {
			t.Fatal(err)
		}
		foreign(t, l)
		clock := 1000 * time.Second
		k := &Keeper{TTL: time.Minute, Memory: memory, Clock: func() time.Duration { return clock }}
		look := func() *Keeper {
			if memory == "" {
				return k
			}
			return &Keeper{TTL: k.TTL, Memory: memory, Clock: k.Clock} // a new process
		}
		held := func(when string) {
			t.Helper()
			if _, err := look().Try(dir); !errors.Is(err, ErrHeld) {
				t.Fatalf("%s: %v", when, err)
			}
		}
		held("first look, whatever the file's age is")
		clock += 59 * time.Second
		held("before the TTL")
		if err := l.Beat(); err != nil {
			t.Fatal(err)
		}
		clock += 30 * time.Second
		held("a new heartbeat starts the wait again")
		clock -= 2000 * time.Second
		held("an observation from the future is of another boot")
		clock += 60 * time.Second
		l2, err := look().Try(dir)
		if err != nil || l2.Number() != 2 {
			t.Fatalf("after the TTL: %v", err)
		}

		// The former owner wakes up.
		if err := l.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("Check: %v", err)
		}
		if err := l.Beat(); !errors.Is(err, ErrLost) {
			t.Errorf("Beat: %v", err)
		}
		l.Release()
		if err := l2.Check(); err != nil {
			t.Errorf("the new owner: %v", err)
		}
		held("the old owner's release frees nothing")
	}
}

func TestLeaseRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lease")
	first, err := new(Keeper).Try(dir)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		var now *Lease
		var wins atomic.Int32
		var wg sync.WaitGroup
		if err := first.Release(); err != nil {
			t.Fatal(err)
		}
		for range 16 {
			wg.Go(func() {
				l, err := new(Keeper).Try(dir)
				if err == nil {
					wins.Add(1)
					now = l
				} else if !errors.Is(err, ErrHeld) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("round %d: %d owners", round, wins.Load())
		}
		if now.Number() != first.Number()+1 {
			t.Fatalf("number %d after %d", now.Number(), first.Number())
		}
		first = now
	}
	onlyFiles(t, dir, 2)
}

func TestLeaseKeepStopsWhenLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lease")
	k := &Keeper{TTL: 30 * time.Millisecond}
	l, err := k.Acquire(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- k.Keep(ctx, l) }()
	if err := Create(termPath(dir, 2), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("Keep: %v", err)
	}
	if h, ok, err := ReadLease(dir); !ok || err != nil || h.Number != 2 {
		t.Errorf("holder %v, %v, %v", h, ok, err)
	}
}
