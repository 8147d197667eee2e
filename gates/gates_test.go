package gates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// cluster is 2 × h200:8, 2 × h100:8 and 2 CPU nodes, all idle.
func cluster() *slurm.Snapshot {
	s := &slurm.Snapshot{Info: slurm.Info{Account: true}}
	for _, kind := range []string{"h200", "h100", "cpu"} {
		for i := 1; i <= 2; i++ {
			n := slurm.Node{Name: fmt.Sprintf("%s-%d", kind, i), State: "IDLE", Partitions: []string{kind}, CPUs: 64, Memory: 1000000, Features: []string{kind}}
			if kind != "cpu" {
				n.GRES = []slurm.GRES{{Name: "gpu", Type: kind, Count: 8}}
			}
			s.Nodes = append(s.Nodes, n)
		}
		s.Partitions = append(s.Partitions, slurm.Partition{Name: kind, State: "UP", Nodes: kind + "-[1-2]", TotalNodes: 2, MaxTime: 600, DefaultTime: 60})
	}
	return s
}

func pool(series string, nodes, gpus int) spec.Pool {
	p := spec.Pool{Name: series, Roles: []string{series}, Series: series, Nodes: nodes, GPUsPerNode: gpus, CPUsPerNode: 8, MemoryMiB: 1000, Partition: series, TimeMinutes: 60}
	if series != "cpu" {
		p.GRES = "gpu:" + series
	}
	return p
}

