package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// recorded lists the directories of answers of one release in one dialect, as
// the commands print them. +complex is the flag with which numbers that may be
// unset come bare, as null or as "Infinity".
func recorded(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/v0.0.*")
	if err != nil || len(dirs) < 9 {
		t.Fatalf("%d recorded dialects, %v", len(dirs), err)
	}
	return dirs
}

func load(t testing.TB, path string, v any) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err == nil {
		err = Decode(body, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// The same queue, asked at the same moment, is the same in every dialect.
func TestDialectsAgreeOnJobs(t *testing.T) {
	byRelease := map[string]string{}
	for _, dir := range recorded(t) {
		old := strings.HasSuffix(dir, "v0.0.38") // null for no limit, as for not set
		var b Jobs
		load(t, filepath.Join(dir, "jobs.json"), &b)
		jobs := b.Model()
		if len(jobs) != 4 {
			t.Fatalf("%s: %d jobs", dir, len(jobs))
		}
		for i := range jobs {
			j := &jobs[i]
			switch {
			case j.Name == "array" && (j.ArrayJob != j.ID || j.ArrayTask != "0-5%2" || j.State != slurm.Pending || j.Dependency == ""):
				t.Errorf("%s: array is %+v", dir, j)
			case j.Name == "ran" && (j.ArrayJob == 0 || j.ArrayTask != "3" && j.ArrayTask != "4" || j.State != slurm.Failed || j.Reason != "NonZeroExitCode" || j.ExitCode != 3 || j.End.IsZero()):
				t.Errorf("%s: array task is %+v", dir, j)
			case j.Name == "two" && (j.HetJob == 0 || j.HetOffset != 1 || j.ArrayJob != 0 || j.ArrayTask != "" || j.Excluded != "h100-2" || !old && j.TimeLimit != slurm.Unlimited):
				t.Errorf("%s: component is %+v", dir, j)
			case j.State == slurm.Pending && !j.End.IsZero():
				t.Errorf("%s: end %s", dir, j.End)
			case strings.HasPrefix(j.Name, "it's") && (j.Name != `it's a "test" | 训练` || j.Nodes != 2 || j.Memory != 600 || j.Tasks != 2 || slurm.Count(j.Total, "gpu", "h200") != 4 || j.Reason != "JobHeldUser"):
				t.Errorf("%s: leader is %+v", dir, j)
			}
			j.Output, j.Description = "", ""
			j.Untold = nil // the dialects differ in it
			if old {
				j.MailUser = ""
			}
		}
		release := filepath.Dir(dir)
		text, _ := json.Marshal(jobs)
		if first, seen := byRelease[release]; seen && first != string(text) {
			t.Errorf("%s reads\n%s\nothers read\n%s", dir, text, first)
		}
		byRelease[release] = string(text)
	}
}

func TestDialectsAgreeOnAccounting(t *testing.T) {
	byRelease := map[string]string{}
	for _, dir := range recorded(t) {
		// sacct --json of 22.05 says SUCCESS and 0 where sacct says 3:0.
		old := strings.HasSuffix(dir, "v0.0.38")
		var b DBJobs
		load(t, filepath.Join(dir, "dbjobs.json"), &b)
		jobs := b.Model()
		for i := range jobs {
			j := &jobs[i]
			if j.Name == "ran" && (j.ArrayJob == 0 || j.ArrayTask == "" || j.State != slurm.Failed || !old && j.ExitCode != 3) {
				t.Errorf("%s: array task is %+v", dir, j)
			}
			// 24.11 and 26.05 record the set only when it starts.
			if j.Name == "two" && (old && j.HetOffset != 1 || j.ArrayJob != 0) {
				t.Errorf("%s: component is %+v", dir, j)
			}
			j.Output = "" // from v0.0.42 on
		}
		release := filepath.Dir(dir)
		text, _ := json.Marshal(jobs)
		if first, seen := byRelease[release]; seen && first != string(text) || len(jobs) == 0 {
			t.Errorf("%s reads\n%s\nothers read\n%s", dir, text, first)
		}
		byRelease[release] = string(text)
	}
}

func TestDialectsAgreeOnTheCluster(t *testing.T) {
	var first string
	for _, dir := range recorded(t) {
		if strings.HasSuffix(dir, "v0.0.38") {
			continue // these commands have no JSON for them
		}
		var nodes Nodes
		var partitions Partitions
		load(t, filepath.Join(dir, "nodes.json"), &nodes)
		load(t, filepath.Join(dir, "partitions.json"), &partitions)
		list := partitions.Model()
		for i := range list {
			list[i].Default = false // only .45 tells
		}
		text, _ := json.Marshal([]any{nodes.Model(), list})
		if len(nodes.Nodes) != 2 || len(list) != 3 || list[1].Name == "" || first != "" && first != string(text) {
			t.Errorf("%s reads\n%s\nothers read\n%s", dir, text, first)
		}
		first = string(text)
	}
}

// v0.0.39 (Slurm 23.02) mixes the shapes of its neighbours: numbers as objects,
// but times bare, states in one word, no state of a partition.
func TestShapesOfDialect39(t *testing.T) {
	var jobs Jobs
	var partitions Partitions
	var nodes Nodes
	for body, v := range map[string]any{
		`{"jobs":[{"job_id":7,"job_state":"COMPLETING","start_time":1796048411,"end_time":0,"time_limit":{"set":false,"infinite":true,"number":0},
		 "exit_code":{"set":true,"infinite":false,"number":768},"array_job_id":{"set":true,"infinite":false,"number":0},"array_task_id":{"set":false,"infinite":false,"number":0},
		 "node_count":{"set":true,"infinite":false,"number":2},"tres_per_node":"gres:gpu:h200:8","job_resources":{},"required_nodes":"a,b","flags":["NEW_ONE"],"brand_new":{"x":[1]}}]}`: &jobs,
		`{"partitions":[{"name":"p","nodes":{"configured":"n[1-2]","total":2},"maximums":{"time":{"set":true,"infinite":false,"number":60},"nodes":{"set":false,"infinite":true,"number":0}},"defaults":{"time":{}},"accounts":{},"qos":null}]}`: &partitions,
		`{"nodes":[{"name":"n1","state":["MIXED","BRAND_NEW"],"features":["a","b"],"partitions":["p"],"cpus":64,"cpu_load":4294967294,"real_memory":1000000,"alloc_memory":18446744073709551614,"reason_changed_at":0}]}`:                        &nodes,
	} {
		if err := Decode([]byte(body), v); err != nil {
			t.Fatal(err)
		}
	}
	j := jobs.Model()[0]
	if j.State != slurm.Running || !j.Has("COMPLETING") || j.ExitCode != 3 || j.TimeLimit != slurm.Unlimited || j.Start != time.Unix(1796048411, 0) || !j.End.IsZero() || j.ArrayJob != 0 || j.Required != "a,b" || slurm.Count(j.Total, "gpu", "h200") != 16 {
		t.Errorf("job %+v", j)
	}
	if p := partitions.Model()[0]; p.State != "" || p.MaxTime != 60 || p.MaxNodes != 0 || p.DefaultTime != 0 || p.TotalNodes != 2 {
		t.Errorf("partition %+v", p)
	}
	if n := nodes.Model()[0]; n.State != "MIXED" || !reflect.DeepEqual(n.Flags, []string{"BRAND_NEW"}) || n.Memory != 1000000 || n.MemoryUsed != 0 {
		t.Errorf("node %+v", n)
	}
}

// One object of the wrong kind must not lose the rest of an answer.
func TestOddPartsAreLeftOut(t *testing.T) {
	var b Jobs
	body := `{"jobs":[{"job_id":1,"user_name":{},"comment":[],"name":"x","job_state":{},"requeue":{},"exit_code":[]},5,null,{"job_id":4294967293,"priority":4294967293,"job_state":["FUTURE_STATE","FUTURE_FLAG"]}],"errors":{},"warnings":null,"meta":[]}`
	if err := Decode([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	jobs := b.Model()
	if len(jobs) != 2 || jobs[0].User != "" || jobs[0].Comment != "" || jobs[0].State != "" {
		t.Fatalf("%+v", jobs)
	}
	if j := jobs[1]; j.ID != 4294967293 || j.State != "FUTURE_STATE" || !j.Has("FUTURE_FLAG") {
		t.Errorf("%+v", j)
	}
	for _, bad := range []string{`[]`, `"text"`, `5`, ``, `{"jobs":[`, `{"jobs":[]}x`} {
		if err := Decode([]byte(bad), new(Jobs)); err == nil {
			t.Errorf("%s is taken for an answer", bad)
		}
	}
}
