package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// ErrHeld says that a living owner holds the lease; the error is a *[HeldError].
var ErrHeld = errors.New("lease is held")

// ErrLost says that the lease was taken over; its former owner must stop.
var ErrLost = errors.New("lease was taken over")

// Holder is who holds a lease: the content of one of its files.
type Holder struct {
	Owner    string  `json:"owner"`             // "tp tick", for people
	Host     string  `json:"host"`              // for people
	Process  Process `json:"process"`           // which process of which boot
	Beat     uint64  `json:"beat"`              // raised by every heartbeat
	Released bool    `json:"released,omitzero"` // given back
	Number   uint64  `json:"-"`                 // fencing number, the file's name
}

// HeldError names the holder.
type HeldError struct{ Holder Holder }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s on %s (process %d) is at work", e.Holder.Owner, e.Holder.Host, e.Holder.Process.PID)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lease is the right to act alone. It is a directory of files 1, 2, 3, …: the
// file of the highest number is the present term, its name is the fencing
// number. A take-over creates the next file, which exactly one taker can do,
// so the number only ever rises and a superseded owner can at worst rewrite a
// file that nobody looks at any more.
type Lease struct {
	dir    string
	holder Holder
}

// Number is the fencing number of this term; it is 1 or more.
func (l *Lease) Number() uint64 { return l.holder.Number }

// Beat says that the owner is alive and checks that it still is the owner. It
// must be called more often than the keeper's TTL; a third of it is good.
// After ErrLost nothing may be written any more.
func (l *Lease) Beat() error {
	l.holder.Beat++
	if err := l.write(); err != nil {
		return err
	}
	return l.Check()
}

// Check returns ErrLost when somebody took over. A writer calls it right before
// each write that must not be done twice. On NFS the answer may be as old as
// the client's directory cache unless [Lease.Beat] was just called, whose own
// write makes the client ask the server.
func (l *Lease) Check() error {
	n, err := highest(l.dir)
	if err != nil {
		return err
	}
	if n != l.holder.Number {
		return fmt.Errorf("%w: number %d has become %d", ErrLost, l.holder.Number, n)
	}
	return nil
}

// Release gives the lease back; the next taker need not wait.
func (l *Lease) Release() error {
	l.holder.Released = true
	return l.write()
}

func (l *Lease) write() error {
	data, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	return WriteFile(termPath(l.dir, l.holder.Number), data, 0o600)
}

func termPath(dir string, n uint64) string {
	return filepath.Join(dir, strconv.FormatUint(n, 10))
}

// highest is the number of the present term, 0 when there never was one.
func highest(dir string) (uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var top uint64
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			top = max(top, n)
		}
	}
	return top, nil
}

// readHolder reads one term. An unreadable or empty file (a fallback without
// hard links, cut short) is a holder that never beats.
func readHolder(dir string, n uint64) (Holder, error) {
	data, err := Read(termPath(dir, n), 64<<10)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return Holder{}, err
	}
	var h Holder
	if json.Unmarshal(data, &h) != nil {
		h = Holder{Owner: "unknown", Host: "unknown"}
	}
	h.Number = n
	return h, nil
}

// ReadLease tells who holds a lease now; ok is false when nobody does. It
// judges nothing: the holder may be dead.
func ReadLease(dir string) (h Holder, ok bool, err error) {
	n, err := highest(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && n == 0) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	h, err = readHolder(dir, n)
	return h, err == nil && !h.Released, err
}

// DefaultTTL is how long a heartbeat must stay unchanged before its owner
// counts as dead. It is above the 60 s for which an NFS client may serve old
// attributes (nfs(5), acregmax and acdirmax).
const DefaultTTL = 90 * time.Second
