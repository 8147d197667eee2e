package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// A request that arrives late makes a second job. Whoever holds the claim is
// the run's; without one it is the recorded job. The other one is cancelled,
// and a run that was never in doubt asks nobody.
func TestSurplus(t *testing.T) {
	for _, c := range []struct {
		name   string
		doubt  bool
		claim  string
		late   slurm.State
		cancel []slurm.JobID
		job    slurm.JobID
	}{
		{"never in doubt", false, "", slurm.Pending, nil, 100},
		{"the late one waits", true, "", slurm.Pending, []slurm.JobID{90}, 100},
		{"the late one has the claim", true, "90\n", slurm.Running, []slurm.JobID{100}, 90},
		{"the recorded one has it", true, "100\n", slurm.Pending, []slurm.JobID{90}, 100},
		{"the late one has ended", true, "100\n", slurm.Failed, nil, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := w.stage()
			q := w.queue()
			r, err := q.Submit(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if c.doubt {
				if err := q.Ledger.Append(r, ledger.Event{Type: ledger.Doubt, Attempt: 1, Message: "dropped"}); err != nil {
					t.Fatal(err)
				}
			}
			w.fake.Put(slurm.Job{ID: 90, Name: "hello." + string(r.ID), User: "ann", State: c.late})
			if c.claim != "" {
				if err := os.WriteFile(filepath.Join(r.Dir, "claims", "1"), []byte(c.claim), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := q.Surplus(t.Context(), r)
			if err != nil || !slices.Equal(got, c.cancel) || r.JobID() != c.job {
				t.Errorf("cancelled %v, job %s (%v); want %v, %s", got, r.JobID(), err, c.cancel, c.job)
			}
			if again, err := q.Surplus(t.Context(), r); err != nil || len(again) != 0 {
				t.Errorf("the second time: %v, %v", again, err)
			}
		})
	}
}
