package slurmtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

func testInfo(t *testing.T, s suite, c slurm.Client) {
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", info)
	if info.Cluster == "" || info.Release == "" || info.Transport == "" || !info.Account {
		t.Errorf("incomplete: %+v", info)
	}
}

func testSnapshot(t *testing.T, s suite, c slurm.Client) {
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.Nodes) != s.cl.Nodes {
		t.Errorf("%d nodes, want %d", len(snap.Nodes), s.cl.Nodes)
	}
	total := map[string]int{}
	for _, n := range snap.Nodes {
		if !n.Usable() {
			t.Errorf("node %s is %s %v %s", n.Name, n.State, n.Flags, n.Reason)
		}
		if n.Name == "" || n.CPUs == 0 || n.Memory == 0 || len(n.Partitions) == 0 || len(n.Features) == 0 || n.Address == "" {
			t.Errorf("incomplete: %+v", n)
		}
		for _, g := range n.GRES {
			total[g.Type] += g.Count
		}
	}
	for typ, want := range s.cl.GPUs {
		if total[typ] != want {
			t.Errorf("%d devices of %s, want %d", total[typ], typ, want)
		}
	}
	for _, name := range []string{s.cl.CPU, s.cl.First.Partition, s.cl.Second.Partition} {
		p, ok := snap.Partition(name)
		if !ok || p.MaxTime == 0 || p.DefaultTime == 0 || p.TotalNodes == 0 {
			t.Errorf("partition %s: %v %+v", name, ok, p)
		}
		if p.State != "UP" && snap.Info.Dialect != "v0.0.39" {
			t.Errorf("partition %s is %q", name, p.State)
		}
		nodes, err := slurm.Expand(p.Nodes)
		if err != nil || len(nodes) != p.TotalNodes || len(snap.NodesIn(name)) != p.TotalNodes {
			t.Errorf("partition %s: %d nodes by name %v, %d by node", name, p.TotalNodes, nodes, len(snap.NodesIn(name)))
		}
	}
}

func testPlainJob(t *testing.T, s suite, c slurm.Client) {
	r := s.request("plain", "sleep 1\n", s.cl.First)
	r.Components[0].Nodes = 2
	id := submit(t, c, r)
	s.agree(t, r, show(t, c, id))
	jobs := s.await(t, c, id, ended)
	if j := jobs[0]; j.State != slurm.Completed || j.NodeList == "" || j.Start.IsZero() || j.End.IsZero() || j.Submit.IsZero() {
		t.Errorf("ended as %+v", j)
	}
	s.agree(t, r, jobs)
	s.named(t, c, r.Name, 1)
}

// values are what environments hold in real life.
var values = []slurm.EnvVar{
	{Name: "T_EMPTY", Value: ""}, {Name: "T_NULL", Value: "null"}, {Name: "T_ZEROS", Value: "007"},
	{Name: "T_TRUE", Value: "true"}, {Name: "T_COMMA", Value: "a,b=c"}, {Name: "T_LINES", Value: "one\ntwo\n"},
	{Name: "T_QUOTES", Value: `'"$(x)` + "`\\"}, {Name: "T_ODD", Value: OddName}, {Name: "T_SPACE", Value: "  x "},
	{Name: "T_HTML", Value: "<&>"}, {Name: "T_SEP", Value: "a\u2028b"}, {Name: "T_TAB", Value: "a\tb"},
}

// verify is a script that exits 0 only if every variable has its value.
func verify(vars []slurm.EnvVar) string {
	var b strings.Builder
	for _, v := range vars {
		quoted := "'" + strings.ReplaceAll(v.Value, "'", `'\''`) + "'"
		b.WriteString("[ \"${" + v.Name + "-unset}\" = " + quoted + " ] || exit 7\n")
	}
	return b.String()
}

