package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// pools gives every profile its nodes, and every pool its effective limits.
// The pool of the driver comes first: component 0 runs the batch script.
func pools(in Input) ([]spec.Pool, []string, error) {
	var out []spec.Pool
	var warnings []string
	for _, profile := range in.Spec.Profiles {
		nodes, per, series, err := in.Registry.Resolve(profile)
		if err != nil {
			return nil, nil, err
		}
		roles := profile.Roles
		if len(roles) == 0 {
			for _, r := range in.Spec.Roles {
				if r.Beside == "" {
					roles = append(roles, r.Name)
				}
			}
		}
		p := spec.Pool{Name: roles[0], Roles: roles, Series: series.Name, GRES: series.GRES, Nodes: nodes, GPUsPerNode: per}
		notes, err := limits(&p, in, series)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, notes...)
		driver := false
		for _, r := range in.Spec.Roles {
			driver = driver || r.Driver && slices.Contains(p.Roles, r.Name)
		}
		if driver {
			out = append([]spec.Pool{p}, out...)
		} else {
			out = append(out, p)
		}
	}
	return out, warnings, nil
}

// limits fills partition, CPUs, memory, time and the like.
func limits(p *spec.Pool, in Input, series site.Series) ([]string, error) {
	job := in.Spec.Job
	p.Account, p.QOS = job.Account.For(p.Roles...), job.QOS.For(p.Roles...)
	p.Reservation, p.Constraint = job.Reservation.For(p.Roles...), job.Constraint.For(p.Roles...)
	if p.Constraint == "" {
		p.Constraint = series.Constraint
	}
	p.Partition = job.Partition.For(p.Roles...)
	siteDefaults(p, in, series)
	if p.Partition == "" {
		if len(series.Partitions) == 0 {
			return nil, fault.Gate("admission", "series %s is in no partition that you can see", series.Name).WithHint("--partition %sNAME, or tp fleet show", in.only(p))
		}
		p.Partition = series.Partitions[0]
	}
	if err := cpusAndMemory(p, job, series); err != nil {
		return nil, err
	}
	if err := memoryRule(p, in, series.Ways); err != nil {
		return nil, err
	}
	notes, err := timeLimit(p, in, series)
	if err != nil {
		return nil, err
	}
	if err := asked(p, job.Slurm); err != nil {
		return nil, err
	}
	siteShape(p, series.Ways)
	return notes, nil
}

// cpusAndMemory: a pool that takes part of a node's devices gets the same part
// of its CPUs and memory unless told otherwise.
func cpusAndMemory(p *spec.Pool, job spec.Job, series site.Series) error {
	part := func(whole int64) int64 {
		if series.Devices > 0 && p.GPUsPerNode < series.Devices {
			return whole * int64(p.GPUsPerNode) / int64(series.Devices)
		}
		return whole
	}
	p.CPUsPerNode = max(1, int(part(int64(series.CPUs))))
	if text := job.CPUsPerNode.For(p.Roles...); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<16 {
			return fault.New(fault.Usage, "--cpus-per-node %q: expected a whole number from 1 to 65536", text)
		}
		p.CPUsPerNode = n
	}
	p.MemoryMiB = part(int64(series.Memory))
	return memory(p, job, int64(series.Memory))
}

// memory is asked for per node, per CPU or per GPU. A value for the pool's role
// goes before one for everybody.
func memory(p *spec.Pool, job spec.Job, whole int64) error {
	modes := []struct {
		flag string
		of   spec.PerRole
	}{{"--mem", job.Memory}, {"--mem-per-cpu", job.MemPerCPU}, {"--mem-per-gpu", job.MemPerGPU}}
	var given, own []int
	for i, m := range modes {
		if m.of.For(p.Roles...) != "" {
			given = append(given, i)
		}
		if m.of.For(p.Roles...) != m.of[""] {
			own = append(own, i)
		}
	}
	if len(own) > 0 {
		given = own
	}
	switch len(given) {
	case 0:
		return nil
	case 1:
	default:
		return fault.New(fault.Usage, "pool %s: %s and %s exclude each other", p.Name, modes[given[0]].flag, modes[given[1]].flag)
	}
	mode := modes[given[0]]
	mib, err := spec.ParseMemory(mode.of.For(p.Roles...))
	if err != nil {
		return fault.New(fault.Usage, "%s: %v", mode.flag, err)
	}
	switch mode.flag {
	case "--mem":
		p.MemoryMiB = mib
		if mib == 0 { // the whole node
			p.MemoryMiB = whole
		}
	case "--mem-per-cpu":
		p.Asked.MemPerCPU, p.MemoryMiB = mib, mib*int64(p.CPUsPerNode)
	case "--mem-per-gpu":
		if p.GPUsPerNode == 0 {
			return fault.New(fault.Usage, "pool %s has no GPUs that --mem-per-gpu could count", p.Name).WithHint("--mem-per-gpu ROLE=SIZE for the other pools")
		}
		p.Asked.MemPerGPU, p.MemoryMiB = mib, mib*int64(p.GPUsPerNode)
	}
	return nil
}