func TestVerdicts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		change func(*slurm.Snapshot, *[]spec.Pool)
		code   string
		level  Level
		words  string // in found, asked or remedy
	}{
		{"fits", func(*slurm.Snapshot, *[]spec.Pool) {}, "", Pass, ""},
		{"no accounting", func(s *slurm.Snapshot, _ *[]spec.Pool) { s.Info.Account = false }, "admission.accounting", Unknown, "slurmdbd"},
		{"unknown partition", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].Partition = "h20" }, "admission.partition", Block, "--partition h200"},
		{"partition drains", func(s *slurm.Snapshot, _ *[]spec.Pool) { s.Partitions[0].State = "DRAIN" }, "admission.partitionState", Block, "draining"},
		{"account not allowed", func(s *slurm.Snapshot, p *[]spec.Pool) {
			s.Partitions[0].AllowAccounts, s.Info.Release = []string{"vip"}, "22.05.8"
			(*p)[0].Account = "research"
		}, "admission.account", Block, "vip"},
		{"qos denied", func(s *slurm.Snapshot, p *[]spec.Pool) {
			s.Partitions[0].DenyQOS = []string{"low"}
			(*p)[0].QOS = "low"
		}, "admission.qos", Block, "denied QOS: low"},
		{"too many GPUs", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].GPUsPerNode = 9 }, "capacity.neverFits", Block, "at most 8"},
		{"too many nodes", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].Nodes = 3 }, "capacity.neverFits", Block, "only 2 could ever run it"},
		{"too long", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].TimeMinutes = 601 }, "capacity.neverFits", Block, "0-10:00:00"},
		{"unlimited", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].TimeMinutes = -1 }, "capacity.neverFits", Block, "UNLIMITED"},
		{"too much memory", func(_ *slurm.Snapshot, p *[]spec.Pool) { (*p)[0].MemoryMiB = 1000001 }, "capacity.neverFits", Block, "1000000M"},
		{"pools need distinct nodes", func(_ *slurm.Snapshot, p *[]spec.Pool) { *p = append(*p, pool("h200", 2, 1)) }, "capacity.neverFits", Block, "3 nodes (1 × h200:8 + 2 × h200:1)"},
		{"partitions share nodes", func(s *slurm.Snapshot, p *[]spec.Pool) {
			shared(s)
			second := pool("h100", 1, 1)
			second.Partition, second.Component = "short", 1
			*p = []spec.Pool{pool("h100", 2, 8), second}
		}, "capacity.neverFits", Block, "only 2 could ever run it"},
		{"partitions share nodes, and there are enough", func(s *slurm.Snapshot, p *[]spec.Pool) {
			shared(s)
			second := pool("cpu", 2, 0)
			second.Partition, second.Component = "short", 1
			*p = []spec.Pool{pool("h100", 2, 8), second}
		}, "capacity.deadlock", Unknown, "partitions h100 and short"},
		{"a component of two pools is over the partition's nodes", func(s *slurm.Snapshot, p *[]spec.Pool) {
			s.Partitions[0].MaxNodes = 1
			*p = append(*p, pool("h200", 1, 8))
		}, "capacity.neverFits", Block, "allows 1 nodes per job"},
		{"below the partition's least", func(s *slurm.Snapshot, _ *[]spec.Pool) { s.Partitions[0].MinNodes = 2 }, "capacity.neverFits", Block, "at least 2 nodes"},
		{"the partition's CPUs per node", func(s *slurm.Snapshot, _ *[]spec.Pool) { s.Partitions[0].MaxCPUsPerNode = 4 }, "capacity.neverFits", Block, "--cpus-per-node 4"},
		{"the partition's memory per node", func(s *slurm.Snapshot, _ *[]spec.Pool) { s.Partitions[0].MaxMemPerNode = 512 }, "capacity.neverFits", Block, "--mem 512M"},
		{"unlimited time before a maintenance", func(s *slurm.Snapshot, p *[]spec.Pool) {
			s.Partitions[0].MaxTime, (*p)[0].TimeMinutes = slurm.Unlimited, -1
			s.Reservations = []slurm.Reservation{{Name: "maint", Nodes: "h200-[1-2]", Flags: []string{"MAINT"}, Start: now.Add(48 * time.Hour), End: now.Add(50 * time.Hour)}}
		}, "maintenance", Wait, "without a time limit"},
		{"one node is down", func(s *slurm.Snapshot, p *[]spec.Pool) { s.Nodes[0].State = "DOWN"; (*p)[0].Nodes = 2 }, "capacity.down", Wait, "only 1 usable"},
		{"busy", func(s *slurm.Snapshot, p *[]spec.Pool) {
			s.Nodes[0].GRESUsed = []slurm.GRES{{Name: "gpu", Type: "h200", Count: 1}}
			(*p)[0].Nodes = 2
		}, "capacity.busy", Wait, "only 1 free now"},
		{"series offline", func(s *slurm.Snapshot, _ *[]spec.Pool) {
			s.Nodes[0].Flags, s.Nodes[0].Reason = []string{"DRAIN"}, "bad fan"
			s.Nodes[1].State = "DOWN"
		}, "offlineSeries", Block, "bad fan"},
		{"powered down cloud nodes count", func(s *slurm.Snapshot, _ *[]spec.Pool) {
			s.Nodes[0].Flags, s.Nodes[1].Flags = []string{"CLOUD", "POWERED_DOWN"}, []string{"CLOUD", "POWERED_DOWN"}
		}, "", Pass, ""},
		{"maintenance ahead", func(s *slurm.Snapshot, _ *[]spec.Pool) {
			s.Reservations = []slurm.Reservation{{Name: "maint", Nodes: "h200-[1-2]", Flags: []string{"MAINT"}, Start: now.Add(30 * time.Minute), End: now.Add(2 * time.Hour)}}
		}, "maintenance", Wait, "--time 0-00:29:00"},
		{"maintenance after the job", func(s *slurm.Snapshot, _ *[]spec.Pool) {
			s.Reservations = []slurm.Reservation{{Name: "maint", Nodes: "h200-[1-2]", Flags: []string{"MAINT"}, Start: now.Add(90 * time.Minute), End: now.Add(2 * time.Hour)}}
		}, "", Pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap, pools := cluster(), []spec.Pool{pool("h200", 1, 8)}
			c.change(snap, &pools)
			list := Check(Subject{Pools: pools, Snapshot: snap, Now: now}, All()...)
			if worst := Worst(list); worst != c.level {
				t.Fatalf("level %q, want %q: %+v", worst, c.level, list)
			}
			if c.level == Pass {
				return
			}
			for _, v := range list {
				if v.Code == c.code {
					if text := v.Asked + "|" + v.Found + "|" + v.Remedy; !strings.Contains(text, c.words) {
						t.Errorf("%q does not say %q", text, c.words)
					}
					return
				}
			}
			t.Errorf("no verdict %s in %+v", c.code, list)
		})
	}
}

