package slurm

import "testing"

func TestParseConfig(t *testing.T) {
	r := ParseConfig("Configuration data as of 2026-11-30T18:40:46\nMinJobAge               = 300 sec\nTopologyPlugin = (null)\n" +
		"SchedulerParameters     = bf_interval=1,bf_continue,BF_HetJob_Prio=min\nPriorityFlags           = \n\nSlurmctld(primary) at vm is UP\n")
	if n, ok := r.Number("MinJobAge"); n != 300 || !ok {
		t.Errorf("MinJobAge %d %v", n, ok)
	}
	if _, ok := r.Number("TopologyPlugin"); ok || r.Get("TopologyPlugin") != "" || r.Get("PriorityFlags") != "" {
		t.Error("(null) is no value")
	}
	if v, ok := r.Option("SchedulerParameters", "bf_hetjob_prio"); v != "min" || !ok {
		t.Errorf("bf_hetjob_prio %q %v", v, ok)
	}
	if v, ok := r.Option("SchedulerParameters", "bf_continue"); v != "" || !ok {
		t.Errorf("bf_continue %q %v", v, ok)
	}
	if _, ok := r.Option("SchedulerParameters", "bf"); ok {
		t.Error("part of a name is no option")
	}
	if _, ok := Record(nil).Option("SchedulerParameters", "x"); ok {
		t.Error("a record that was not read has no options")
	}
}

func TestParseRecords(t *testing.T) {
	list := ParseRecords("PartitionName=cpu AllowGroups=ALL Default=YES OverSubscribe=FORCE:4 DefMemPerCPU=1000\n\nPartitionName=h200 Default=NO Reason=two words TRES=cpu=1,mem=2\n")
	if len(list) != 2 || list[0]["DefMemPerCPU"] != "1000" || list[1]["TRES"] != "cpu=1,mem=2" || list[1]["Reason"] != "two words" {
		t.Errorf("%v", list)
	}
	f := Facts{Partitions: list}
	if f.Partition("h200").Get("Default") != "NO" || f.Partition("x") != nil {
		t.Error("a partition is found by its name")
	}
}

func FuzzParseRecords(f *testing.F) {
	f.Add("PartitionName=a Default=YES\n=\nx y=z\n")
	f.Fuzz(func(t *testing.T, out string) {
		for _, r := range ParseRecords(out) {
			if len(r) == 0 {
				t.Fatal("an empty record")
			}
		}
		_ = ParseConfig(out)
	})
}
