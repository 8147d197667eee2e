package ledger

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm"
)

// Type says what happened. Types of a newer tp are kept and skipped by Replay.
type Type string

// Types of events.
const (
	Created   Type = "created"   // Data is the Header
	Staged    Type = "staged"    // every object is durable
	Rendered  Type = "rendered"  // the script was written out, nothing was queued
	Intent    Type = "intent"    // about to submit: Attempt, Token, JobName
	Submitted Type = "submitted" // JobID
	Refused   Type = "refused"   // there is no job: Message
	Doubt     Type = "doubt"     // the job may exist: Message
	Changed   Type = "state"     // State, Reason, Gate as reported
	Cancel    Type = "cancel"    // somebody asked to cancel
	Note      Type = "note"
)

// Event is one line of events.jsonl.
type Event struct {
	Time time.Time `json:"time"` // when it was written, by the writer's clock
	// At is when it happened by Slurm's clock, where that is known.
	At time.Time `json:"at,omitzero"`
	// Seq is one more than any the writer had read: it orders the files of
	// several hosts without comparing their clocks.
	Seq     uint64          `json:"seq"`
	Type    Type            `json:"type"`
	Attempt int             `json:"attempt,omitempty"` // 0: the newest
	Token   string          `json:"token,omitempty"`
	JobID   slurm.JobID     `json:"job_id,omitempty"`
	JobName string          `json:"job_name,omitempty"`
	State   State           `json:"state,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Gate    string          `json:"gate,omitempty"`
	Detail  string          `json:"detail,omitempty"` // of Reason
	Message string          `json:"message,omitempty"`
	Host    string          `json:"host,omitempty"`
	PID     int             `json:"pid,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// happened is Slurm's time if known, else the writer's.
func (e Event) happened() time.Time {
	if !e.At.IsZero() {
		return e.At
	}
	return e.Time
}

const (
	mainEvents = "events.jsonl"
	// maxEvents bounds one event file: at 300 bytes a line this is 50,000
	// events, a year of one every ten minutes.
	maxEvents = 16 << 20
	// maxLine bounds one event; the header of a run with 1,000 pools fits.
	maxLine = 1 << 20
)

// Append adds an event and brings r up to date with everything that any
// process has added meanwhile. Time, Seq, Host and PID are filled in. After an
// error the event may or may not be on disk.
func (l *Ledger) Append(r *Run, e Event) error {
	events, err := ReadEvents(r.Dir)
	if err != nil {
		return err
	}
	var from string // the host that owns events.jsonl
	for _, have := range events {
		e.Seq = max(e.Seq, have.Seq)
		if have.Type == Created {
			from = have.Host
		}
	}
	e.Seq++
	l.sign(&e)
	if e.Type == "" {
		return errors.New("ledger: an event without a type")
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(line) > maxLine {
		return fmt.Errorf("ledger: event %q has %d bytes, more than %d", e.Type, len(line), maxLine)
	}
	name := mainEvents
	if e.Host != from {
		name = "events." + Slug(e.Host) + ".jsonl"
	}
	if err := durable.Append(filepath.Join(r.Dir, name), line); err != nil {
		return err
	}
	now := Replay(append(events, e))
	now.Dir = r.Dir
	*r = now
	return nil
}

// AppendUnder appends if the lease still is ours, else durable.ErrLost.
func (l *Ledger) AppendUnder(lease *durable.Lease, r *Run, e Event) error {
	if err := lease.Check(); err != nil {
		return err
	}
	return l.Append(r, e)
}

func (l *Ledger) sign(e *Event) {
	if e.Time.IsZero() {
		e.Time = l.opt.Now().UTC()
	}
	e.Host, e.PID = l.opt.Host, os.Getpid()
}

// ReadEvents returns all events of a run in order: within a file by line,
// between files by Seq. Lines that are torn or no JSON are skipped.
func ReadEvents(dir string) ([]Event, error) {
	data, err := durable.Read(filepath.Join(dir, mainEvents), maxEvents)
	if err != nil {
		return nil, err
	}
	events := parseEvents(data)
	names, err := otherEvents(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := durable.Read(filepath.Join(dir, name), maxEvents)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		events = append(events, parseEvents(data)...)
	}
	if len(names) > 0 {
		slices.SortStableFunc(events, func(a, b Event) int {
			return cmp.Compare(a.Seq, b.Seq) // ties: events.jsonl first
		})
	}
	return events, nil
}

// otherEvents names the event files of other hosts, sorted.
func otherEvents(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); n != mainEvents && strings.HasPrefix(n, "events.") && strings.HasSuffix(n, ".jsonl") {
			names = append(names, n)
		}
	}
	return names, nil
}

// parseEvents reads one file. Seq never falls within a file, so that a merge
// keeps its order: two processes of a host may have drawn the same number.
func parseEvents(data []byte) []Event {
	var events []Event
	var last uint64
	for line := range bytes.Lines(data) {
		var e Event
		if json.Unmarshal(line, &e) != nil || e.Type == "" {
			continue
		}
		e.Seq = max(e.Seq, last)
		last = e.Seq
		events = append(events, e)
	}
	return events
}