// shared gives the cluster a partition over the nodes of two others.
func shared(s *slurm.Snapshot) {
	for i, n := range s.Nodes {
		if n.Partitions[0] != "h200" {
			s.Nodes[i].Partitions = append(s.Nodes[i].Partitions, "short")
		}
	}
	s.Partitions = append(s.Partitions, slurm.Partition{Name: "short", State: "UP", Nodes: "h100-[1-2],cpu-[1-2]", TotalNodes: 4, MaxTime: 600})
}

func TestHetJobsThatShareNodes(t *testing.T) {
	snap := cluster()
	shared(snap)
	second := pool("cpu", 1, 0)
	second.Partition, second.Component = "short", 1
	s := Subject{Pools: []spec.Pool{pool("h100", 1, 8), second}, Snapshot: snap}
	with := func(parameters string) func() slurm.Record {
		return func() slurm.Record { return slurm.Record{"SchedulerParameters": parameters} }
	}
	for _, c := range []struct {
		name   string
		config func() slurm.Record
		pools  []spec.Pool
		level  Level
	}{
		{"nobody can be asked", nil, s.Pools, Unknown},
		{"nobody answers", func() slurm.Record { return nil }, s.Pools, Unknown},
		{"without the option", with("bf_interval=1,bf_continue"), s.Pools, Warn},
		{"with it", with("bf_interval=1,BF_HETJOB_PRIO=min"), s.Pools, Pass},
		{"with the other one", with("bf_hetjob_immediate"), s.Pools, Pass},
		{"one component", nil, []spec.Pool{pool("h100", 1, 8), pool("h100", 1, 8)}, Pass},
		{"no node in common", with(""), []spec.Pool{pool("h200", 1, 8), second}, Pass},
	} {
		s.Config, s.Pools = c.config, c.pools
		list := Check(s, Capacity{})
		if Worst(list) != c.level {
			t.Errorf("%s: %+v, want %s", c.name, list, c.level)
		}
		if c.level == Warn && (!strings.Contains(list[0].Asked, "partitions h100 and short") || !strings.Contains(list[0].Found, "bf_hetjob_prio") || !strings.Contains(list[0].Found, "h100-[1-2]")) {
			t.Errorf("%s: %+v", c.name, list[0])
		}
	}
}

