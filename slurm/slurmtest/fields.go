package slurmtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// refusedBy names the fields that a way to a release has no word for, and why:
// a request with one of them must be refused before it is sent, for a field
// that is left out in silence is a lie. The key is the dialect, or "cli" and
// the release where sbatch is asked.
var refusedBy = map[string]map[string]string{
	"v0.0.38": {
		"Extra": "unknown key", "Network": "a disabled key", "Switches": "unknown key", "SwitchWait": "unknown key",
		"Segment": "unknown key", "Share topo": "not among its words",
	},
	"v0.0.39": {"Segment": "from Slurm 24.05 on", "Share topo": "from Slurm 24.05 on"},
	"v0.0.40": {"Segment": "from Slurm 24.05 on", "Share topo": "from Slurm 24.05 on"},
	"cli 22.05": {
		"Extra": "sbatch takes it for --extra-node-info", "Segment": "no option of that sbatch", "Share topo": "not among its words",
	},
}

// refusedHere are those of the client under test.
func refusedHere(info slurm.Info) map[string]string {
	if info.Dialect != "" {
		return refusedBy[info.Dialect]
	}
	release, _, _ := cutRelease(info.Release)
	return refusedBy["cli "+release]
}

// cutRelease splits "22.05.8" into "22.05" and "8".
func cutRelease(text string) (release, patch string, ok bool) {
	at := strings.LastIndex(text, ".")
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// field is a request with one field set.
type field struct {
	name string
	set  func(r *slurm.Request, c *slurm.Component)
}

// fields are all that a held job can have, each by itself.
func (s suite) fields(nodes []slurm.Node) []field {
	feature := nodes[0].Features[0]
	return []field{
		{"Error", func(r *slurm.Request, _ *slurm.Component) { r.Error = s.cl.WorkDir + "/conform %j 100%%.err" }},
		{"Output", func(r *slurm.Request, _ *slurm.Component) { r.Output = s.cl.WorkDir + "/conform %j 100%%.out" }},
		{"Begin", func(r *slurm.Request, _ *slurm.Component) { r.Begin = time.Now().Add(24 * time.Hour) }},
		{"Deadline", func(r *slurm.Request, _ *slurm.Component) {
			r.Deadline = time.Now().Add(48 * time.Hour).Truncate(time.Second)
		}},
		{"Requeue", func(r *slurm.Request, _ *slurm.Component) { r.Requeue = true }},
		{"Nice", func(r *slurm.Request, _ *slurm.Component) { r.Nice = 5000 }},
		{"Signal", func(r *slurm.Request, _ *slurm.Component) {
			r.Signal = slurm.Signal{Name: "USR1", Before: time.Minute}
		}},
		{"MailType", func(r *slurm.Request, _ *slurm.Component) {
			r.MailType, r.MailUser = []string{"BEGIN", "TIME_LIMIT_80", "TIME_LIMIT", "INVALID_DEPEND", "ARRAY_TASKS"}, s.cl.User
		}},
		{"MailType ALL", func(r *slurm.Request, _ *slurm.Component) { r.MailType = []string{"ALL"} }},
		{"MailType NONE", func(r *slurm.Request, _ *slurm.Component) { r.MailType = []string{"NONE"} }},
		{"WCKey", func(r *slurm.Request, _ *slurm.Component) { r.WCKey = "tp-conform" }},
		{"Extra", func(r *slurm.Request, _ *slurm.Component) { r.Extra = `{"a": "it's"}` }},
		{"Container", func(r *slurm.Request, _ *slurm.Component) { r.Container = "/no/such bundle" }},
		{"Account", func(_ *slurm.Request, c *slurm.Component) { c.Account = "research" }},
		{"QOS", func(_ *slurm.Request, c *slurm.Component) { c.QOS = "low" }},
		{"Constraint", func(_ *slurm.Request, c *slurm.Component) { c.Constraint = feature }},
		{"Prefer", func(_ *slurm.Request, c *slurm.Component) { c.Prefer = feature }},
		{"Licenses", func(_ *slurm.Request, c *slurm.Component) { c.Licenses = "matlab:1" }},
		{"NodeList", func(_ *slurm.Request, c *slurm.Component) { c.NodeList = []string{nodes[0].Name} }},
		{"Exclude", func(_ *slurm.Request, c *slurm.Component) { c.Exclude = []string{nodes[1].Name} }},
		{"TasksPerNode", func(_ *slurm.Request, c *slurm.Component) { c.TasksPerNode, c.Nodes = 3, 2 }},
		{"Memory whole", func(_ *slurm.Request, c *slurm.Component) { c.Memory = slurm.WholeNode }},
		{"MemoryPerCPU", func(_ *slurm.Request, c *slurm.Component) { c.Memory, c.MemoryPerCPU = 0, 300 }},
		{"MemoryPerGPU", func(_ *slurm.Request, c *slurm.Component) { c.Memory, c.MemoryPerGPU = 0, 2048 }},
		{"GPUOption", func(_ *slurm.Request, c *slurm.Component) { c.GPUOption = "gpus-per-node" }},
		{"TimeLimit", func(_ *slurm.Request, c *slurm.Component) { c.TimeLimit = 77 }},
		{"TimeMin", func(_ *slurm.Request, c *slurm.Component) { c.TimeMin = 2 }},
		{"Share exclusive", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.Exclusive }},
		{"Share user", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveUser }},
		{"Share mcs", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveMCS }},
		{"Share topo", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveTopo }},
		{"Share oversubscribe", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.Oversubscribe }},
		{"Network", func(_ *slurm.Request, c *slurm.Component) { c.Network = "sn_all" }},
		{"Switches", func(_ *slurm.Request, c *slurm.Component) { c.Switches = 2 }},
		{"SwitchWait", func(_ *slurm.Request, c *slurm.Component) { c.Switches, c.SwitchWait = 1, 90*time.Second }},
		{"Segment", func(_ *slurm.Request, c *slurm.Component) { c.Segment = 1 }},
	}
}

