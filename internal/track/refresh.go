package track

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// Tracker compares the ledger with one cluster.
type Tracker struct {
	Client slurm.Client
	// Cluster is the client's ClusterName. Job ids mean nothing elsewhere: runs
	// of another cluster are left as they are.
	Cluster string
	Ledger  *ledger.Ledger
	User    string
}

// Refresh asks the cluster once for the states of all runs that are not final,
// in detail only for those that ended or of which too little was said, and
// records what changed. A run whose job the cluster no longer knows takes its
// end marker's state, else UNKNOWN: never a guess. Runs are updated in place;
// with an error the others are up to date all the same.
func (t *Tracker) Refresh(ctx context.Context, runs []*ledger.Run) error {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *ledger.Run) bool { return r.JobID() == 0 || !t.tracks(r) })
	states, err := t.ask(ctx, t.Client.States, runs)
	if err != nil {
		return err
	}
	var clear, unclear []*ledger.Run
	for _, r := range runs {
		switch said(r, states[r.JobID()]) {
		case tooLittle:
			unclear = append(unclear, r)
		case enough:
			clear = append(clear, r)
		}
	}
	if err := t.recordAll(clear, states); err != nil {
		return err
	}
	details, err := t.ask(ctx, t.Client.Jobs, unclear)
	if err != nil {
		return err
	}
	return t.recordAll(unclear, details)
}

// writers is how many runs are recorded at once: each that changed waits for
// its disk, and several waits become one.
const writers = 8

func (t *Tracker) recordAll(runs []*ledger.Run, jobs map[slurm.JobID][]slurm.Job) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, r := range runs {
		group.Go(func() error { return t.Record(r, jobs[r.JobID()]) })
	}
	return group.Wait()
}

// ask is the jobs of the runs by the leader's id.
func (t *Tracker) ask(ctx context.Context, ask func(context.Context, ...slurm.JobID) ([]slurm.Job, error), runs []*ledger.Run) (map[slurm.JobID][]slurm.Job, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	ids := make([]slurm.JobID, len(runs))
	for i, r := range runs {
		ids[i] = r.JobID()
	}
	slices.Sort(ids)
	jobs, err := ask(ctx, slices.Compact(ids)...)
	if err != nil {
		return nil, err
	}
	byLeader := make(map[slurm.JobID][]slurm.Job, len(runs))
	for _, j := range jobs {
		byLeader[j.Leader()] = append(byLeader[j.Leader()], j)
	}
	return byLeader, nil
}

// verdict is how much a list of states says about a run.
type verdict int

const (
	enough    verdict = iota // to be recorded
	tooLittle                // details are needed
	nothing                  // it is as it was
)

// said: of jobs that ended, a list of states lacks exit code and restarts;
// where it lacks even names and reasons, only a change is worth a question.
func said(r *ledger.Run, jobs []slurm.Job) verdict {
	if len(jobs) == 0 {
		return enough
	}
	lead := jobs[0]
	for _, j := range jobs {
		if j.HetOffset < lead.HetOffset {
			lead = j
		}
	}
	bare := lead.Name == "" && !lead.FromDB
	switch {
	case lead.FromDB:
		return enough
	case lead.State.Ended():
		return tooLittle
	case bare && table[lead.State] == r.State:
		return nothing
	case bare:
		return tooLittle
	}
	return enough
}

func (t *Tracker) tracks(r *ledger.Run) bool {
	return !r.State.Final() && (r.Cluster == "" || t.Cluster == "" || r.Cluster == t.Cluster)
}

