package durable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Keeper takes leases. Its zero value works.
//
// A dead owner is found in two ways. One on the same boot of the same kernel
// whose process is gone is dead at once. Any other is dead when this observer
// has seen the same heartbeat twice, TTL apart by its own monotonic clock:
// clocks of different hosts are never compared, and file times are not read.
// A process that lives shorter than the TTL, such as a tick from cron, gives
// Memory, where the first look outlives it.
type Keeper struct {
	Owner  string        // for people; default the program's name
	TTL    time.Duration // default DefaultTTL
	Memory string        // directory for observations, private to this user; "" keeps them in this Keeper

	// Clock is a monotonic clock that all processes of this boot share; default
	// CLOCK_MONOTONIC.
	Clock func() time.Duration

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is one look at a holder.
type sighting struct {
	Number uint64        `json:"number"`
	Beat   uint64        `json:"beat"`
	Boot   string        `json:"boot"`
	At     time.Duration `json:"at_ns"` // by Clock, since boot
}

// Try takes the lease now or says who has it (ErrHeld). dir is the lease; its
// parent must exist.
func (k *Keeper) Try(dir string) (*Lease, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	n, err := highest(dir)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		h, err := readHolder(dir, n)
		if err != nil {
			return nil, err
		}
		if !h.Released && !h.Process.Gone() && !k.silent(dir, h) {
			return nil, &HeldError{h}
		}
	}
	l := &Lease{dir: dir, holder: k.self(n + 1)}
	data, err := json.Marshal(l.holder)
	if err != nil {
		return nil, err
	}
	if err := Create(termPath(dir, n+1), data, 0o600); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return nil, overtaken(dir)
	}
	// The term before stays: a reader that has just learnt its number may still
	// want to read it.
	for i := n; i > 1 && i > n-8; i-- {
		os.Remove(termPath(dir, i-1))
	}
	// Between our look and our file whole terms may have come and gone, and the
	// name we used may be one that was swept: only the highest number counts.
	if err := l.Check(); errors.Is(err, ErrLost) {
		return nil, overtaken(dir)
	} else if err != nil {
		return nil, err
	}
	return l, nil
}

// overtaken is ErrHeld with the holder who was faster.
func overtaken(dir string) error {
	h, _, err := ReadLease(dir)
	if err != nil {
		return err
	}
	return &HeldError{h}
}

// Acquire tries until it has the lease or ctx ends; then the error is the last
// *HeldError.
func (k *Keeper) Acquire(ctx context.Context, dir string) (*Lease, error) {
	for {
		l, err := k.Try(dir)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(min(time.Second, k.ttl()/10)):
		}
	}
}

// Keep beats every third of the TTL until ctx ends, and returns nil then. When
// the lease is lost, or no beat could be written for a whole TTL, it returns
// the error at once: the owner must stop.
func (k *Keeper) Keep(ctx context.Context, l *Lease) error {
	last := time.Now()
	tick := time.NewTicker(k.ttl() / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.Beat()
		switch {
		case err == nil:
			last = time.Now()
		case errors.Is(err, ErrLost):
			return err
		case time.Since(last) >= k.ttl():
			return fmt.Errorf("%w: no heartbeat could be written for %v: %v", ErrLost, k.ttl(), err)
		}
	}
}

func (k *Keeper) ttl() time.Duration {
	if k.TTL > 0 {
		return k.TTL
	}
	return DefaultTTL
}

func (k *Keeper) self(n uint64) Holder {
	h := Holder{Owner: k.Owner, Process: self(), Number: n}
	if h.Owner == "" {
		h.Owner = filepath.Base(os.Args[0])
	}
	h.Host, _ = os.Hostname()
	return h
}

// silent notes this look and reports whether an earlier one, at least TTL ago
// in this boot, saw the very same heartbeat.
func (k *Keeper) silent(dir string, h Holder) bool {
	clock := k.Clock
	if clock == nil {
		clock = monotonic
	}
	now := sighting{Number: h.Number, Beat: h.Beat, Boot: bootID(), At: clock()}
	k.mu.Lock()
	defer k.mu.Unlock()
	was, ok := k.recall(dir)
	if ok && was.Number == now.Number && was.Beat == now.Beat && was.Boot == now.Boot && was.At <= now.At {
		return now.At-was.At >= k.ttl()
	}
	k.remember(dir, now)
	return false
}

func (k *Keeper) recall(dir string) (s sighting, ok bool) {
	if k.Memory == "" {
		s, ok = k.seen[dir]
		return s, ok
	}
	data, err := Read(k.memoryPath(dir), 4<<10)
	return s, err == nil && json.Unmarshal(data, &s) == nil
}

// remember is best effort: without it a dead owner is merely found later.
func (k *Keeper) remember(dir string, s sighting) {
	if k.Memory == "" {
		if k.seen == nil {
			k.seen = map[string]sighting{}
		}
		k.seen[dir] = s
		return
	}
	if data, err := json.Marshal(s); err == nil && os.MkdirAll(k.Memory, 0o700) == nil {
		_ = WriteFile(k.memoryPath(dir), data, 0o600)
	}
}

// memoryPath differs by boot, so login nodes that share a state directory do
// not overwrite each other's looks.
func (k *Keeper) memoryPath(dir string) string {
	sum := sha256.Sum256([]byte(bootID() + "\x00" + dir))
	return filepath.Join(k.Memory, "lease-"+hex.EncodeToString(sum[:8])+".json")
}
