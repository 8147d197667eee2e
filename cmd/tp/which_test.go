package main

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm"
)

// Job ids are used again, and every cluster has its own.
func TestSameJobIDOnSeveralClusters(t *testing.T) {
	l, err := ledger.Open(ledger.Options{Roots: []string{t.TempDir()}, User: "ann", Host: "login1"})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]ledger.ID{}
	for _, one := range []struct {
		name, fleet string
		id          slurm.JobID
	}{{"old", "near", 7}, {"reused", "near", 7}, {"far", "far", 7}, {"far8", "far", 8}, {"far9", "far", 9}, {"further9", "further", 9}} {
		r, err := l.Create(ledger.Header{Experiment: "hello", Fleet: one.fleet}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []ledger.Event{{Type: ledger.Intent, Attempt: 1}, {Type: ledger.Submitted, Attempt: 1, JobID: one.id}} {
			if err := l.Append(r, e); err != nil {
				t.Fatal(err)
			}
		}
		made[one.name] = r.ID
	}
	for _, c := range []struct {
		fleet string
		id    slurm.JobID
		want  string // name of the run, or words of the error
	}{{"", 7, "reused"}, {"far", 7, "far"}, {"", 8, "far8"}, {"near", 8, ""}, {"", 9, "--fleet"}, {"further", 9, "further9"}, {"", 10, ""}} {
		a := &app{cli: &cli{Fleet: c.fleet}, conf: &site.Config{DefaultFleet: "near", Fleets: map[string]site.Fleet{"near": {Name: "near"}, "far": {Name: "far"}, "further": {Name: "further"}}}}
		r, err := a.ofJob(l, c.id)
		switch {
		case c.want == "--fleet":
			if err == nil || !strings.Contains(err.Error(), "may be that of") {
				t.Errorf("job %s: %v, %v", c.id, r, err)
			}
		case err != nil:
			t.Errorf("job %s on %q: %v", c.id, c.fleet, err)
		case c.want == "" && r != nil, c.want != "" && (r == nil || r.ID != made[c.want]):
			t.Errorf("job %s on %q is %v, wanted %s", c.id, c.fleet, r, c.want)
		}
	}
}
