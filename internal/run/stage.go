// Package run does what was approved: it stages a plan, queues it exactly
// once, finds out what became of a submission that was cut off, and cancels.
//
//	staged, err := run.Stage(ctx, approved, objects, ledger)
//	run, err := queue.Submit(ctx, staged)
//
// Every side effect has its intent on disk before it and its outcome after it,
// so a process may be killed anywhere: the next one finds the truth.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
)

// Staged is a run whose objects and directory are durable. Only Stage and
// Resume make one.
type Staged struct {
	plan *plan.Plan
	run  *ledger.Run
	// Existed says that somebody confirmed this plan before: the run is theirs.
	Existed bool
}

// Run is the staged run.
func (s Staged) Run() *ledger.Run { return s.run }

// Objects makes the bundle durable and returns the files that the node needs in
// the run directory to fetch it ("bundle.sha256", …).
type Objects func(context.Context) (map[string][]byte, error)

// Stage makes the objects durable, then the run directory, in one rename. A
// plan that was confirmed before gives the run of that time.
func Stage(ctx context.Context, a plan.Approved, objects Objects, l *ledger.Ledger) (Staged, error) {
	p := a.Plan()
	if existing, err := l.Load(p.Fixed.RunDir); err == nil && existing.PlanDigest == p.Digest {
		return Staged{plan: p, run: existing, Existed: true}, nil
	}
	files, err := objects(ctx)
	if err != nil {
		return Staged{}, err
	}
	files = maps.Clone(files)
	document, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return Staged{}, err
	}
	provenance, err := json.MarshalIndent(p.Observed.Provenance, "", "  ")
	if err != nil {
		return Staged{}, err
	}
	files["plan.json"] = append(document, '\n')
	files["provenance.json"] = append(provenance, '\n')
	files["script.sh"] = []byte(p.Fixed.Request.Script)
	r, err := l.Create(header(p), files)
	if errors.Is(err, durable.ErrExist) {
		r, err = l.Load(p.Fixed.RunDir)
		if err != nil {
			return Staged{}, err
		}
		if r.PlanDigest != p.Digest {
			return Staged{}, fmt.Errorf("run directory %s belongs to another plan, %.12s", p.Fixed.RunDir, r.PlanDigest)
		}
		return Staged{plan: p, run: r, Existed: true}, nil
	}
	if err != nil {
		return Staged{}, err
	}
	if r.Dir != p.Fixed.RunDir {
		return Staged{}, fmt.Errorf("the run directory is %s, not %s as shown", r.Dir, p.Fixed.RunDir)
	}
	return Staged{plan: p, run: r}, l.Append(r, ledger.Event{Type: ledger.Staged})
}

// Resume is the staged form of a run that is on disk already.
func Resume(l *ledger.Ledger, r *ledger.Run) (Staged, error) {
	p, err := Plan(r)
	if err != nil {
		return Staged{}, err
	}
	return Staged{plan: p, run: r, Existed: true}, nil
}

// Plan reads the plan that a run was made from.
func Plan(r *ledger.Run) (*plan.Plan, error) {
	path := filepath.Join(r.Dir, "plan.json")
	data, err := durable.Read(path, 64<<20)
	if err != nil {
		return nil, err
	}
	p := new(plan.Plan)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func header(p *plan.Plan) ledger.Header {
	f := p.Fixed
	return ledger.Header{
		ID: ledger.ID(f.RunID), User: f.User, Experiment: f.Spec.Experiment, Project: f.Spec.Project, Name: f.Spec.Name,
		Recipe: f.Spec.Recipe.Name, Fleet: f.Fleet, Cluster: f.Cluster, PlanDigest: p.Digest, BundleDigest: f.Bundle.Digest,
		Tags: f.Spec.Tags, GPUs: p.GPUs(), Pools: f.Pools,
	}
}

// Rendered records that a run's script was printed: it is not queued by tp, and
// the job that sbatch makes of it is found by its name.
func Rendered(l *ledger.Ledger, s Staged) error {
	return l.Append(s.run, ledger.Event{Type: ledger.Rendered, Attempt: 1, JobName: s.plan.Fixed.Request.Name})
}