// timeLimit is never silently the partition's default: it is looked up, shown
// and sent.
func timeLimit(p *spec.Pool, in Input, series site.Series) ([]string, error) {
	if text := series.Ways.Time; text != "" && in.general(series, "time", p.Roles, in.Spec.Job.Time) {
		minutes, err := spec.ParseTime(text)
		p.TimeMinutes = minutes
		return nil, err
	}
	if text := in.Spec.Job.Time.For(p.Roles...); text != "" {
		minutes, err := spec.ParseTime(text)
		if err != nil {
			return nil, fault.New(fault.Usage, "--time: %v", err)
		}
		p.TimeMinutes = minutes
		return nil, nil
	}
	if in.Snapshot != nil {
		if part, ok := in.Snapshot.Partition(p.Partition); ok {
			limit := part.DefaultTime
			if limit <= 0 {
				limit = part.MaxTime
			}
			if limit > 0 {
				p.TimeMinutes = int(limit)
				return []string{fmt.Sprintf("no time limit was given for pool %s: the default of partition %s, %s, is used (--time %sTIME)", p.Name, p.Partition, limit, in.only(p))}, nil
			}
		}
	}
	return nil, fault.New(fault.Usage, "pool %s has no time limit and partition %s gives none", p.Name, p.Partition).WithHint("--time %s4h", in.only(p))
}

// only is what stands before a flag's value so that it changes this pool alone:
// nothing where there is no other.
func (in Input) only(p *spec.Pool) string {
	if len(in.Spec.Profiles) > 1 {
		return p.Roles[0] + "="
	}
	return ""
}

// beforeDriver warns of pools whose time is over before the driver's: the run
// ends with the first pool that Slurm ends.
func beforeDriver(pools []spec.Pool) []string {
	var out []string
	for _, p := range pools[1:] {
		driver := pools[0]
		if p.TimeMinutes > 0 && (driver.TimeMinutes < 0 || p.TimeMinutes < driver.TimeMinutes) {
			out = append(out, fmt.Sprintf("pool %s ends before the driver: its time limit is %s, that of pool %s %s, and the run ends with TIMEOUT if its roles still run then (--time %s=%s)",
				p.Name, slurm.Minutes(p.TimeMinutes), driver.Name, slurm.Minutes(driver.TimeMinutes), p.Roles[0], slurm.Minutes(driver.TimeMinutes)))
		}
	}
	return out
}

// wholeNodes says which pools take all of their nodes although they use no
// devices of them, for that is what a count of nodes means when nothing else is said.
func wholeNodes(in Input, pools []spec.Pool) []string {
	var out []string
	for i, p := range pools {
		job := in.Spec.Job
		if p.GPUsPerNode > 0 || p.CPUsPerNode <= 1 || job.CPUsPerNode.For(p.Roles...) != "" ||
			job.Memory.For(p.Roles...) != "" || job.MemPerCPU.For(p.Roles...) != "" {
			continue
		}
		memory := ""
		if p.MemoryMiB > 0 {
			memory = " and " + slurm.MiB(p.MemoryMiB).String()
		}
		only := in.only(&pools[i])
		out = append(out, fmt.Sprintf("pool %s takes whole nodes of series %s, %d CPUs%s each; for less: --cpus-per-node %sN --mem %sSIZE", p.Name, p.Series, p.CPUsPerNode, memory, only, only))
	}
	return out
}

// collapse puts pools that look the same to Slurm into one component, whose
// nodes they share out in order. One component is a plain job.
func collapse(pools []spec.Pool) []slurm.Component {
	var components []slurm.Component
	index := map[string]int{}
	for i := range pools {
		p := &pools[i]
		c := slurm.Component{
			Partition: p.Partition, Account: p.Account, QOS: p.QOS, Reservation: p.Reservation, Constraint: p.Constraint,
			TasksPerNode: 1, CPUsPerTask: p.CPUsPerNode, Memory: slurm.MiB(p.MemoryMiB), GRES: gresOf(*p),
			TimeLimit: slurm.Minutes(p.TimeMinutes),
		}
		ask(&c, p.Asked)
		askAsSite(&c, *p)
		key := fmt.Sprintf("%+v", c)
		at, known := index[key]
		if !known {
			at = len(components)
			index[key] = at
			components = append(components, c)
		}
		p.Component, p.NodeOffset = at, components[at].Nodes
		components[at].Nodes += p.Nodes
	}
	return components
}

func gresOf(p spec.Pool) []slurm.GRES {
	if p.GPUsPerNode == 0 || p.GRES == "" || site.GPURequest(p.GPURequest) == site.NotRequested {
		return nil
	}
	name, typ, _ := strings.Cut(p.GRES, ":")
	return []slurm.GRES{{Name: name, Type: typ, Count: p.GPUsPerNode}}
}
