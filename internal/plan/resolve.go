package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/script"
)

// Registry says what a profile means on this cluster.
type Registry interface {
	// Resolve gives nodes, devices per node and the series, or a fault that
	// names the nearest valid values.
	Resolve(spec.Profile) (nodes, perNode int, s site.Series, err error)
}

// Input is everything Resolve looks at.
type Input struct {
	Spec      *spec.Spec
	Registry  Registry
	Snapshot  *slurm.Snapshot // nil when the cluster cannot be asked
	Fleet     string
	Bundle    Bundle
	NewBytes  int64
	StageIn   string // bash that brings the bundle to the node
	RunID     string
	RunDir    string // absolute, shared by all nodes
	User      string
	Env       []spec.EnvVar  // the caller's allow-list: PATH, HOME, …
	PathFirst string         // directory in front of the job's PATH, whoever sets it; "" for none
	Network   script.Network // the site's
	Software  site.Software
	Stat      func(path string) error // why an image's file is not seen here; nil: nobody looks
	Transport string
	// OtherWays were not taken, with the reason of each; AbsentWays are those
	// that nobody has set up here.
	OtherWays  []string
	AbsentWays []string
	Git        spec.Provenance
	Settings   []Setting
	Warnings   []string
	Gates      []gates.Gate        // gates.All() when nil
	Config     func() slurm.Record // slurm.conf, asked only where a gate needs it; nil when nobody can be
	// Rights, Parents and Licenses are for the gates.
	Rights   gates.Rights
	Parents  func() map[string]string
	Licenses func() map[string]int
	Now      time.Time
	// Asked is when the plan was first asked for, from which now+2h counts; Now when zero.
	Asked time.Time
	// Dependency is Spec.Job.After in the words of Slurm, with jobs for runs.
	Dependency string
	TTL        time.Duration // 30 min when 0
}

// DefaultTTL is how long a plan may be confirmed: as long as Slurm's default
// token lives, and as a person looks at a preview.
const DefaultTTL = 30 * time.Minute

// Resolve makes the plan. It touches nothing. An error is a *fault.Error that
// names the value and the nearest valid one.
func Resolve(in Input) (*Plan, error) {
	pools, warnings, err := pools(in)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, beforeDriver(pools)...)
	software, notes, err := software(in)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, notes...)
	components := collapse(pools)
	req := &slurm.Request{
		Name:       in.Spec.Name + "." + in.RunID,
		Comment:    "tp:" + in.RunID,
		Components: components,
		WorkDir:    in.RunDir,
		Output:     script.Pattern(in.RunDir) + "/logs/job-%j.log",
		Requeue:    in.Spec.Job.Requeue,
	}
	if err := jobWide(req, in); err != nil {
		return nil, err
	}
	env, err := environment(in)
	if err != nil {
		return nil, err
	}
	req.Env = env
	req.Script, err = script.Render(program(in, req, pools, software.Runtime))
	if err != nil {
		return nil, fault.New(fault.Usage, "%v", err)
	}
	warnings = append(warnings, handedDown(req, pools)...)
	if err := req.Validate(); err != nil {
		return nil, fault.New(fault.Usage, "the job cannot be asked for: %v", err)
	}
	p := &Plan{
		Version: 1,
		Issued:  in.Now.Round(0),
		Expires: in.Now.Add(ttl(in.TTL)).Round(0),
		Fixed: Fixed{
			RunID: in.RunID, RunDir: in.RunDir, User: in.User, Fleet: in.Fleet,
			Spec: in.Spec, Runtime: software.Runtime, Pools: pools, Request: req, Bundle: in.Bundle,
		},
		Observed: Observed{
			Transport: in.Transport, OtherWays: in.OtherWays, AbsentWays: in.AbsentWays, Warnings: append(in.Warnings, warnings...),
			Notes: wholeNodes(in, pools), DefaultAccount: in.Rights.Default(), NewBytes: in.NewBytes, Provenance: in.Git, Settings: in.Settings,
		},
	}
	if in.Snapshot != nil {
		p.Fixed.Cluster = in.Snapshot.Info.Cluster
		p.Observed.Release = in.Snapshot.Info.Release
	}
	list := in.Gates
	if list == nil {
		list = gates.All()
	}
	p.Observed.Verdicts = gates.Check(gates.Subject{Spec: in.Spec, Pools: pools, Snapshot: in.Snapshot, Software: software, Now: in.Now, Config: in.Config,
		Rights: in.Rights, Parents: in.Parents, Licenses: in.Licenses}, list...)
	p.Digest = p.Fixed.digest()
	return p, nil
}

