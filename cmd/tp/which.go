package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// slurmID is a job's id as squeue shows it: a component or array task is of the
// same run.
var slurmID = regexp.MustCompile(`^([0-9]{1,10})([+_][0-9]+)?$`)

// find is the run that is meant: by its id or first digits, by the id of its
// job, or the newest.
func (a *app) find(ctx context.Context, id string) (*ledger.Run, error) {
	l, err := a.ledger()
	if err != nil {
		return nil, err
	}
	m := slurmID.FindStringSubmatch(id)
	switch {
	case id == "":
		return a.newest(ctx, l)
	case m == nil:
		return l.Find(id)
	}
	n, err := strconv.ParseUint(m[1], 10, 32)
	if err != nil || n == 0 {
		return l.Find(id)
	}
	ofJob, err := a.ofJob(l, slurm.JobID(n))
	if err != nil {
		return nil, err
	}
	if ofJob == nil && m[2] != "" {
		return nil, fault.New(fault.Usage, "no run of yours has job %s", id).WithHint("tp job ls -n 0")
	}
	if ofJob == nil {
		return l.Find(id)
	}
	// The same digits may begin a run's id.
	if m[2] == "" {
		ids, err := l.Begin(id)
		if err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(other ledger.ID) bool { return other == ofJob.ID })
		if len(ids) > 0 {
			return nil, fault.New(fault.Usage, "%s is the job of %s, and the id of %s begins with it", id, ofJob.ID, some(ids)).
				WithHint("%s, or %s+0 for the job", ids[0], id)
		}
	}
	return ofJob, nil
}

// ofJob is the newest run with a job of this id; nil for none. Ids mean nothing
// without their cluster, and are used again there: those of the chosen fleet go
// first, and where only others have one it must be a single cluster.
func (a *app) ofJob(l *ledger.Ledger, id slurm.JobID) (*ledger.Run, error) {
	runs, err := l.List(ledger.Filter{})
	if err != nil {
		return nil, err
	}
	chosen := a.cli.Fleet
	if f, err := a.conf.Fleet(chosen); err == nil {
		chosen = f.Name
	}
	var here, there []*ledger.Run
	for _, r := range runs {
		if !slices.ContainsFunc(r.Attempts, func(t ledger.Attempt) bool { return t.JobID == id }) {
			continue
		}
		if r.Fleet == chosen {
			here = append(here, r)
		} else {
			there = append(there, r)
		}
	}
	switch {
	case len(here) > 0:
		return here[0], nil
	case len(there) == 0, a.cli.Fleet != "":
		return nil, nil
	}
	for _, r := range there[1:] {
		if r.Fleet != there[0].Fleet {
			return nil, fault.New(fault.Usage, "job %s may be that of %s on %s or of %s on %s", id, there[0].ID, there[0].Fleet, r.ID, r.Fleet).
				WithHint("--fleet %s, or the id of the run", there[0].Fleet)
		}
	}
	return there[0], nil
}

// recent is how many runs are looked at for the newest before all are: scripts
// that were rendered and never queued seldom come in such numbers.
const recent = 16

// newest is what every command means that is given no id: the youngest run that
// was queued. One whose script was rendered counts once somebody has given it
// to sbatch.
func (a *app) newest(ctx context.Context, l *ledger.Ledger) (*ledger.Run, error) {
	looked, rendered := 0, ledger.ID("")
	for _, limit := range []int{recent, 0} {
		runs, err := l.List(ledger.Filter{Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, r := range runs[min(looked, len(runs)):] {
			if looked++; looked <= recent && r.State == ledger.NotSubmitted && len(r.Attempts) == 0 {
				fleet := a.cli.Fleet
				if _, err := a.update(ctx, r); err != nil {
					return nil, err
				}
				a.cli.Fleet = fleet
			}
			if r.State != ledger.NotSubmitted || len(r.Attempts) > 0 {
				return r, nil
			}
			rendered = cmp.Or(rendered, r.ID)
		}
		if len(runs) < recent {
			break
		}
	}
	if rendered != "" {
		return nil, fault.New(fault.Usage, "no run was queued yet; %s is only rendered", rendered).WithHint("give the script to sbatch, or tp job status %s", rendered)
	}
	return l.Newest(ledger.Filter{}) // says that there is none
}

// some are ids in one line.
func some(ids []ledger.ID) string {
	const most = 5
	var out []string
	for i, id := range ids {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(ids)-most))
			break
		}
		out = append(out, string(id))
	}
	return strings.Join(out, ", ")
}
