package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// A round over many runs is a handful of questions: none for each job where
// squeue is, and where it is not, one for all of them from Slurm 23.11 on.
func TestARoundOverManyRunsIsAHandfulOfQuestions(t *testing.T) {
	const total, active = 300, 40
	each(t, func(w *world) {
		p := w.proxyTo("tcp", w.jwtAddress())
		scontrol := strings.TrimSpace(w.must("bash", "-c", "command -v scontrol"))
		w.edit(`(?m)^token_command = \["scontrol", "token"\]$`, fmt.Sprintf("token_command = [%q, \"token\"]", scontrol))
		cluster := slurm.ParseConfig(w.must("scontrol", "show", "config")).Get("ClusterName")
		name := func(i int) string { return fmt.Sprintf("rounds.run-%012x", i) }
		held := strings.Fields(w.must("bash", "-c", fmt.Sprintf(
			`for i in $(seq 0 %d); do sbatch --parsable --hold --time=1 --output=/dev/null --job-name="$(printf 'rounds.run-%%012x' $i)" --wrap true || exit; done`, active-1)))
		if len(held) != active {
			w.Fatalf("%d jobs were queued", len(held))
		}
		for i := range total {
			id := slurm.JobID(1 + i)
			states := []ledger.State{ledger.Running, ledger.Succeeded}
			if i < active {
				_, err := fmt.Sscan(held[i], &id)
				w.ok(err)
				states = nil
			}
			w.record(ledger.Header{ID: ledger.ID(name(i)[len("rounds."):]), User: "alice", Experiment: "rounds", Fleet: "faulty", Cluster: cluster,
				Created: time.Now().Add(-time.Duration(i) * time.Minute)}, name(i), id, states)
		}

		queued := func(what string, r result) {
			w.Helper()
			if n := strings.Count(r.out, "QUEUED"); r.code != 0 || n != active {
				w.Errorf("%s: exit code %d, %d of %d runs are queued\n%s%s", what, r.code, n, active, r.out, r.err)
			}
		}
		w.tp("fleet", "show") // the dialect is found out once and remembered
		p.requests("")
		queued("tp status", w.tp("status"))
		if all, single := p.requests("/job/"); single != 0 || all > 10 {
			w.Errorf("tp status asked %d times, %d of them for one job", all, single)
		}
		queued("tp job ls", w.tp("job", "ls", "-n", "100"))
		if all, single := p.requests("/job/"); single != 0 || all > 6 {
			w.Errorf("tp job ls asked %d times, %d of them for one job", all, single)
		}

		// Without squeue. The token still comes from the site's command.
		queued("without squeue", w.tpWith([]string{"PATH=/nonexistent"}, "job", "ls", "-n", "100"))
		all, single := p.requests("/job/")
		if w.release == "22.05" { // it has nothing but single questions
			if single != active {
				w.Errorf("%d questions for one job, %d jobs", single, active)
			}
		} else if single != 0 || all > 6 {
			w.Errorf("without squeue tp job ls asked %d times, %d of them for one job", all, single)
		}
	})
}

// record makes a run directory as tp leaves it.
func (w *world) record(h ledger.Header, job string, id slurm.JobID, states []ledger.State) {
	w.Helper()
	data, err := json.Marshal(h)
	w.ok(err)
	events := []ledger.Event{{Type: ledger.Created, Data: data}, {Type: ledger.Intent, Attempt: 1, JobName: job}, {Type: ledger.Submitted, Attempt: 1, JobID: id, JobName: job}}
	for _, s := range states {
		events = append(events, ledger.Event{Type: ledger.Changed, Attempt: 1, JobID: id, State: s})
	}
	var text strings.Builder
	for i, e := range events {
		e.Time, e.Seq, e.Host = h.Created, uint64(i+1), "elsewhere"
		line, err := json.Marshal(e)
		w.ok(err)
		text.Write(append(line, '\n'))
	}
	dir := ledger.Dir(w.dir+"/runs", h.User, h.Experiment, h.ID)
	w.mkdir(dir)
	w.mkdir(filepath.Join(dir, "ends"))
	path := filepath.Join(dir, "events.jsonl")
	w.ok(os.WriteFile(path, []byte(text.String()), 0o600))
	w.ok(os.Chown(path, w.uid, w.gid))
}
