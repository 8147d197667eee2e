package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // recordings are
	os.Exit(m.Run())
}

func recording(t testing.TB, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// newest is the recording of package wire of the same moment.
var newest = map[string]string{"22.05": "v0.0.38", "24.11": "v0.0.42", "26.05": "v0.0.45"}

func decoded(t *testing.T, release, file string, v any) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../wire/testdata", release, newest[release], file))
	if err == nil {
		err = wire.Decode(body, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, _ := json.MarshalIndent(got, "", " ")
	w, _ := json.MarshalIndent(want, "", " ")
	if string(g) != string(w) {
		t.Errorf("%s: text reads\n%s\nJSON reads\n%s", what, g, w)
	}
}

// What the commands print as text is what they print as JSON.
func TestTextAndJSONAgree(t *testing.T) {
	for release := range newest {
		jobs, err := parseWhole(recording(t, release, "whole"))
		if err != nil || len(jobs) != 6 {
			t.Fatalf("%s: %d jobs, %v", release, len(jobs), err)
		}
		byID := map[slurm.JobID]slurm.Job{}
		for _, j := range jobs {
			byID[j.ID] = j
		}
		excluded := parseExcluded(recording(t, release, "excluded"))
		var document wire.Jobs
		decoded(t, release, "jobs.json", &document)
		for _, want := range document.Model() {
			got := byID[want.ID]
			got.Excluded = excluded[got.ID]
			if release == "22.05" { // null for no limit, no CPUs per task
				want.TimeLimit, want.CPUsPerTask = got.TimeLimit, got.CPUsPerTask
			}
			if !got.Tells("Memory") {
				got.Memory, got.MemoryPerCPU = want.Memory, want.MemoryPerCPU
			}
			want.Flags, got.Flags, want.Description, got.Description = nil, nil, "", ""
			want.Error, got.Error = "", "" // shown where it is that of Output, or not
			if release == "26.05" {
				got.Share = want.Share
			}
			want.Untold, got.Untold, want.MailType, want.MailUser, want.KillInvalid = nil, nil, nil, "", false // no columns for them
			if release != "22.05" && got.End.IsZero() {                                                        // NONE in text, in JSON the limit behind the start
				want.End = got.End
			}
			same(t, release, got, want)
		}
		if release == "22.05" {
			continue // no JSON of these
		}
		var nodes wire.Nodes
		decoded(t, release, "nodes.json", &nodes)
		same(t, release, parseNodes(recording(t, release, "nodes")), nodes.Model())
		var partitions wire.Partitions
		decoded(t, release, "partitions.json", &partitions)
		want := partitions.Model()
		if release == "24.11" { // its JSON does not tell
			want[0].Default = true
		}
		same(t, release, parsePartitions(recording(t, release, "partitions")), want)
	}
}

func TestRecordedTextOfTheOldest(t *testing.T) {
	nodes := parseNodes(recording(t, "22.05", "nodes"))
	if len(nodes) != 2 || nodes[1].Name != "h200-1" || slurm.Count(nodes[1].GRES, "gpu", "h200") != 8 || nodes[1].Memory != 1000000 || nodes[1].CPUs != 64 ||
		nodes[1].State != "IDLE" || strings.Join(nodes[1].Features, ",") != "h200,hopper,ib" || strings.Join(nodes[1].Partitions, ",") != "h200,restricted" || nodes[1].Address != "127.0.0.1" {
		t.Errorf("%+v", nodes)
	}
	partitions := parsePartitions(recording(t, "22.05", "partitions"))
	if len(partitions) != 3 || !partitions[0].Default || partitions[1].Default || partitions[0].MaxTime != 7*24*60 || partitions[0].DefaultTime != 60 ||
		partitions[2].Name != "restricted" || strings.Join(partitions[2].AllowAccounts, ",") != "vip" || partitions[0].AllowAccounts != nil || partitions[0].MaxNodes != 0 {
		t.Errorf("%+v", partitions)
	}
	for release := range newest {
		list := parseReservations(recording(t, release, "reservations"))
		if len(list) != 1 || list[0].Name != "cliprobe" || strings.Join(list[0].Users, ",") != "alice,bob" || list[0].Flags[0] != "MAINT" || list[0].Nodes != "cpu-[1-2]" ||
			!list[0].Start.Equal(time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)) || list[0].End.Sub(list[0].Start) != 2*time.Hour || list[0].Partition != "" || list[0].Accounts != nil {
			t.Errorf("%s: %+v", release, list)
		}
	}
	if list := parseReservations("No reservations in the system\n"); list != nil {
		t.Errorf("%+v", list)
	}
}

func TestRecordedAccounting(t *testing.T) {
	for release := range newest {
		fields := recordFields
		if release != "22.05" {
			fields = append(newRecordFields[:len(newRecordFields):len(newRecordFields)], recordFields...)
		}
		jobs, err := parseRecorded(recording(t, release, "recorded"), fields)
		if err != nil || len(jobs) != 6 {
			t.Fatalf("%s: %d jobs, %v", release, len(jobs), err)
		}
		for _, j := range jobs {
			switch {
			case !j.FromDB || j.User != "alice" || j.Partition == "" || j.Account != "research" || j.Submit.IsZero() || j.Nodes == 0 || j.WorkDir != "/tmp":
				t.Errorf("%s: incomplete: %+v", release, j)
			case j.Name == "fails" && (j.State != slurm.Failed || j.ExitCode != 3 || j.End.IsZero() || j.NodeList != "cpu-1"):
				t.Errorf("%s: failed job %+v", release, j)
			case j.Name == "ran" && (j.ArrayJob == 0 || j.ArrayTask != "3" && j.ArrayTask != "4" || j.State != slurm.Failed):
				t.Errorf("%s: array task %+v", release, j)
			case j.Name == "array" && (j.ArrayJob != j.ID || j.ArrayTask != "0-5%2" || j.State != slurm.Pending):
				t.Errorf("%s: array %+v", release, j)
			case strings.HasPrefix(j.Name, "it's") && (!j.Named("alice", `it's a "test" | 训练`) || j.Nodes != 2 || j.NodeList != "" || j.TimeLimit != slurm.Unlimited || slurm.Count(j.Total, "gpu", "h200") != 4):
				t.Errorf("%s: leader %+v", release, j)
			}
		}
	}
	// A requeued job has two lives, a comment may hold a newline.
	row := func(submit, state string) string {
		f := make([]string, len(recordFields))
		f[0], f[1], f[2], f[3], f[6], f[22], f[23] = "7", "7", "alice", state, submit, "two\nlines", "x"
		return strings.Join(f, separator) + "\n"
	}
	text := row("2026-11-30T10:00:00", "PREEMPTED") + "rest of a name\n\n" + row("2026-11-30T11:00:00", "CANCELLED by 1001")
	jobs, err := parseRecorded(text, recordFields)
	if err != nil || len(jobs) != 1 || jobs[0].State != slurm.Cancelled || jobs[0].Submit.Hour() != 11 || jobs[0].Comment != "two\nlines" {
		t.Errorf("%+v, %v", jobs, err)
	}
	if jobs, err := parseRecorded(text[:len(text)-20], recordFields); err == nil {
		t.Errorf("half a record is taken for a job: %+v", jobs)
	}
}

func TestNodeStates(t *testing.T) {
	for text, want := range map[string]string{
		"IDLE": "IDLE", "MIXED+DRAIN": "MIXED DRAIN", "DOWN*+DRAIN": "DOWN NOT_RESPONDING DRAIN", "idle~": "IDLE POWERED_DOWN",
		"IDLE+CLOUD+POWERED_DOWN": "IDLE CLOUD POWERED_DOWN", "": "UNKNOWN", "NEW_ONE+X": "NEW_ONE X", "*": "UNKNOWN NOT_RESPONDING",
	} {
		state, marks := nodeState(text)
		if got := strings.TrimSpace(state + " " + strings.Join(marks, " ")); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	n := parseNodes("NodeName=a CPUTot=4 State=DOWN+DRAIN Partitions=p  Comment=State=IDLE Partitions=q Reason=disk x=1 broke CPUTot=9 [root@2026-11-30T10:00:00]\n")
	if len(n) != 1 || n[0].State != "DOWN" || n[0].CPUs != 4 || n[0].Partitions[0] != "p" || !strings.HasPrefix(n[0].Reason, "disk") {
		t.Errorf("a comment changed the node: %+v", n)
	}
}

func TestMinutes(t *testing.T) {
	for text, want := range map[string]slurm.Minutes{
		"UNLIMITED": slurm.Unlimited, "INFINITE": slurm.Unlimited, "0:30": 1, "30:00": 30, "01:00:00": 60, "1:00:01": 61, "7-00:00:00": 10080, "1-02:03:04": 1564,
		"": 0, "Partition_Limit": 0, "NOT_SET": 0, "5": 0, "-1:00": 0, "1:2:3:4": 0, "x-1:00": 0, "INVALID": 0,
	} {
		if got := minutes(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	for text, want := range map[string]slurm.Estimate{
		"sbatch: Job 6 to start at 2026-11-30T14:02:11 using 2 processors on nodes h200-[1-2] in partition h200\n":         {CPUs: 2, Nodes: "h200-[1-2]", Partition: "h200"},
		"hello\nsbatch: Job 1975 to start at 2026-11-30T14:02:11 a using 1 processors on nodes cpu-1 in partition cpu\n\n": {CPUs: 1, Nodes: "cpu-1", Partition: "cpu"},
		"sbatch: Job 2177 to start at 2026-11-30T14:02:11 using 2 processors on h100-1,h200-1\nsbatch:   Preempts: 5,6\n":  {CPUs: 2, Nodes: "h100-1,h200-1"},
	} {
		got := parseEstimate(text)
		if !got.Start.Equal(time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)) || !strings.HasPrefix(got.Text, "Job ") || !strings.Contains(text, got.Text) {
			t.Errorf("%q: %+v", text, got)
		}
		got.Start, got.Text = time.Time{}, ""
		if got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := parseEstimate("sbatch: nothing of the kind\n"); got.Text != "" {
		t.Errorf("%+v", got)
	}
}

func TestWaysToAskForMemory(t *testing.T) {
	for _, x := range []struct {
		least, perTRES, tres  string
		nodes, cpus           int
		node, cpu, gpu        slurm.MiB
		cannotTellNodeFromCPU bool
	}{
		{"600M", "N/A", "cpu=4,mem=1200M,node=2", 2, 4, 600, 0, 0, false},
		{"1000M", "N/A", "cpu=4,mem=4000M,node=2", 2, 4, 0, 1000, 0, false},
		{"1.50G", "N/A", "cpu=1,mem=1.50G,node=1", 1, 1, 1536, 0, 0, true},
		{"0", "N/A", "cpu=2,mem=2000000M,node=2", 2, 2, slurm.WholeNode, 0, 0, false},
		{"256000M", "", "cpu=64,mem=250G", 1, 64, 256000, 0, 0, false},
		{"1000M", "gres:gpu:2048", "cpu=1,mem=4G,node=1", 1, 1, 0, 0, 2048, false}, // 22.05
		{"2G", "gres/gpu:h100:2048", "cpu=1,mem=4G,node=1", 1, 1, 0, 0, 2048, false},
	} {
		j := slurm.Job{Nodes: x.nodes, CPUs: x.cpus}
		setMemory(&j, x.least, x.perTRES, x.tres)
		if j.Memory != x.node || j.MemoryPerCPU != x.cpu || j.MemoryPerGPU != x.gpu || j.Tells("Memory") == x.cannotTellNodeFromCPU {
			t.Errorf("%+v: %+v", x, j)
		}
	}
}

// FuzzParsers: no output may crash a parser.
func FuzzParsers(f *testing.F) {
	for release := range newest {
		for _, file := range []string{"whole", "excluded", "states", "recorded", "nodes", "partitions", "reservations"} {
			f.Add(recording(f, release, file))
		}
	}
	f.Add("sbatch: Job 6 to start at 2026-11-30T14:02:11 using 2 processors on nodes h200-[1-2] in partition h200")
	f.Add("#!/bin/sh\n#SBATCH --job-name=\"a b\" -p x #y\n#SBATCH hetjob\n")
	f.Add("4294967295\n;\nSubmitted batch job 1 on cluster x")
	f.Fuzz(func(t *testing.T, out string) {
		for _, parse := range []func(string) ([]slurm.Job, error){parseWhole, parseStates, func(s string) ([]slurm.Job, error) { return parseRecorded(s, recordFields) }} {
			jobs, err := parse(out)
			for _, j := range jobs {
				if err == nil && (j.ID == 0 || j.Nodes < 0 || j.Memory < 0) {
					t.Errorf("%+v", j)
				}
			}
		}
		parseExcluded(out)
		for _, n := range parseNodes(out) {
			if n.State == "" || n.CPUs < 0 {
				t.Errorf("%+v", n)
			}
		}
		for _, p := range parsePartitions(out) {
			if p.MaxTime < slurm.Unlimited || p.DefaultTime < 0 {
				t.Errorf("%+v", p)
			}
		}
		parseReservations(out)
		parseEstimate(out)
		submittedID(out)
		parseVersion(out)
		setting(out, "ClusterName")
		failure("op", "via", outcome{stderr: out})
		_, _ = foreignDirectives(out, [][]slurm.Option{{}, {}})
	})
}
