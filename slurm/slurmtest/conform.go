// Package slurmtest is the conformance suite of slurm.Client. Every transport
// runs it against real clusters:
//
//	slurmtest.Conform(t, func(t *testing.T) slurm.Client { … }, slurmtest.Lab("alice"))
package slurmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Cluster says what the cluster under test is made of. The suite queues jobs
// that end within seconds and cancels what it leaves pending.
type Cluster struct {
	User      string
	WorkDir   string // exists on the nodes, writable by User
	Nodes     int
	GPUs      map[string]int // GPU type → devices on all nodes
	First     Pool           // two GPU pools of different nodes
	Second    Pool
	CPU       string // partition without GPUs
	PerNode   int    // GPUs per node
	BadQOS    string
	NoComment bool          // the site rewrites comments
	Bare      bool          // States of many jobs may tell ids and states alone
	Wait      time.Duration // for a short job to end; default 60 s
	// Only names the cases to run, all when it is empty: a machine without
	// Slurm has no second pool and no accounting.
	Only []string
}

// Pool is a GPU partition.
type Pool struct{ Partition, GPU string }

// Lab is the cluster that contrib/devcluster makes.
func Lab(user, workDir string) Cluster {
	return Cluster{
		User: user, WorkDir: workDir, Nodes: 6, PerNode: 8, CPU: "cpu", BadQOS: "secret",
		GPUs:  map[string]int{"h200": 16, "h100": 16},
		First: Pool{"h200", "h200"}, Second: Pool{"h100", "h100"},
		Wait: 60 * time.Second,
	}
}

// OddName holds what shells, JSON, SQL and Slurm's own code like to trip over.
const OddName = `it's a "test" #1 $HOME \ 训练 🚀`

// Conform runs the suite.
func Conform(t *testing.T, open func(*testing.T) slurm.Client, cl Cluster) {
	s := suite{cl: cl, stamp: time.Now().UnixNano()}
	for _, c := range []struct {
		name string
		run  func(*testing.T, suite, slurm.Client)
	}{
		{"Info", testInfo},
		{"Snapshot", testSnapshot},
		{"PlainJob", testPlainJob},
		{"Environment", testEnvironment},
		{"HetJob", testHetJob},
		{"HetEnvironment", testHetEnvironment},
		{"OddName", testOddName},
		{"NothingSmuggled", testNothingSmuggled},
		{"States", testStates},
		{"EachField", testEachField},
		{"AllFields", testAllFields},
		{"Array", testArray},
		{"Held", testHeld},
		{"Refusals", testRefusals},
		{"UnknownID", testUnknownID},
		{"ExitCode", testExitCode},
		{"Cancelled", testCancelled},
	} {
		if len(cl.Only) == 0 || slices.Contains(cl.Only, c.name) {
			t.Run(c.name, func(t *testing.T) { c.run(t, s, open(t)) })
		}
	}
}

type suite struct {
	cl    Cluster
	stamp int64
}

// suffix makes a name of this run of the suite.
func (s suite) suffix() string {
	if s.stamp == 0 {
		return ""
	}
	return fmt.Sprintf(".run-%x", s.stamp)
}

// request is a small job; pools of one node each.
func (s suite) request(name, body string, pools ...Pool) *slurm.Request {
	r := &slurm.Request{
		Name:    name + s.suffix(),
		Comment: "tp:conform",
		Env:     []slurm.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}, {Name: "HOME", Value: "/"}},
		Script:  "#!/bin/bash\n" + body,
		WorkDir: s.cl.WorkDir,
		Output:  "/dev/null",
	}
	for _, p := range pools {
		r.Components = append(r.Components, slurm.Component{
			Partition: p.Partition, Nodes: 1, TasksPerNode: 1, CPUsPerTask: 2, Memory: 600, TimeLimit: 4,
			GRES: []slurm.GRES{{Name: "gpu", Type: p.GPU, Count: 2}},
		})
	}
	if len(pools) == 0 {
		r.Components = []slurm.Component{{Partition: s.cl.CPU, Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Memory: 200, TimeLimit: 3}}
	}
	return r
}

