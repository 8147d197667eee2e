package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// general reports whether the roles' value of a setting is missing, or is that
// of the site file for all series, to which one of the series itself is closer.
// What user, lab and flags say always wins.
func (in Input) general(s site.Series, key string, roles []string, value spec.PerRole) bool {
	if value.For(roles...) == "" {
		return true
	}
	names := []string{key}
	for _, r := range roles {
		if _, own := value[r]; own {
			names = []string{key + "." + r}
			break
		}
	}
	file, _ := cutLine(s.Origin)
	return slices.ContainsFunc(in.Settings, func(set Setting) bool {
		at, ok := cutLine(set.Origin)
		return ok && at == file && slices.Contains(names, set.Key)
	})
}

// cutLine takes the file from an origin, "/etc/tp/site.toml:12".
func cutLine(origin string) (file string, ok bool) {
	at := strings.LastIndexByte(origin, ':')
	if at < 0 {
		return "", false
	}
	return origin[:at], true
}

// siteDefaults fills what the site says about a series and nobody else says.
func siteDefaults(p *spec.Pool, in Input, s site.Series) {
	w, job := s.Ways, in.Spec.Job
	for _, d := range []struct {
		key, text string
		value     spec.PerRole
		into      *string
	}{
		{"account", w.Account, job.Account, &p.Account},
		{"qos", w.QOS, job.QOS, &p.QOS},
		{"reservation", w.Reservation, job.Reservation, &p.Reservation},
		{"partition", first(s.Partitions), job.Partition, &p.Partition},
		{"constraint", s.Constraint, job.Constraint, &p.Constraint},
	} {
		if d.text != "" && in.general(s, d.key, p.Roles, d.value) {
			*d.into = d.text
		}
	}
	p.GPURequest, p.MemoryRule = string(w.GPURequest), string(w.Memory)
}

// siteShape says how a series is laid out and shared, where the job does not.
func siteShape(p *spec.Pool, w site.Ways) {
	p.Asked.Exclusive = cmp.Or(p.Asked.Exclusive, string(w.Share))
	p.Asked.Segment = cmp.Or(p.Asked.Segment, w.Segment)
	p.Asked.Switches = cmp.Or(p.Asked.Switches, w.Switches)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// memoryRule holds a pool's memory against what the site wants of requests.
func memoryRule(p *spec.Pool, in Input, w site.Ways) error {
	switch w.Memory {
	case site.ForbidMemory:
		job := in.Spec.Job
		for _, mode := range []struct {
			flag string
			of   spec.PerRole
		}{{"--mem", job.Memory}, {"--mem-per-cpu", job.MemPerCPU}, {"--mem-per-gpu", job.MemPerGPU}} {
			if text := mode.of.For(p.Roles...); text != "" {
				return fault.New(fault.Usage, "pool %s asks for memory (%s %s), which this site forbids: mem = \"forbid\" at %s", p.Name, mode.flag, text, w.MemoryOrigin).
					WithHint("leave it out of flags and files; the partition decides")
			}
		}
		p.MemoryMiB = 0
	case site.RequireMemory, site.PerCPUMemory:
		if p.MemoryMiB == 0 {
			return fault.New(fault.Usage, "pool %s asks for no memory, and this site wants it said: mem = %q at %s", p.Name, w.Memory, w.MemoryOrigin).
				WithHint("--mem %s=64G, or memory under [series.%s] in the site file", p.Roles[0], p.Series)
		}
		if w.Memory == site.PerCPUMemory { // what is shown is what is asked for, whole mebibytes for each CPU
			p.MemoryMiB = max(1, p.MemoryMiB/int64(p.CPUsPerNode)) * int64(p.CPUsPerNode)
		}
	}
	return nil
}

// askAsSite writes a component the way the site wants to be asked.
func askAsSite(c *slurm.Component, p spec.Pool) {
	if site.GPURequest(p.GPURequest) == site.ByGPUsPerNode {
		c.GPUOption = p.GPURequest
	}
	if site.MemoryRule(p.MemoryRule) == site.PerCPUMemory && c.Memory > 0 { // never both
		// Rounded down, so that all CPUs together stay within the node.
		c.Memory, c.MemoryPerCPU = 0, max(1, c.Memory/slurm.MiB(max(1, c.CPUsPerTask*max(1, c.TasksPerNode))))
	}
}

// prolog is what the series want run first, each line once, then what the
// runtime is made of, then the job's own.
func prolog(in Input, runtime spec.Runtime) []string {
	var lines []string
	for _, profile := range in.Spec.Profiles {
		if _, _, s, err := in.Registry.Resolve(profile); err == nil {
			for _, line := range s.Ways.Prolog {
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	return slices.Concat(lines, runtime.Prolog, in.Spec.Job.Prolog)
}