// What a job names and the cluster does not have is refused before Slurm does.
func TestNamesThatAreNotThere(t *testing.T) {
	rights := Rights{Asked: true, Enforce: "associations,limits,qos,safe", Associations: []slurm.Association{
		{Account: "research", Default: true, QOS: []string{"normal", "high"}}, {Account: "science", QOS: []string{"low"}}, {Account: "cpuonly", Partition: "cpu"}}}
	some := func() map[string]int { return map[string]int{"matlab": 4, "flex@srv": 2} }
	for _, c := range []struct {
		name   string
		change func(*Subject)
		level  Level
		words  string
	}{
		{"all there", func(s *Subject) {
			s.Pools[0].Account, s.Pools[0].QOS, s.Pools[0].Asked.NodeList = "Research", "high", "h200-[1-2]"
			s.Pools[0].Asked.ExcludeNodes, s.Spec.Job.Slurm.Licenses = "cpu-1", "matlab:4,flex@srv"
		}, Pass, ""},
		{"account", func(s *Subject) { s.Pools[0].Account = "reserch" }, Block, "your accounts are cpuonly, research, science; did you mean research?|--account research"},
		{"account elsewhere", func(s *Subject) { s.Pools[0].Account = "cpuonly" }, Block, "other partitions only"},
		{"account, nothing enforced", func(s *Subject) { s.Pools[0].Account, s.Rights.Enforce = "reserch", "" }, Warn, "research?"},
		{"account, nobody knows whether enforced", func(s *Subject) { s.Pools[0].Account, s.Rights.Asked = "reserch", false }, Warn, "research?"},
		{"account, nobody knows", func(s *Subject) { s.Pools[0].Account, s.Rights = "reserch", Rights{} }, Pass, ""},
		{"qos", func(s *Subject) { s.Pools[0].QOS = "nrmal" }, Block, "QOS nrmal under account research|you may ask for high, normal; did you mean normal?|--qos normal"},
		{"qos of another account", func(s *Subject) { s.Pools[0].QOS = "low" }, Block, "under account research"},
		{"default account kept out", func(s *Subject) { s.Snapshot.Partitions[0].AllowAccounts = []string{"vip"} }, Block, "your default account research in partition h200|allowed accounts: vip"},
		{"default account let in", func(s *Subject) { s.Snapshot.Partitions[0].AllowAccounts = []string{"research"} }, Pass, ""},
		{"default account below an allowed one", func(s *Subject) { s.Snapshot.Partitions[0].AllowAccounts = []string{"ai"} }, Pass, ""},
		{"below does not count on 22.05", func(s *Subject) {
			s.Snapshot.Partitions[0].AllowAccounts, s.Snapshot.Info.Release = []string{"ai"}, "22.05.8"
		}, Block, "allowed accounts: ai"},
		{"nobody knows what is below", func(s *Subject) {
			s.Snapshot.Partitions[0].AllowAccounts, s.Parents = []string{"vip"}, nil
		}, Warn, "and those below them"},
		{"node", func(s *Subject) { s.Pools[0].Asked.NodeList = "h20-1" }, Block, "no node h20-1; did you mean h200-1?|--nodelist h200-1"},
		{"excluded node", func(s *Subject) { s.Pools[0].Asked.ExcludeNodes = "h200-[2-3]" }, Block, "no node h200-3; did you mean"},
		{"node elsewhere", func(s *Subject) { s.Pools[0].Asked.NodeList = "h100-1" }, Block, "partition h200 has no node h100-1; its nodes are h200-[1-2]"},
		{"no host list", func(s *Subject) { s.Pools[0].Asked.NodeList = "h100-[1" }, Block, "without its ]"},
		{"licence", func(s *Subject) { s.Spec.Job.Slurm.Licenses = "mtlab:2" }, Block, "the cluster has flex@srv, matlab; did you mean matlab?|--licenses matlab:2"},
		{"more licences than there are", func(s *Subject) { s.Spec.Job.Slurm.Licenses = "matlab:5" }, Block, "has 4 of it in all|--licenses matlab:4"},
		{"licences, nobody knows", func(s *Subject) { s.Spec.Job.Slurm.Licenses, s.Licenses = "matlab:5", nil }, Unknown, "cannot be asked"},
	} {
		s := Subject{Parents: func() map[string]string {
			return map[string]string{"research": "ai", "ai": "root", "science": "root", "cpuonly": "root"}
		}, Spec: &spec.Spec{}, Pools: []spec.Pool{pool("h200", 1, 8)}, Snapshot: cluster(), Rights: rights, Licenses: some}
		c.change(&s)
		list := Check(s, Admission{})
		if list[0].Level != c.level || len(list) != 1 {
			t.Errorf("%s: %+v, want one %s", c.name, list, c.level)
		} else if text := list[0].Asked + "|" + list[0].Found + "|" + list[0].Remedy; !strings.Contains(text, c.words) {
			t.Errorf("%s: %q does not say %q", c.name, text, c.words)
		}
	}
}

func TestNoSnapshotIsUnknown(t *testing.T) {
	for _, v := range Check(Subject{Pools: []spec.Pool{pool("h200", 1, 8)}}, All()...) {
		if v.Level != Unknown {
			t.Errorf("%s answers %s without having seen the cluster", v.Gate, v.Level)
		}
	}
}