func ttl(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultTTL
	}
	return d
}

// program is the batch script's content.
func program(in Input, req *slurm.Request, pools []spec.Pool, runtime spec.Runtime) script.Program {
	s := in.Spec
	p := script.Program{
		Request: req,
		Title:   fmt.Sprintf("%s · %s · %s", s.Experiment, s.Recipe.Name, in.RunID),
		RunID:   in.RunID, RunDir: in.RunDir, Attempt: 1,
		Vars: []slurm.EnvVar{
			{Name: "TP_EXPERIMENT", Value: s.Experiment},
			{Name: "TP_PROJECT", Value: s.Project},
			{Name: "TP_RECIPE", Value: s.Recipe.Name},
			{Name: "TP_FRAMEWORK", Value: s.Framework.Kind},
		},
		ExpDir:  path.Join("experiments", s.Experiment),
		Prolog:  prolog(in, runtime),
		StageIn: in.StageIn,
		Network: in.Network,
	}
	if len(s.Dirs) > 0 {
		p.ExpDir = s.Dirs[0]
	}
	var force []string
	if runtime.Contained() {
		force = forced(s, req.Env)
	}
	for _, role := range s.Roles {
		where := cmp.Or(role.Beside, role.Name)
		for _, pool := range pools {
			if !slices.Contains(pool.Roles, where) {
				continue
			}
			step := script.Step{
				Role: role.Name, Pool: pool.Name, Driver: role.Driver,
				Component: pool.Component, NodeOffset: pool.NodeOffset,
				Nodes: pool.Nodes, CPUs: pool.CPUsPerNode, GRES: gresOf(pool),
				GPUsPerNode: pool.GPUsPerNode, Body: role.Body, Needs: role.Needs,
				Runtime: runtime, Force: force,
			}
			switch role.Nodes {
			case spec.FirstNode:
				step.Count = 1
			case spec.LaterNodes:
				if pool.Nodes == 1 {
					continue
				}
				step.From = 1
			}
			if role.MPI != nil {
				step.MPI, step.Tasks = role.MPI.Plugin, cmp.Or(role.MPI.Tasks, pool.GPUsPerNode, 1)
			}
			p.Steps = append(p.Steps, step)
		}
	}
	return p
}

// environment is the job's whole environment: the caller's allow-list, then
// what recipe, job.toml and --env add; later wins, first place is kept.
func environment(in Input) ([]slurm.EnvVar, error) {
	var out []slurm.EnvVar
	index := map[string]int{}
	for _, list := range [][]spec.EnvVar{in.Env, in.Spec.Env} {
		for _, v := range list {
			if strings.ContainsRune(v.Value, 0) {
				return nil, fault.New(fault.Usage, "environment variable %s (%s) has a NUL byte", v.Name, v.Origin)
			}
			if !utf8.ValidString(v.Value) { // JSON would replace the bytes in silence
				return nil, fault.New(fault.Usage, "environment variable %s (%s) is no valid UTF-8", v.Name, v.Origin)
			}
			if i, ok := index[v.Name]; ok {
				out[i].Value = v.Value
				continue
			}
			index[v.Name] = len(out)
			out = append(out, slurm.EnvVar{Name: v.Name, Value: v.Value})
		}
	}
	if in.PathFirst != "" {
		i, ok := index["PATH"]
		if !ok {
			return nil, fault.New(fault.Usage, "the job has no PATH")
		}
		out[i].Value = in.PathFirst + ":" + out[i].Value
	}
	return out, startable(out)
}

// What Linux lets a program start with (execve(2)): 128 KiB for one variable,
// and for all of them and the arguments a quarter of the stack, 2 MiB by
// default, of which half is left to Slurm and to the job's own.
const (
	maxVariable    = 128<<10 - 1 // without the NUL
	maxEnvironment = 1 << 20
)

// startable refuses an environment that no program of the job could start with.
func startable(env []slurm.EnvVar) error {
	total := 0
	for _, v := range env {
		size := len(v.Name) + 1 + len(v.Value)
		if size > maxVariable {
			return fault.New(fault.Usage, "environment variable %s has %d bytes with its name, more than the %d that Linux allows", v.Name, size, maxVariable).
				WithHint("put the value into a file of the experiment")
		}
		total += size + 1
	}
	if total > maxEnvironment {
		return fault.New(fault.Usage, "the environment has %d bytes, more than %d; programs of the job might not start", total, maxEnvironment).
			WithHint("put large values into files of the experiment")
	}
	return nil
}
