package site

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

// lab is a cluster with everything that a site file can be wrong about.
func lab() Live {
	node := func(name, gres string, features, partitions []string) slurm.Node {
		return slurm.Node{Name: name, State: "IDLE", Features: features, Partitions: partitions, CPUs: 64, Memory: 1000000, GRES: slurm.ParseGRES(gres)}
	}
	return Live{Fleet: "main", Snap: &slurm.Snapshot{
		Nodes: []slurm.Node{
			node("a1", "gpu:H200:8(S:0-1)", []string{"h200", "rail"}, []string{"gpu"}),
			node("b1", "gpu:h100:4", []string{"h100"}, []string{"gpu", "old"}),
			node("c1", "", []string{"epyc"}, []string{"cpu"}),
		},
		Partitions:   []slurm.Partition{{Name: "gpu", State: "UP"}, {Name: "cpu", State: "UP"}, {Name: "old", State: "DOWN"}},
		Reservations: []slurm.Reservation{{Name: "course"}},
	}, Facts: &slurm.Facts{
		Config: slurm.Record{"GresTypes": "gpu", "SelectTypeParameters": "CR_Core_Memory", "DefMemPerNode": "UNLIMITED", "TopologyPlugin": "topology/tree"},
		Partitions: []slurm.Record{{"PartitionName": "gpu", "MaxMemPerNode": "UNLIMITED", "DefMemPerNode": "UNLIMITED"},
			{"PartitionName": "cpu", "DefMemPerCPU": "1000", "Default": "YES"}},
		QOS: []string{"normal", "high"}, Accounts: []string{"research"},
	}}
}