func TestWhy(t *testing.T) {
	for _, c := range []struct{ reason, gate, words string }{
		{"Resources", "capacity", "busy"},
		{"ReqNodeNotAvail, UnavailableNodes:cpu-2", "capacity", "down, drained or reserved"},
		{"QOSMaxGRESPerUser", "userQuota", "GPUs or other GRES per user"},
		{"QOSMaxJobsPerUserLimit", "userQuota", "running jobs per user"},
		{"AssocGrpGRESMinutes", "userQuota", "GPUs of all together minutes"},
		{"BeginTime", "scheduleWindow", "begin time"},
		{"None", "", "not looked at it yet"},
		{"SomethingNewIn27_11", "", "SomethingNewIn27_11"},
	} {
		if w := Why(c.reason, Job{Description: ""}); w.Gate != c.gate || !strings.Contains(w.Sentence, c.words) {
			t.Errorf("Why(%q) = %+v, want gate %q and %q", c.reason, w, c.gate, c.words)
		}
	}
}

// alone is a machine without Slurm: two GPUs, one of them taken.
func alone() *slurm.Snapshot {
	return &slurm.Snapshot{
		Info: slurm.Info{Local: true},
		Nodes: []slurm.Node{{
			Name: "me", State: "MIXED", Partitions: []string{"local"}, CPUs: 8, Memory: 16000, GRES: []slurm.GRES{{Name: "gpu", Count: 2}},
			GRESUsed: []slurm.GRES{{Name: "gpu", Count: 1}},
			Jobs: []slurm.NodeJob{
				{ID: 7, Name: "quiet.run-0123456789ab"},
				{ID: 8, Name: "hello.run-ba9876543210", GRES: []slurm.GRES{{Name: "gpu", Count: 1}}},
			},
		}},
		Partitions: []slurm.Partition{{Name: "local", State: "UP", MaxNodes: 1, MaxTime: slurm.Unlimited}},
	}
}

func TestOneMachine(t *testing.T) {
	own := func(role string, nodes, gpus int) spec.Pool {
		p := spec.Pool{Name: role, Roles: []string{role}, Series: "cpu", Nodes: nodes, GPUsPerNode: gpus, CPUsPerNode: 8, Partition: "local", TimeMinutes: 60}
		if gpus > 0 {
			p.Series, p.GRES = "gpu", "gpu"
		}
		return p
	}
	for _, c := range []struct {
		name   string
		pools  []spec.Pool
		level  Level
		code   string
		remedy string
	}{
		{"CPUs are shared", []spec.Pool{own("train", 1, 0)}, Pass, "", ""},
		{"one GPU is free", []spec.Pool{own("train", 1, 1)}, Pass, "", ""},
		{"taken GPUs block", []spec.Pool{own("train", 1, 2)}, Block, "capacity.busy", "nothing waits on this machine: submit when they are free, or tp job cancel run-ba9876543210"},
		{"two pools", []spec.Pool{own("train", 1, 1), own("rollout", 1, 1)}, Block, "admission.local", "--profile train,rollout=gpu:2, or a Slurm fleet with --fleet NAME (tp fleet ls)"},
		{"three nodes", []spec.Pool{own("train", 3, 0)}, Block, "admission.local", "--profile train=cpu:1, or a Slurm fleet with --fleet NAME (tp fleet ls)"},
	} {
		list := Check(Subject{Pools: c.pools, Snapshot: alone(), Now: time.Now()}, All()...)
		if worst := Worst(list); worst != c.level {
			t.Errorf("%s: level %q, want %q: %+v", c.name, worst, c.level, list)
		}
		for _, v := range list {
			if v.Level != Pass { // the first objection is the one that an error shows
				if v.Code != c.code || v.Remedy != c.remedy || c.code == "capacity.busy" && !strings.Contains(v.Found, "1 of 2 GPUs are free; the others have hello.run-ba9876543210") {
					t.Errorf("%s: %+v", c.name, v)
				}
				break
			}
		}
	}
}