func testEnvironment(t *testing.T, s suite, c slurm.Client) {
	r := s.request("env", "")
	r.Env = append(r.Env, values...)
	r.Components[0].CPUsPerTask, r.Components[0].TasksPerNode, r.Components[0].Nodes = 2, 2, 2
	r.Script += verify(append(slices.Clone(values),
		slurm.EnvVar{Name: "SLURM_NTASKS", Value: "4"}, slurm.EnvVar{Name: "SLURM_NPROCS", Value: "4"},
		slurm.EnvVar{Name: "SLURM_NTASKS_PER_NODE", Value: "2"}, slurm.EnvVar{Name: "SLURM_CPUS_PER_TASK", Value: "2"},
		slurm.EnvVar{Name: "SRUN_CPUS_PER_TASK", Value: "2"}, slurm.EnvVar{Name: "SLURM_SUBMIT_DIR", Value: s.cl.WorkDir},
		slurm.EnvVar{Name: "SLURM_JOB_NAME", Value: r.Name}))
	// Nothing of whoever submitted it, and no variable of the request is an option.
	r.Env = append(r.Env, slurm.EnvVar{Name: "SBATCH_PARTITION", Value: "nosuch"}, slurm.EnvVar{Name: "SBATCH_HOLD", Value: "1"})
	r.Script += "[ -z \"${LC_ALL+set}${SLURM_JWT+set}${TP_E2E_SLURM+set}${TP_E2E_SLURMRESTD+set}\" ] || exit 8\n[ \"$HOME\" = / ] || exit 9\n[ \"$SBATCH_PARTITION\" = nosuch ] || exit 10\n"
	jobs := s.await(t, c, submit(t, c, r), ended)
	if j := jobs[0]; j.State != slurm.Completed {
		t.Errorf("a variable arrived changed: %s, exit code %d", j.State, j.ExitCode)
	}
}

func testHetJob(t *testing.T, s suite, c slurm.Client) {
	r := s.request("het", "sleep 1\n", s.cl.First, s.cl.Second)
	r.Components[1].Nodes = 2
	id := submit(t, c, r)
	jobs := show(t, c, id)
	s.agree(t, r, jobs)
	if only := show(t, c, jobs[1].ID); len(only) != 1 || only[0].ID != jobs[1].ID {
		t.Errorf("component 1 alone: %+v", only)
	}
	s.named(t, c, r.Name, 2)
	for _, j := range s.await(t, c, id, ended) {
		if j.State != slurm.Completed {
			t.Errorf("component %d ended as %s (%s)", j.HetOffset, j.State, j.Reason)
		}
	}
}

func testHetEnvironment(t *testing.T, s suite, c slurm.Client) {
	r := s.request("hetenv", "", s.cl.First, s.cl.Second)
	r.Components[1].Nodes, r.Components[1].TasksPerNode = 2, 2
	r.Script += verify([]slurm.EnvVar{
		{Name: "SLURM_HET_SIZE", Value: "2"},
		{Name: "SLURM_NTASKS_HET_GROUP_0", Value: "1"}, {Name: "SLURM_NTASKS_HET_GROUP_1", Value: "4"},
		{Name: "SLURM_NTASKS_PER_NODE_HET_GROUP_1", Value: "2"}, {Name: "SLURM_CPUS_PER_TASK_HET_GROUP_1", Value: "2"},
	}) + "n=$(srun --overlap --het-group=1 sh -c 'echo $SLURM_PROCID' | sort -u | wc -l)\n[ \"$n\" = 4 ] || exit 8\n"
	if j := s.await(t, c, submit(t, c, r), ended)[0]; j.State != slurm.Completed {
		t.Errorf("ended as %s, exit code %d (7: a variable, 8: srun's task count)", j.State, j.ExitCode)
	}
}

func testOddName(t *testing.T, s suite, c slurm.Client) {
	for _, name := range []string{OddName, "a,b", "Mixed Case", "-dash", "100%", "a+b&c=d"} {
		r := s.request(name, "true\n")
		r.Comment = "tp:" + name
		id := submit(t, c, r)
		s.agree(t, r, show(t, c, id))
		s.await(t, c, id, ended)
		s.named(t, c, r.Name, 1)
	}
	if found, err := c.JobsByName(t.Context(), s.cl.User, "no.such.job"); err != nil || len(found) != 0 {
		t.Errorf("a name that no job has: %+v, %v", found, err)
	}
}

func testHeld(t *testing.T, s suite, c slurm.Client) {
	r := s.request("held", "true\n")
	r.Hold = true
	sub, err := c.Submit(t.Context(), r)
	if err != nil || sub.ID == 0 {
		t.Fatalf("%+v, %v", sub, err)
	}
	t.Cleanup(func() { _ = c.Cancel(context.WithoutCancel(t.Context()), sub.ID) })
	if j := show(t, c, sub.ID)[0]; j.State != slurm.Pending || j.Reason != "JobHeldUser" {
		t.Errorf("held job is %s %s", j.State, j.Reason)
	}
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// sbatch says nothing about a hold that it was asked for.
	if info.Dialect != "" && !slices.ContainsFunc(sub.Warnings, func(w string) bool { return strings.Contains(w, "held") }) {
		t.Errorf("no warning says that the job is held: %q", sub.Warnings)
	}
}