// testEachField queues a held job for each field and reads the field back.
func testEachField(t *testing.T, s suite, c slurm.Client) {
	info, nodes := s.surroundings(t, c)
	refused := refusedHere(info)
	for _, f := range s.fields(nodes) {
		t.Run(f.name, func(t *testing.T) {
			r := s.request("field", "true\n", s.cl.First)
			r.Hold = true
			f.set(r, &r.Components[0])
			sub, err := c.Submit(t.Context(), r)
			if sub.ID != 0 {
				t.Cleanup(func() { _ = c.Cancel(context.WithoutCancel(t.Context()), sub.ID) })
			}
			if why := refused[f.name]; why != "" {
				if err == nil || sub.ID != 0 {
					t.Errorf("taken as job %s (%v, %q), though %s has: %s", sub.ID, err, sub.Warnings, info.Dialect, why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if words := strings.Join(sub.Warnings, "\n"); strings.Contains(words, "gnoring") || strings.Contains(words, "nknown") {
				t.Errorf("the cluster ignores something: %s", words)
			}
			s.agree(t, r, show(t, c, sub.ID))
		})
	}
}

// testAllFields queues one job with as many fields as go together.
func testAllFields(t *testing.T, s suite, c slurm.Client) {
	info, nodes := s.surroundings(t, c)
	refused := refusedHere(info)
	first := submit(t, c, s.request("before", "sleep 30\n"))
	r := s.request("fields", "true\n", s.cl.First)
	r.Hold, r.Dependency = true, "afterany:"+first.String()
	alone := []string{"Share user", "Share mcs", "Share topo", "Share oversubscribe", "Memory whole", "MemoryPerCPU", "MailType ALL", "MailType NONE", "TasksPerNode", "Container"}
	for _, f := range s.fields(nodes) {
		if refused[f.name] == "" && !slices.Contains(alone, f.name) {
			f.set(r, &r.Components[0])
		}
	}
	jobs := show(t, c, submit(t, c, r))
	s.agree(t, r, jobs)
	j := jobs[0]
	if !strings.HasPrefix(j.Dependency, r.Dependency) || j.Tells("Dependency") && !j.KillInvalid {
		t.Errorf("dependency %q, cancelled when it can never be met: %v", j.Dependency, j.KillInvalid)
	}
	if j.State != slurm.Pending || j.Reason != "JobHeldUser" {
		t.Errorf("held job is %s %s", j.State, j.Reason)
	}
	// slurmctld ignores the priority of who is no operator: that has to be seen.
	r = s.request("priority", "true\n", s.cl.First)
	r.Priority, r.Begin = 77, time.Now().Add(24*time.Hour)
	found := slurm.Compare(r, show(t, c, submit(t, c, r)))
	if len(found) != 1 || found[0].Field != "Priority" || found[0].Want != "77" {
		t.Errorf("a priority that a user may not set is read back as %v", found)
	}
}

// testArray runs every task of an array.
func testArray(t *testing.T, s suite, c slurm.Client) {
	r := s.request("array", "[ \"$SLURM_ARRAY_TASK_COUNT\" = 3 ] && [ -n \"$SLURM_ARRAY_TASK_ID\" ] || exit 7\n")
	r.Array = "1-5:2%2"
	id := submit(t, c, r)
	for _, j := range s.await(t, c, id, ended) {
		if j.State != slurm.Completed {
			t.Errorf("task %s ended as %s, exit code %d", j.ID, j.State, j.ExitCode)
		}
	}
}

func (s suite) surroundings(t *testing.T, c slurm.Client) (slurm.Info, []slurm.Node) {
	t.Helper()
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes := snap.NodesIn(s.cl.First.Partition)
	if len(nodes) < 2 {
		t.Fatalf("%d nodes in %s", len(nodes), s.cl.First.Partition)
	}
	return snap.Info, nodes
}
