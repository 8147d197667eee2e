package rest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/rest"
	"github.com/tuneplane/tp/slurm/slurmtest"
	"github.com/tuneplane/tp/slurm/wire"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// recorded serves one release and dialect.
func recorded(t *testing.T, dir string, answers map[string]string) (*slurmtest.Recorded, *rest.Client) {
	t.Helper()
	server := &slurmtest.Recorded{Dir: dir, Answers: answers}
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	return server, client(t, rest.Options{URL: h.URL, Host: "login"})
}

func client(t *testing.T, o rest.Options) *rest.Client {
	t.Helper()
	o.Clock = func() time.Time { return time.Unix(1796050000, 0) }
	c, err := rest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func corpus(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/v0.0.*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded answers: %v", err)
	}
	return dirs
}

// about is the job that a recorded answer reports.
func about(t *testing.T, dir, name string) slurm.JobID {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name+".resp"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(raw, []byte("\n\n"))
	var live wire.Jobs
	var past wire.DBJobs
	if err := errors.Join(wire.Decode(body, &live), wire.Decode(body, &past)); err != nil {
		t.Fatal(err)
	}
	list := live.Model()
	if strings.HasPrefix(name, "db-") {
		list = past.Model()
	}
	return list[0].Leader()
}

func TestRecordedAnswers(t *testing.T) {
	for _, dir := range corpus(t) {
		t.Run(dir, func(t *testing.T) {
			het, held, forgotten := about(t, dir, "job-get-het-after"), about(t, dir, "job-get-hold"), about(t, dir, "db-job-het")
			_, c := recorded(t, dir, map[string]string{
				"GET /slurm/{d}/job/" + het.String():  "job-get-het-after",
				"GET /slurm/{d}/job/" + held.String(): "job-get-hold",
				"GET /slurm/{d}/job/6":                "job-none",
			})
			_, later := recorded(t, dir, map[string]string{
				"GET /slurm/{d}/job/" + forgotten.String():   "job-none",
				"GET /slurmdb/{d}/job/" + forgotten.String(): "db-job-het",
			})
			snap, err := c.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			jobs := map[string][]slurm.Job{}
			for name, q := range map[string]struct {
				client *rest.Client
				id     slurm.JobID
			}{"het": {c, het}, "held": {c, held}, "accounting": {later, forgotten}, "unknown": {c, 6}} {
				if jobs[name], err = q.client.Jobs(t.Context(), q.id); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			snap.Info.Transport = ""
			got, err := json.MarshalIndent(struct {
				Snapshot *slurm.Snapshot
				Jobs     map[string][]slurm.Job
			}{snap, jobs}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join(dir, "decoded.golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || string(want) != string(got) {
				t.Errorf("%s differs (%v); run with -update and look at the difference", golden, err)
			}
		})
	}
}

// Accounting of 22.05 is slow to ask; what is known is not asked again, unless
// the server was updated since.
func TestKnownInfoSparesAccounting(t *testing.T) {
	for release, questions := range map[string]int{"22.05.8": 0, "22.05.7": 1} {
		server, _ := recorded(t, "testdata/22.05/v0.0.38", nil)
		h := httptest.NewServer(server)
		t.Cleanup(h.Close)
		c := client(t, rest.Options{URL: h.URL, Dialect: "v0.0.38", Known: slurm.Info{Cluster: "lab", Release: release, Account: true}})
		info, err := c.Info(t.Context())
		if err != nil || info.Cluster != "lab" || !info.Account {
			t.Errorf("%+v, %v", info, err)
		}
		if n := len(server.Log()) - 1; n != questions {
			t.Errorf("known %s: %d questions after the ping", release, n)
		}
	}
}

// Every dialect must give the same model of the same cluster.
func TestDialectsAgree(t *testing.T) {
	type model struct {
		Nodes      []slurm.Node
		Partitions []slurm.Partition
	}
	var first string
	for _, dir := range corpus(t) {
		_, c := recorded(t, dir, nil)
		snap, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range snap.Partitions {
			snap.Partitions[i].Default = false // only v0.0.38 and .45 tell
			snap.Partitions[i].MaxNodes = 0
		}
		for i := range snap.Nodes {
			snap.Nodes[i].GRESUsed = nil
			slices.Sort(snap.Nodes[i].Partitions)
		}
		got, _ := json.MarshalIndent(model{snap.Nodes, snap.Partitions}, "", " ")
		if first == "" {
			first = string(got)
		} else if string(got) != first {
			t.Errorf("%s differs:\n%s\nfrom\n%s", dir, got, first)
		}
	}
}

func TestRecordedRefusals(t *testing.T) {
	for _, dir := range corpus(t) {
		for file, want := range map[string]struct {
			number int
			text   string
		}{
			"err-partition": {2000, "Invalid partition name specified"},
			"err-gpus":      {2014, "Requested node configuration is not available"},
		} {
			_, c := recorded(t, dir, map[string]string{"POST /slurm/{d}/job/submit": file})
			sub, err := c.Submit(t.Context(), request())
			var refusal *slurm.Error
			if !errors.As(err, &refusal) || sub.ID != 0 || refusal.Number != want.number || refusal.Text != want.text {
				t.Errorf("%s %s: %+v, %#v", dir, file, sub, err)
			}
		}
		_, c := recorded(t, dir, map[string]string{"POST /slurm/{d}/job/submit": "err-wrongtype"})
		var refusal *slurm.Error
		if _, err := c.Submit(t.Context(), request()); !errors.As(err, &refusal) || refusal.Text == "" {
			t.Errorf("%s: an answer without job_id is %v", dir, err)
		}
		_, c = recorded(t, dir, map[string]string{"POST /slurm/{d}/job/submit": "submit-hold"})
		sub, err := c.Submit(t.Context(), request())
		if err != nil || sub.ID == 0 || len(sub.Warnings) == 0 {
			t.Errorf("%s: a held job is %+v, %v", dir, sub, err)
		}
		_, c = recorded(t, dir, map[string]string{"DELETE /slurm/{d}/job/999999": "job-delete-none", "GET /slurm/{d}/job/999999": "job-none"})
		if err := c.Cancel(t.Context(), 999999); !errors.As(err, &refusal) || refusal.Number != 2017 {
			t.Errorf("%s: cancel of an unknown job is %v", dir, err)
		}
		id := about(t, dir, "job-get-hold")
		_, c = recorded(t, dir, map[string]string{"DELETE /slurm/{d}/job/" + id.String(): "job-delete", "GET /slurm/{d}/job/" + id.String(): "job-get-hold"})
		if err := c.Cancel(t.Context(), id); err != nil {
			t.Errorf("%s: cancel is %v", dir, err)
		}
	}
}

// request is a rich one that every dialect can say; fields_test.go has the rest.
func request() *slurm.Request {
	return &slurm.Request{
		Name: "grpo <1> & \"x\".run-0123456789ab", Comment: "tp:run-0123456789ab",
		Env:     []slurm.EnvVar{{Name: "PATH", Value: "/bin"}, {Name: "X", Value: "a=b\nc 训练"}},
		Script:  "#!/bin/bash\ntrue\n",
		WorkDir: "/home/alice/x y", Output: "/home/alice/%j.out",
		Begin: time.Unix(1796051000, 0), Dependency: "afterok:7", Requeue: true, Hold: true, Nice: 3,
		Signal:   slurm.Signal{Name: "USR1", Before: 300 * time.Second, BatchOnly: true},
		MailType: []string{"END", "FAIL"}, MailUser: "alice@example.org",
		Components: []slurm.Component{
			{Partition: "h200", Account: "research", QOS: "high", Reservation: "r", Constraint: "ib", Licenses: "matlab:1",
				NodeList: []string{"h200-1"}, Exclude: []string{"h200-2", "h200-3"}, Nodes: 2, TasksPerNode: 1, CPUsPerTask: 16,
				Memory: 4096, GRES: []slurm.GRES{{Name: "gpu", Type: "h200", Count: 8}, {Name: "shard", Count: 2}}, TimeLimit: 240, Share: slurm.Exclusive},
			{Partition: "h100", Nodes: 1, TasksPerNode: 8, TimeLimit: slurm.Unlimited, GRES: []slurm.GRES{{Name: "gpu", Count: 4}}},
		},
	}
}
