package slurmtest

import (
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// smuggled are values that a transport with a command line, a script header or
// a pattern between might take for something else.
var smuggled = []string{
	"--qos=high", "--hold", "-H", "x --partition=h100", ":", "a : b", "hetjob", "a hetjob b", "#", "# x", "#SBATCH --hold", "%j", "100%",
	"$(x)", "${HOME}", "`id`", `a\`, `\"`, "'", "a,b", "a=b", "~", "*", "-", "--", "(null)x", "x;y", "x|y", "<&>",
}

// testNothingSmuggled: no value is taken for an option, a directive, a component
// or a pattern, and what would break a line is refused.
func testNothingSmuggled(t *testing.T, s suite, c slurm.Client) {
	s.stamp = 0 // names as they are
	plain := s.request("plain", "true\n")
	plain.Begin = time.Now().Add(24 * time.Hour)
	like := show(t, c, submit(t, c, plain))[0]
	for _, value := range smuggled {
		r := s.request("", "true\n")
		r.Name, r.Comment, r.Begin = value, value, plain.Begin
		r.Env = append(r.Env, slurm.EnvVar{Name: "SBATCH_HOLD", Value: value}, slurm.EnvVar{Name: "SBATCH_QOS", Value: "high"}, slurm.EnvVar{Name: "SLURM_HINT", Value: value})
		id := submit(t, c, r)
		jobs := show(t, c, id)
		s.agree(t, r, jobs)
		if j := jobs[0]; j.QOS != like.QOS || j.State != slurm.Pending || j.Reason == "JobHeldUser" || j.Account != like.Account {
			t.Errorf("with %q the job is %+v", value, j)
		}
		if err := c.Cancel(t.Context(), id); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	r := s.request("path", "true\n")
	r.Begin, r.Output = plain.Begin, s.cl.WorkDir+"/ --qos=high #x 'y' %%j \"z\".out"
	r.Error = s.cl.WorkDir + "/-e : hetjob"
	jobs := show(t, c, submit(t, c, r))
	if j := jobs[0]; len(jobs) != 1 || j.QOS != like.QOS || j.Reason == "JobHeldUser" || j.Output != r.Output && j.Output != s.cl.WorkDir+"/ --qos=high #x 'y' %j \"z\".out" {
		t.Errorf("with an odd path the job is %+v", jobs)
	}
	for what, change := range map[string]func(*slurm.Request){
		"name":       func(r *slurm.Request) { r.Name = "x\n#SBATCH --hold" },
		"comment":    func(r *slurm.Request) { r.Comment = "x\r#SBATCH --hold" },
		"output":     func(r *slurm.Request) { r.Output = "/dev/null\n--hold" },
		"partition":  func(r *slurm.Request) { r.Components[0].Partition += "\n" },
		"dependency": func(r *slurm.Request) { r.Dependency = "singleton\x00" },
		"variable":   func(r *slurm.Request) { r.Env[0].Name = "A\x00B" },
	} {
		r := s.request("refused", "true\n")
		r.Begin = plain.Begin
		change(r)
		if sub, err := c.Submit(t.Context(), r); err == nil || sub.ID != 0 {
			t.Errorf("a control character in %s is taken: job %s, %v", what, sub.ID, err)
			_ = c.Cancel(t.Context(), sub.ID)
		}
	}
}

// testStates: many ids in one question, known and unknown, of every kind.
func testStates(t *testing.T, s suite, c slurm.Client) {
	held := s.request("states", "true\n")
	held.Hold = true
	het := s.request("states", "exec sleep 300\n", s.cl.First, s.cl.Second)
	running := submit(t, c, het)
	ids := []slurm.JobID{submit(t, c, held), running, submit(t, c, s.request("states", "exit 3\n"))}
	s.await(t, c, running, func(j slurm.Job) bool { return j.State == slurm.Running })
	s.await(t, c, ids[2], ended)
	const nobody = 4_000_000
	asked := append([]slurm.JobID{nobody}, ids...)
	for i := range 300 {
		asked = append(asked, nobody+slurm.JobID(i))
	}
	asked = append(asked, ids...)
	started := time.Now()
	jobs, err := c.States(t.Context(), asked...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d ids in %s", len(asked), time.Since(started).Round(time.Millisecond))
	byID := map[slurm.JobID]slurm.Job{}
	for _, j := range jobs {
		byID[j.ID] = j
		if s.cl.Bare && j.Name == "" && !j.FromDB {
			continue
		}
		if j.Name != held.Name || j.User != s.cl.User || j.Partition == "" || j.Submit.IsZero() && !j.FromDB {
			t.Errorf("incomplete: %+v", j)
		}
	}
	if len(jobs) != 4 || len(byID) != 4 {
		t.Errorf("%d jobs of 4: %+v", len(jobs), jobs)
	}
	if j := byID[ids[0]]; j.State != slurm.Pending || j.Reason != "JobHeldUser" && !s.cl.Bare {
		t.Errorf("held: %+v", j)
	}
	if j := byID[running]; j.State != slurm.Running || j.HetJob != running || j.HetOffset != 0 || !s.cl.Bare && (j.Start.IsZero() || j.Partition != s.cl.First.Partition) {
		t.Errorf("leader: %+v", j)
	}
	if j := byID[running+1]; j.State != slurm.Running || j.HetJob != running || j.HetOffset != 1 || !s.cl.Bare && j.Partition != s.cl.Second.Partition {
		t.Errorf("component 1: %+v", j)
	}
	if j := byID[ids[2]]; j.State != slurm.Failed || j.End.IsZero() && !s.cl.Bare {
		t.Errorf("failed: %+v", j)
	}
	if one, err := c.States(t.Context(), ids[0]); err != nil || len(one) != 1 || one[0].ID != ids[0] {
		t.Errorf("one id: %+v, %v", one, err)
	}
	if none, err := c.States(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("no id: %+v, %v", none, err)
	}
}
