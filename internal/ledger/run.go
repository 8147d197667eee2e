package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// ID names a run: "run-" and 12 lower-case hex digits, 48 bits. With 24 bits
// 5,000 runs collide in 52 of 100 cases, with 48 in 4 of 100,000,000.
type ID string

// IDPrefix begins every run id.
const IDPrefix = "run-"

// NewID draws an id. Whether it is free is decided by [Ledger.Create].
func NewID() ID { return ID(IDPrefix + randomHex(6)) }

// NewToken draws the secret name of an attempt, 64 bits, by which the job's
// script and tp know each other.
func NewToken() string { return randomHex(8) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Valid reports whether the text is a whole run id.
func (id ID) Valid() bool {
	hexpart, ok := strings.CutPrefix(string(id), IDPrefix)
	return ok && len(hexpart) == 12 && strings.Trim(hexpart, "0123456789abcdef") == ""
}

// State is the state of a run or an attempt. A text of a newer tp is kept.
type State string

// States. Final ones come only from Slurm or from the run's own end marker.
const (
	NotSubmitted State = "CREATED"   // no submission yet
	Accepted     State = "SUBMITTED" // has a job id, not seen in the queue yet
	Queued       State = "QUEUED"    // waiting; Gate says for what
	Running      State = "RUNNING"
	Paused       State = "PAUSED"
	Succeeded    State = "SUCCEEDED"
	Failed       State = "FAILED"
	Timeout      State = "TIMEOUT"
	Preempted    State = "PREEMPTED"
	Cancelled    State = "CANCELLED"
	Unknown      State = "UNKNOWN" // Slurm does not know the job, or nobody can be asked
)

// Final reports whether nothing more is expected of the attempt. A requeue may
// still bring it back to QUEUED.
func (s State) Final() bool {
	switch s {
	case Succeeded, Failed, Timeout, Preempted, Cancelled:
		return true
	}
	return false
}

// Header is what is fixed when a run is created.
type Header struct {
	ID           ID          `json:"id"`
	Dir          string      `json:"-"` // where it was found; a moved run root moves it
	User         string      `json:"user"`
	Experiment   string      `json:"experiment"`
	Project      string      `json:"project,omitempty"`
	Name         string      `json:"name"`
	Recipe       string      `json:"recipe,omitempty"`
	Fleet        string      `json:"fleet,omitempty"`
	Cluster      string      `json:"cluster,omitempty"` // ClusterName; job ids mean nothing without it
	PlanDigest   string      `json:"plan_digest,omitempty"`
	BundleDigest string      `json:"bundle_digest,omitempty"`
	Tags         []string    `json:"tags,omitempty"`
	Parent       string      `json:"parent,omitempty"` // the sweep or pipeline it belongs to
	Created      time.Time   `json:"created"`
	GPUs         int         `json:"gpus"`
	Pools        []spec.Pool `json:"pools,omitempty"`
}

// JobName is "<experiment>.<run id>": accounting always keeps the name, so the
// run can be found by it. At most MaxSlug + 17 bytes, below the 200 that
// slurm.Request allows.
func (h Header) JobName() string { return Slug(h.Experiment) + "." + string(h.ID) }

// Run is a header and what became of it.
type Run struct {
	Header
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitempty"` // foreign text; neutralise before showing
	Gate     string    `json:"gate,omitempty"`   // why it waits
	Detail   string    `json:"detail,omitempty"` // of Reason: Slurm's dependency, or when it may begin (RFC 3339)
	Attempts []Attempt `json:"attempts,omitempty"`
	// CancelAsked is when somebody asked to cancel; zero when nobody did.
	CancelAsked time.Time `json:"cancel_asked,omitzero"`
	Updated     time.Time `json:"updated,omitzero"` // time of the last event
	Seq         uint64    `json:"seq"`              // of the last event
}

// Outcome is what came of the intent to submit.
type Outcome string

// Outcomes of a submission.
const (
	Unanswered Outcome = ""          // intent on disk, nothing after it: the process died or is at it
	InDoubt    Outcome = "doubt"     // no answer, or one that says neither: the job may exist
	WasQueued  Outcome = "submitted" // a job id is known
	WasDenied  Outcome = "refused"   // there is no job
)

// Attempt is one submission of a run.
type Attempt struct {
	N         int         `json:"n"` // from 1
	Token     string      `json:"token,omitempty"`
	JobID     slurm.JobID `json:"job_id,omitempty"`
	JobName   string      `json:"job_name,omitempty"`
	Outcome   Outcome     `json:"outcome,omitempty"`
	State     State       `json:"state,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Intended  time.Time   `json:"intended,omitzero"`  // before the request was sent
	Doubted   time.Time   `json:"doubted,omitzero"`   // when its answer was given up
	Submitted time.Time   `json:"submitted,omitzero"` // after the answer
	Started   time.Time   `json:"started,omitzero"`   // first seen RUNNING
	Ended     time.Time   `json:"ended,omitzero"`     // zero again after a requeue
}

// Unsettled returns the last attempt if nobody knows whether its job exists:
// an intent without outcome, or one in doubt. Before it is settled nothing may
// be submitted again.
func (r *Run) Unsettled() (Attempt, bool) {
	if a, ok := r.Last(); ok && (a.Outcome == Unanswered || a.Outcome == InDoubt) {
		return a, true
	}
	return Attempt{}, false
}

// Last is the newest attempt; ok is false when there is none.
func (r *Run) Last() (a Attempt, ok bool) {
	if len(r.Attempts) == 0 {
		return Attempt{}, false
	}
	return r.Attempts[len(r.Attempts)-1], true
}

// JobID is the job of the newest attempt, 0 when there is none.
func (r *Run) JobID() slurm.JobID {
	a, _ := r.Last()
	return a.JobID
}