func TestCheckAgainstALiveCluster(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"right":           {"[series.h200]\ngres = 'gpu:H200'\ndevices = 8\ncpus = 64\nmemory = '1000000M'\npartitions = ['gpu']\nconstraint = 'h200&rail'\nqos = 'HIGH'\nreservation = 'course'\nswitches = 1", "ok 1 1 nodes on fleet main"},
		"case of GRES":    {"[series.h200]\ngres = 'gpu:h200'\ndevices = 8", `fail 2 the nodes have gpu:H200, which differs in case → gres = "gpu:H200"`},
		"no such GRES":    {"[series.x]\ngres = 'gpu:b300'\ndevices = 8", "fail 2 no node has gpu:b300; the nodes have gpu:H200, gpu:h100"},
		"too many":        {"[series.x]\ngres = 'gpu:h100'\ndevices = 8", "fail 3 8 devices, and no node has more than 4 → devices = 4"},
		"too many CPUs":   {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\ncpus = 128", "fail 4 128 CPUs, and no node has more than 64 → cpus = 64"},
		"too much memory": {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\nmemory = '2T'", `fail 4 2048G of memory, and no node has more than 1000000M → memory = "1000000M"`},
		"no partition":    {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\npartitions = ['gpu', 'gpus']", "fail 4 fleet main has no partition gpus → did you mean gpu?"},
		"wrong partition": {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\npartitions = ['gpu', 'cpu']", "fail 4 partition cpu holds none of its nodes"},
		"none of them":    {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\npartitions = ['cpu']", `fail 4 node b1 has its devices and is in none of its partitions → partitions = ["gpu", "old"]`},
		"partition down":  {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\npartitions = ['old']", "warn 4 partition old is DOWN → scontrol update partition=old state=up"},
		"constraint":      {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\nconstraint = '(h100|h200)&rail'", "fail 4 no node of the series has feature h200"},
		"feature":         {"[series.x]\nfeature = 'xeon'\npartitions = ['cpu']", "fail 2 nodes like"},
		"no request":      {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\ngpu_request = 'none'", "warn 4 slurm.conf counts gpu, and a job that asks for none gets none"},
		"memory":          {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\npartitions = ['gpu']\nmem = 'forbid'", `warn 5 mem = "forbid", and partition gpu has no default: every job takes all memory`},
		"segment":         {"[series.x]\ngres = 'gpu:h100'\ndevices = 4\nsegment = 4", "warn 4 segments need topology/block; this is topology/tree"},
		"account":         {"[fleets.main]\naccount = 'reserch'", "fail 2 fleet main has no account reserch → did you mean research?"},
		"QOS of all":      {"[defaults]\nqos = 'hgih'", "fail 2 fleet main has no qos hgih → did you mean high?"},
		"partition":       {"[fleets.main]\npartition = 'GPU'", "fail 2 fleet main has no partition GPU → partition gpu, in this case of its letters"},
		"reservation":     {"[series.x]\npartitions = ['cpu']\nreservation = 'gone'", "warn 3 fleet main has no reservation gone now"},
	} {
		conf, _, err := world(t, nil, map[string]string{"etc/site.toml": c.text})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, f := range conf.Check([]Live{lab()}) {
			at := f.Where[strings.LastIndexByte(f.Where, ':')+1:]
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s %s → %s", f.Level, at, f.What, f.Fix), " → "))
		}
		all := strings.Join(got, "\n")
		if !strings.Contains(all, c.want) {
			t.Errorf("%s:\n%s\nwant %s", name, all, c.want)
		}
		if name == "right" && all != c.want {
			t.Errorf("something is found in a right file:\n%s", all)
		}
	}
}

// A series of one fleet is not missing because another has none of it.
func TestASeriesMayBeOnOneFleetOnly(t *testing.T) {
	conf, _, err := world(t, nil, map[string]string{"etc/site.toml": "[series.h100]\ngres = 'gpu:h100'\ndevices = 4"})
	if err != nil {
		t.Fatal(err)
	}
	other := lab()
	other.Fleet, other.Snap = "other", &slurm.Snapshot{Nodes: other.Snap.Nodes[2:]}
	if list := conf.Check([]Live{other, lab()}); len(list) != 1 || list[0].Level != Good {
		t.Errorf("%+v", list)
	}
	if list := conf.Check([]Live{other}); len(list) != 1 || list[0].Level != Bad {
		t.Errorf("%+v", list)
	}
	// Without Slurm's commands only what they tell is left out.
	bare := lab()
	bare.Facts = nil
	if list := conf.Check([]Live{bare}); len(list) != 1 || list[0].Level != Good {
		t.Errorf("%+v", list)
	}
}

func TestRemarks(t *testing.T) {
	has := func(conf slurm.Record, want ...string) {
		t.Helper()
		var all strings.Builder
		for _, r := range Remarks(&slurm.Facts{Config: conf, Partitions: []slurm.Record{{"PartitionName": "gpu"}}}) {
			fmt.Fprintln(&all, r.Level, r.Topic, r.What, r.Fix)
		}
		for _, w := range want {
			if !strings.Contains(all.String(), w) {
				t.Errorf("no %q in\n%s", w, all.String())
			}
		}
	}
	has(slurm.Record{"SchedulerType": "sched/builtin"}, "fail SchedulerType sched/builtin: never starts")
	has(slurm.Record{"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_continue,disable_hetjob_steps"},
		"warn SchedulerParameters bf_hetjob_prio is missing", "bf_hetjob_prio=min in slurm.conf", "note SchedulerParameters disable_hetjob_steps is set")
	has(slurm.Record{"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_hetjob_prio=min,max_script_size=100"}, "ok SchedulerParameters bf_hetjob_prio=min is set", "max_script_size=100 bounds")
	has(slurm.Record{"MinJobAge": "10 sec", "MaxArraySize": "1001", "EnforcePartLimits": "NO"}, "warn MinJobAge", "indexes up to 1000", "wait for ever")
	has(slurm.Record{"AccountingStorageType": "accounting_storage/none"}, "warn AccountingStorageType")
	has(slurm.Record{"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageEnforce": "associations,limits", "PrivateData": "jobs,usage"},
		"without safe", "without job_comment", "note PrivateData jobs,usage")
	has(slurm.Record{"AuthAltTypes": "auth/jwt", "AuthAltParameters": "jwt_key=/x,disable_token_creation"}, "ok AuthAltTypes", "warn AuthAltParameters")
	has(slurm.Record{"CliFilterPlugins": "cli_filter/lua", "JobSubmitPlugins": "lua", "PlugStackConfig": "/etc/p"}, "CliFilterPlugins", "JobSubmitPlugins", "PlugStackConfig")
	has(slurm.Record{"SelectTypeParameters": "CR_CORE_MEMORY", "TopologyPlugin": "topology/block"}, "ok SelectTypeParameters", "partition gpu has no default", "segment = N")
	has(slurm.Record{"SelectTypeParameters": "CR_CORE"}, "memory is not counted")
	if Remarks(nil) != nil || Remarks(&slurm.Facts{}) != nil {
		t.Error("remarks about nothing")
	}
}