// submit queues the job, and cancels it when the test ends.
func submit(t *testing.T, c slurm.Client, r *slurm.Request) slurm.JobID {
	t.Helper()
	sub, err := c.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if sub.ID == 0 {
		t.Fatal("submit: no error and no id")
	}
	for _, w := range sub.Warnings {
		t.Logf("job %s: %s", sub.ID, w)
	}
	t.Cleanup(func() { _ = c.Cancel(context.WithoutCancel(t.Context()), sub.ID) })
	return sub.ID
}

// show is every component, in order.
func show(t *testing.T, c slurm.Client, id slurm.JobID) []slurm.Job {
	t.Helper()
	jobs, err := c.Jobs(t.Context(), id)
	if err != nil {
		t.Fatalf("show job %s: %v", id, err)
	}
	slices.SortFunc(jobs, func(a, b slurm.Job) int { return a.HetOffset - b.HetOffset })
	return jobs
}

// await polls until every component is as wanted.
func (s suite) await(t *testing.T, c slurm.Client, id slurm.JobID, want func(slurm.Job) bool) []slurm.Job {
	t.Helper()
	deadline := time.Now().Add(max(s.cl.Wait, 10*time.Second))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		jobs := show(t, c, id)
		if len(jobs) > 0 && !slices.ContainsFunc(jobs, func(j slurm.Job) bool { return !want(j) }) {
			return jobs
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s did not get there: %+v", id, jobs)
		}
		<-tick.C
	}
}

// named looks a job up by name; accounting alone may learn of it late.
func (s suite) named(t *testing.T, c slurm.Client, name string, components int) {
	t.Helper()
	start, tick := time.Now(), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	for {
		found, err := c.JobsByName(t.Context(), s.cl.User, name)
		switch {
		case errors.Is(err, slurm.ErrCannotLookUp):
			t.Logf("%q by name: %v", name, err)
			return
		case err != nil:
			t.Errorf("%q by name: %v", name, err)
			return
		case len(found) == components:
			for _, j := range found {
				if j.Name != name {
					t.Errorf("%q by name: got %q", name, j.Name)
				}
			}
			t.Logf("%q by name after %s", name, time.Since(start).Round(time.Millisecond))
			return
		case time.Since(start) > 20*time.Second:
			t.Errorf("%q by name: %d components, want %d: %+v", name, len(found), components, found)
			return
		}
		<-tick.C
	}
}

func ended(j slurm.Job) bool { return j.State.Ended() && !j.Has("COMPLETING") }

// agree compares a component as Slurm reports it with the request.
func (s suite) agree(t *testing.T, r *slurm.Request, jobs []slurm.Job) {
	t.Helper()
	if len(jobs) != len(r.Components) {
		t.Fatalf("%d components, want %d: %+v", len(jobs), len(r.Components), jobs)
	}
	for _, d := range slurm.Compare(r, jobs) {
		if d.Field != "Comment" || !s.cl.NoComment {
			t.Error(d)
		}
	}
	for i, j := range jobs {
		c := r.Components[i]
		check := func(field string, got, want any) {
			t.Helper()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("component %d: %s is %q, want %q", i, field, fmt.Sprint(got), fmt.Sprint(want))
			}
		}
		check("User", j.User, s.cl.User)
		if least := c.Tasks() * c.CPUsPerTask; j.CPUs < least {
			t.Errorf("component %d: %d CPUs, want %d", i, j.CPUs, least)
		}
		if len(r.Components) > 1 {
			check("HetJob", j.HetJob, jobs[0].ID)
			check("HetOffset", j.HetOffset, i)
		} else {
			check("HetJob", j.HetJob, 0)
		}
		for k := range c.GRES {
			c.GRES[k].Count *= c.Nodes
		}
		check("Total", j.Total, c.GRES)
		for k := range c.GRES {
			c.GRES[k].Count /= c.Nodes
		}
	}
}

func refusedWith(t *testing.T, err error, number int, words string) {
	t.Helper()
	var refusal *slurm.Error
	if !errors.As(err, &refusal) {
		t.Errorf("error is %T %v, want *slurm.Error", err, err)
		return
	}
	if refusal.Number != number || !strings.Contains(refusal.Text, words) {
		t.Errorf("refused with %d %q, want %d %q", refusal.Number, refusal.Text, number, words)
	}
}