// Record appends a state event when the state, gate or reason of the run changed.
func (t *Tracker) Record(r *ledger.Run, jobs []slurm.Job) error {
	attempt, _ := r.Last()
	var seen Seen
	// Ids are reused: a job of another name is not ours.
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j slurm.Job) bool { return attempt.JobName != "" && !j.Named(j.User, attempt.JobName) })
	if len(jobs) == 0 {
		seen = forgotten(r, attempt)
	} else {
		seen = FromJobs(jobs)
		if end, ok := lastEnd(r, attempt.N); ok && seen.State.Final() {
			seen = refine(seen, end, jobs)
		}
	}
	if seen.State == ledger.Cancelled && seen.Reason == "" && r.Reason == neverSatisfied {
		seen.Reason = r.Reason // accounting may have forgotten it
	}
	if seen.Detail == "" && seen.Reason == r.Reason || seen.Reason == neverSatisfied && r.Reason == "Dependency" {
		seen.Detail = cmp.Or(seen.Detail, r.Detail) // Slurm drops what can never come true
	}
	if seen.State == r.State && seen.Gate == r.Gate && seen.Reason == r.Reason && seen.Detail == r.Detail {
		return nil
	}
	// A short job may be seen for the first time after its end.
	if seen.State.Final() && attempt.Started.IsZero() && len(jobs) > 0 && !jobs[0].Start.IsZero() &&
		(seen.State != ledger.Cancelled || jobs[0].End.After(jobs[0].Start)) { // cancelled in the queue: Slurm sets both alike
		began := ledger.Event{Type: ledger.Changed, At: jobs[0].Start, Attempt: attempt.N, JobID: attempt.JobID, State: ledger.Running}
		if err := t.Ledger.Append(r, began); err != nil {
			return err
		}
	}
	e := ledger.Event{Type: ledger.Changed, Attempt: attempt.N, JobID: attempt.JobID, State: seen.State, Reason: seen.Reason, Gate: seen.Gate, Detail: seen.Detail}
	e.At = happened(seen.State, jobs)
	return t.Ledger.Append(r, e)
}

// forgotten is a run whose job neither controller nor accounting knows.
func forgotten(r *ledger.Run, a ledger.Attempt) Seen {
	if end, ok := lastEnd(r, a.N); ok {
		return FromEnd(end)
	}
	// Accounting may be a moment behind the controller, so a fresh job is not lost.
	if a.State != ledger.Unknown && time.Since(a.Submitted) < 30*time.Second {
		return Seen{State: r.State, Reason: r.Reason, Gate: r.Gate}
	}
	return Seen{State: ledger.Unknown, Reason: "Slurm no longer knows job " + a.JobID.String() + " and it left no end marker"}
}

// refine adds what only the run itself knows: which role failed and where, and
// that a job which ended by itself did so because Slurm had asked it to.
func refine(seen Seen, end ledger.End, jobs []slurm.Job) Seen {
	lead := jobs[0]
	if end.JobID != lead.Leader() || end.Restart < lead.Restarts {
		return seen // the marker of an earlier start
	}
	switch {
	case seen.State == ledger.Failed && lead.State == slurm.Failed && end.State != ledger.Failed && end.State.Final() && end.State != ledger.Succeeded:
		// Its script ended it, because it was asked to stop within its grace time
		// and is not to be requeued, or because Slurm had ended one pool alone.
		return FromEnd(end)
	case seen.State != end.State || end.Message == "" || seen.State == ledger.Succeeded:
		return seen
	}
	seen.Reason = failure(end)
	if seen.State == ledger.Failed && lead.State != slurm.Failed { // NODE_FAIL, OUT_OF_MEMORY
		seen.Reason = string(lead.State) + ": " + seen.Reason
	}
	return seen
}

func failure(e ledger.End) string {
	if e.Node != "" {
		return e.Message + " on " + e.Node
	}
	return e.Message
}

func lastEnd(r *ledger.Run, attempt int) (ledger.End, bool) {
	ends, err := ledger.Ends(r.Dir)
	if err != nil {
		return ledger.End{}, false
	}
	var last ledger.End
	found := false
	for _, e := range ends {
		if e.Attempt == attempt && (!found || e.Restart >= last.Restart) {
			last, found = e, true
		}
	}
	return last, found
}

func happened(s ledger.State, jobs []slurm.Job) time.Time {
	if len(jobs) == 0 {
		return time.Time{}
	}
	switch {
	case s == ledger.Running:
		return jobs[0].Start
	case s.Final():
		return jobs[0].End
	}
	return time.Time{}
}
