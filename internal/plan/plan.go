// Package plan turns what is wanted (a spec) and what a cluster says (a
// snapshot) into a plan: the document that is shown, confirmed and run.
//
//	p, err := plan.Resolve(input)         // pure: no side effect
//	approved, err := plan.Confirm(p, now) // the only way to an Approved
//
// A plan has a fixed part, whose digest names it and which runs exactly as
// shown, and an observed part, which may change without changing the digest.
package plan

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Plan is an issued document.
type Plan struct {
	Version  int       `json:"version"` // 1
	Issued   time.Time `json:"issued"`
	Expires  time.Time `json:"expires"`
	Digest   string    `json:"digest"` // of Fixed, 64 hex digits
	Fixed    Fixed     `json:"fixed"`
	Observed Observed  `json:"observed"`
}

// Fixed is what was shown and what runs.
type Fixed struct {
	RunID   string         `json:"run_id"` // new for every plan: it makes two plans of the same job two jobs
	RunDir  string         `json:"run_dir"`
	User    string         `json:"user"`
	Fleet   string         `json:"fleet"`
	Cluster string         `json:"cluster"`
	Spec    *spec.Spec     `json:"spec"`
	Runtime spec.Runtime   `json:"runtime,omitzero"` // what the roles run in
	Pools   []spec.Pool    `json:"pools"`
	Request *slurm.Request `json:"request"` // with the batch script
	Bundle  Bundle         `json:"bundle"`
}

// Bundle is the code that will be shipped.
type Bundle struct {
	Digest   string `json:"digest"`
	Files    int    `json:"files"`
	Bytes    int64  `json:"bytes"`
	Segments int    `json:"segments"`
	Store    string `json:"store"` // as shown: "s3://bucket/prefix at http://…"
}

// Observed is what was true when the plan was made.
type Observed struct {
	Transport  string   `json:"transport"`
	OtherWays  []string `json:"other_ways,omitempty"`  // to the cluster, and why they are not used
	AbsentWays []string `json:"absent_ways,omitempty"` // those that nobody has set up here
	Release    string   `json:"release"`
	// DefaultAccount is that of a pool without one, where it is known. It is no
	// part of what is asked for.
	DefaultAccount string          `json:"default_account,omitempty"`
	Verdicts       []gates.Verdict `json:"verdicts"`
	Warnings       []string        `json:"warnings,omitempty"`
	Notes          []string        `json:"notes,omitempty"` // worth knowing, and nothing to worry about
	NewBytes       int64           `json:"new_bytes"`       // to send; uncompressed
	Provenance     spec.Provenance `json:"provenance"`
	Settings       []Setting       `json:"settings,omitempty"`
}

// Setting is one effective value and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// NewRunID draws the id of a run: "run-" and 12 hex digits. 48 bits collide
// with one chance in a million at 24,000 runs; the run directory's exclusive
// creation catches even that.
func NewRunID() string {
	var b [6]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return "run-" + hex.EncodeToString(b[:])
}

// digest names the fixed part. Go writes struct fields in order and map keys
// sorted, so equal values give equal text.
func (f *Fixed) digest() string {
	text, err := json.Marshal(f)
	if err != nil {
		panic("a plan's fixed part is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Short is the digest as people type it.
func (p *Plan) Short() string { return p.Digest[:12] }

// GPUs is the total over all pools.
func (p *Plan) GPUs() int {
	total := 0
	for _, pool := range p.Fixed.Pools {
		total += pool.GPUs()
	}
	return total
}

// JobName carries the run id, by which a job is found again after any doubt.
func (f *Fixed) JobName() string { return f.Request.Name }

// Approved is a plan that somebody said yes to. Only Confirm makes one.
type Approved struct{ plan *Plan }

// Plan is the approved plan.
func (a Approved) Plan() *Plan { return a.plan }

// Confirm is the yes. It refuses a plan that a gate blocks, that has expired,
// or whose digest does not fit its content.
func Confirm(p *Plan, now time.Time) (Approved, error) {
	if got := p.Fixed.digest(); got != p.Digest {
		return Approved{}, fault.New(fault.Changed, "plan %s is not what it says: its content has digest %s", p.Short(), got[:12]).WithHint("tp plan")
	}
	if now.After(p.Expires) {
		return Approved{}, fault.New(fault.Changed, "plan %s expired at %s", p.Short(), p.Expires.Format(time.DateTime)).WithHint("tp plan")
	}
	for _, v := range p.Observed.Verdicts {
		if v.Level == gates.Block {
			return Approved{}, Blocked(v)
		}
	}
	return Approved{plan: p}, nil
}

// Blocked is a verdict as an error.
func Blocked(v gates.Verdict) error {
	pool := ""
	if v.Pool != "" {
		pool = "pool " + v.Pool + " "
	}
	e := fault.Gate(v.Code, "%sasks for %s, but %s", pool, v.Asked, v.Found)
	if v.Remedy != "" {
		e = e.WithHint("%s", v.Remedy)
	}
	return e
}