func testRefusals(t *testing.T, s suite, c slurm.Client) {
	for _, bad := range []struct {
		what   string
		change func(*slurm.Request)
		number int
		words  string
	}{
		{"partition", func(r *slurm.Request) { r.Components[1].Partition = "nosuch" }, 2000, "Invalid partition"},
		{"GPUs", func(r *slurm.Request) { r.Components[1].GRES[0].Count = s.cl.PerNode + 1 }, 2014, "not available"},
		{"QOS", func(r *slurm.Request) { r.Components[0].QOS, r.Components[1].QOS = s.cl.BadQOS, s.cl.BadQOS }, 2066, "Invalid qos"},
		{"account", func(r *slurm.Request) { r.Components[0].Account, r.Components[1].Account = "nosuch", "nosuch" }, 2045, "Invalid account"},
		{"licence", func(r *slurm.Request) { r.Components[0].Licenses = "nosuch:1" }, 2048, "license"},
	} {
		r := s.request("bad", "true\n", s.cl.First, s.cl.Second)
		bad.change(r)
		sub, err := c.Submit(t.Context(), r)
		if sub.ID != 0 {
			t.Errorf("bad %s is queued as %s", bad.what, sub.ID)
			_ = c.Cancel(t.Context(), sub.ID)
			continue
		}
		refusedWith(t, err, bad.number, bad.words)
	}
	r := s.request("bad", "true\n")
	r.Components[0].GRES = []slurm.GRES{{Name: "nosuch", Count: 1}}
	var refusal *slurm.Error // 22.05 has no number for it
	if sub, err := c.Submit(t.Context(), r); sub.ID != 0 || !errors.As(err, &refusal) || !strings.Contains(refusal.Text, "GRES") && !strings.Contains(refusal.Text, "gres") {
		t.Errorf("an unknown GRES is answered with %+v, %v", sub, err)
	}
	r = s.request("bad", "true\n")
	r.Script = "echo no interpreter line\n"
	if sub, err := c.Submit(t.Context(), r); err == nil || sub.ID != 0 {
		t.Errorf("a script without #! is taken: %+v", sub)
	}
}

func testUnknownID(t *testing.T, s suite, c slurm.Client) {
	const nobody = 4_000_000
	if jobs, err := c.Jobs(t.Context(), nobody); err != nil || len(jobs) != 0 {
		t.Errorf("Jobs: %+v, %v", jobs, err)
	}
	id := submit(t, c, s.request("known", "true\n"))
	if jobs, err := c.Jobs(t.Context(), nobody, id, nobody+1, id); err != nil || len(jobs) != 1 {
		t.Errorf("known and unknown ids: %+v, %v", jobs, err)
	}
	refusedWith(t, c.Cancel(t.Context(), nobody), 2017, "Invalid job id")
}

func testExitCode(t *testing.T, s suite, c slurm.Client) {
	if j := s.await(t, c, submit(t, c, s.request("exit", "exit 3\n")), ended)[0]; j.State != slurm.Failed || j.ExitCode != 3 || j.Signal != 0 {
		t.Errorf("exit 3 ended as %s, code %d, signal %d", j.State, j.ExitCode, j.Signal)
	}
	if j := s.await(t, c, submit(t, c, s.request("signal", "kill -TERM $$\n")), ended)[0]; j.State.Ended() && j.Signal != 15 {
		t.Errorf("SIGTERM ended as %s, code %d, signal %d", j.State, j.ExitCode, j.Signal)
	}
}

func testCancelled(t *testing.T, s suite, c slurm.Client) {
	running := submit(t, c, s.request("cancel", "exec sleep 300\n", s.cl.First, s.cl.Second))
	s.await(t, c, running, func(j slurm.Job) bool { return j.State == slurm.Running })
	held := s.request("cancel", "true\n", s.cl.First, s.cl.Second)
	held.Hold = true
	for _, id := range []slurm.JobID{running, submit(t, c, held)} {
		if err := c.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		jobs := s.await(t, c, id, ended)
		if len(jobs) != 2 {
			t.Errorf("%d components", len(jobs))
		}
		for _, j := range jobs {
			if j.State != slurm.Cancelled {
				t.Errorf("component %d is %s", j.HetOffset, j.State)
			}
		}
	}
}
