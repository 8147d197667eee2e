package cli

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// TestConformance runs the suite with the commands of this host: as they come,
// with text where they can do JSON, and with the cluster named.
// TP_E2E_SLURM is "USER WORKDIR"; WORKDIR exists on the nodes.
func TestConformance(t *testing.T) {
	lab, version := here(t)
	t.Run(version, func(t *testing.T) {
		slurmtest.Conform(t, func(*testing.T) slurm.Client { return New(Options{}) }, lab)
	})
	lab.Only = []string{"Info", "Snapshot", "PlainJob", "HetJob", "EachField", "AllFields", "Array", "NothingSmuggled", "States", "UnknownID", "ExitCode", "Cancelled"}
	t.Run(version+"-text", func(t *testing.T) {
		slurmtest.Conform(t, func(*testing.T) slurm.Client {
			c := New(Options{})
			c.noJSON = true
			return c
		}, lab)
	})
	name, err := Tools{}.ClusterName(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lab.Only = []string{"Info", "Snapshot", "PlainJob", "HetJob", "Refusals", "States", "UnknownID", "Cancelled"}
	t.Run(version+"-cluster", func(t *testing.T) {
		slurmtest.Conform(t, func(*testing.T) slurm.Client { return New(Options{Tools: Tools{Cluster: name}}) }, lab)
	})
}

func here(t *testing.T) (slurmtest.Cluster, string) {
	t.Helper()
	f := strings.Fields(os.Getenv("TP_E2E_SLURM"))
	if len(f) != 2 {
		t.Skip("TP_E2E_SLURM names no user and directory; contrib/devcluster makes clusters")
	}
	version, err := New(Options{}).Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slurmtest.Lab(f[0], f[1]), release(version).String()
}

// held is a request that stays in the queue.
func held(lab slurmtest.Cluster, components int) *slurm.Request {
	r := &slurm.Request{
		Name: "cli", Script: "#!/bin/sh\ntrue\n", WorkDir: lab.WorkDir, Output: "/dev/null", Hold: true,
		Env: []slurm.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}},
	}
	for _, partition := range []string{lab.First.Partition, lab.Second.Partition}[:components] {
		r.Components = append(r.Components, slurm.Component{Partition: partition, Nodes: 1, CPUsPerTask: 1, Memory: 200, TimeLimit: 3})
	}
	return r
}

// The script is stored byte for byte, with and without #SBATCH lines, and only
// the request decides about the job, but for what the script adds.
func TestScriptsOnTheCluster(t *testing.T) {
	lab, version := here(t)
	c := New(Options{})
	scripts := map[string]struct {
		text       string
		components int
		comment    string // the script's own
	}{
		"plain":      {"#!/bin/sh\ntrue", 1, ""},
		"het":        {"#!/bin/sh\ntrue\n", 2, ""},
		"odd":        {"#!/bin/bash\n\n# \u2028 \t 训练\n#PBS -l walltime=00:01:00\n#BSUB -n 9\n: \\\n\n\n", 1, ""},
		"directives": {"#!/bin/bash\n#SBATCH --job-name=\"other\"\n#SBATCH --partition=nosuch --export=NIL\n#SBATCH --comment=\"mine\"\ntrue\n#SBATCH --qos=nosuch\n", 1, "mine"},
		"hetjob":     {"#!/bin/bash\n#SBATCH --partition=nosuch\n#SBATCH hetjob\n#SBATCH --time=99\ntrue\n", 2, ""},
	}
	for name, script := range scripts {
		t.Run(version+"/"+name, func(t *testing.T) {
			r := held(lab, script.components)
			r.Script = script.text
			sub, err := c.Submit(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Cancel(t.Context(), sub.ID) })
			defer func() { _ = c.Cancel(t.Context(), sub.ID) }()
			warned := slices.ContainsFunc(sub.Warnings, func(w string) bool { return strings.Contains(w, "--comment") })
			if warned != (script.comment != "") {
				t.Errorf("warnings %q", sub.Warnings)
			}
			jobs, err := c.Jobs(t.Context(), sub.ID)
			if err != nil || len(jobs) != script.components {
				t.Fatalf("%+v, %v", jobs, err)
			}
			for i, j := range jobs {
				if j.Name != "cli" || j.Partition != r.Components[i].Partition || j.TimeLimit != 3 || j.Comment != script.comment {
					t.Errorf("component %d is %+v", i, j)
				}
			}
			stored, err := Tools{}.call("scontrol", "write", "batch_script", sub.ID.String(), "-").output(t.Context())
			// 22.05 ends it with a newline of its own, and prints one for each component.
			if err != nil || !strings.HasPrefix(string(stored), script.text) || strings.Trim(strings.TrimPrefix(string(stored), script.text), "\n") != "" {
				t.Errorf("stored as %q, %v", stored, err)
			}
		})
	}
}

// What sbatch says of a job that it only tries.
func TestEstimateOnTheCluster(t *testing.T) {
	lab, version := here(t)
	c := New(Options{})
	t.Run(version, func(t *testing.T) {
		for components, partition := range map[int]string{1: lab.First.Partition, 2: ""} {
			r := held(lab, components)
			r.Hold = false
			e, err := c.Test(t.Context(), r)
			if err != nil || time.Until(e.Start) > 7*24*time.Hour || e.Start.IsZero() || e.Nodes == "" || e.CPUs < components || e.Partition != partition || e.Text == "" {
				t.Errorf("%d components: %+v, %v", components, e, err)
			}
			r.Components[0].Partition = "nosuch"
			var refusal *slurm.Error
			if e, err := c.Test(t.Context(), r); !errors.As(err, &refusal) || refusal.Number != 2000 {
				t.Errorf("%+v, %v", e, err)
			}
		}
	})
}
