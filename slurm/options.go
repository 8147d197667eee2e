package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Option is one option of sbatch(1): --name=value, or --name alone when Bare.
type Option struct {
	Name, Value string
	Bare        bool
	// Field is the field of Request or Component it stands for.
	Field string
}

// Options is the request in the words of sbatch, a list for each component;
// those of the whole job lead the first. What sbatch hands down from component
// 0 to the others is repeated, so that what is written is what holds
// (sbatch(1), heterogeneous jobs). The environment and the script are not
// options. [script.Render] writes these as #SBATCH lines, slurm/cli as arguments.
func (r *Request) Options() [][]Option {
	out := make([][]Option, len(r.Components))
	out[0] = r.jobOptions()
	for i := range r.Components {
		out[i] = append(out[i], r.Components[i].options()...)
		earlier := slices.ContainsFunc(r.Components[:i], func(c Component) bool { return len(c.Exclude) > 0 })
		if earlier && len(r.Components[i].Exclude) == 0 {
			// Handed down too, and undone by an empty list (tried on 22.05.8, 24.11.5, 26.05.5).
			out[i] = append(out[i], Option{Name: "exclude", Field: "Exclude"})
		}
	}
	return out
}

// HandedDown names the fields of component i that it leaves to Slurm and that
// sbatch, other than slurmrestd, takes from an earlier component (sbatch of
// 22.05.8, 24.11.5 and 26.05.5). An empty value cannot undo these: the account
// and QOS "" are refused.
func (r *Request) HandedDown(i int) []string {
	var out []string
	for _, f := range []struct {
		name string
		set  func(Component) bool
	}{
		{"Account", func(c Component) bool { return c.Account != "" }},
		{"QOS", func(c Component) bool { return c.QOS != "" }},
		{"Prefer", func(c Component) bool { return c.Prefer != "" }},
		{"TimeMin", func(c Component) bool { return c.TimeMin != 0 }},
	} {
		if !f.set(r.Components[i]) && slices.ContainsFunc(r.Components[:i], f.set) {
			out = append(out, f.name)
		}
	}
	return out
}

type options []Option

func (o *options) add(field, name, value string) {
	if value != "" {
		*o = append(*o, Option{Name: name, Value: value, Field: field})
	}
}

func (o *options) number(field, name string, n int) {
	if n != 0 {
		o.add(field, name, fmt.Sprint(n))
	}
}

func (o *options) flag(field, name string, on bool) {
	if on {
		*o = append(*o, Option{Name: name, Bare: true, Field: field})
	}
}

func (r *Request) jobOptions() []Option {
	var o options
	o.add("Name", "job-name", r.Name)
	o.add("Comment", "comment", r.Comment)
	o.add("WorkDir", "chdir", r.WorkDir)
	o.add("Output", "output", r.Output)
	o.add("Error", "error", r.Error)
	o.add("Output", "open-mode", "append")
	o.flag("Requeue", "requeue", r.Requeue)
	o.flag("Requeue", "no-requeue", !r.Requeue)
	o.add("Begin", "begin", clock(r.Begin))
	o.add("Deadline", "deadline", clock(r.Deadline))
	if r.Dependency != "" {
		o.add("Dependency", "dependency", r.Dependency)
		o.add("Dependency", "kill-on-invalid-dep", "yes")
	}
	o.add("Array", "array", r.Array)
	o.flag("Hold", "hold", r.Hold)
	o.number("Nice", "nice", r.Nice)
	o.number("Priority", "priority", r.Priority)
	o.add("Signal", "signal", r.Signal.String())
	o.add("MailType", "mail-type", strings.Join(r.MailType, ","))
	o.add("MailUser", "mail-user", r.MailUser)
	o.add("WCKey", "wckey", r.WCKey)
	o.add("Extra", "extra", r.Extra)
	o.add("Container", "container", r.Container)
	return o
}

func (c *Component) options() []Option {
	var o options
	o.add("Partition", "partition", c.Partition)
	o.add("Account", "account", c.Account)
	o.add("QOS", "qos", c.QOS)
	o.add("Reservation", "reservation", c.Reservation)
	o.add("Constraint", "constraint", c.Constraint)
	o.add("Prefer", "prefer", c.Prefer)
	o.add("Licenses", "licenses", c.Licenses)
	o.add("NodeList", "nodelist", strings.Join(c.NodeList, ","))
	o.add("Exclude", "exclude", strings.Join(c.Exclude, ","))
	o.number("Nodes", "nodes", c.Nodes)
	o.number("TasksPerNode", "ntasks", c.Tasks())
	o.number("TasksPerNode", "ntasks-per-node", max(1, c.TasksPerNode))
	o.number("CPUsPerTask", "cpus-per-task", c.CPUsPerTask)
	switch {
	case c.Memory == WholeNode:
		o.add("Memory", "mem", "0")
	case c.Memory > 0:
		o.add("Memory", "mem", c.Memory.String())
	}
	if c.MemoryPerCPU > 0 {
		o.add("MemoryPerCPU", "mem-per-cpu", c.MemoryPerCPU.String())
	}
	if c.MemoryPerGPU > 0 {
		o.add("MemoryPerGPU", "mem-per-gpu", c.MemoryPerGPU.String())
	}
	gres, gpus := c.gresOptions()
	o.add("GRES", "gres", gres)
	o.add("GRES", "gpus-per-node", gpus)
	o.add("TimeLimit", "time", c.TimeLimit.String())
	o.add("TimeMin", "time-min", c.TimeMin.String())
	switch c.Share {
	case ShareDefault:
	case Exclusive:
		o.flag("Share", "exclusive", true)
	case Oversubscribe:
		o.flag("Share", "oversubscribe", true)
	default:
		o.add("Share", "exclusive", string(c.Share))
	}
	o.add("Network", "network", c.Network)
	if c.Switches > 0 {
		value := fmt.Sprint(c.Switches)
		if c.SwitchWait > 0 { // sbatch reads minutes first: 0:30 is half a minute
			s := int(c.SwitchWait / time.Second)
			value += fmt.Sprintf("@%d:%02d", s/60, s%60)
		}
		o.add("Switches", "switches", value)
	}
	o.number("Segment", "segment", c.Segment)
	return o
}

// gresOptions are the values of --gres and --gpus-per-node.
func (c *Component) gresOptions() (gres, gpus string) {
	var generic, perNode []string
	for _, g := range c.GRES {
		text, isGPU := strings.CutPrefix(g.String(), "gpu:")
		if isGPU && c.GPUOption == "gpus-per-node" {
			perNode = append(perNode, text)
		} else {
			generic = append(generic, g.String())
		}
	}
	return strings.Join(generic, ","), strings.Join(perNode, ",")
}

// String is the value of sbatch --signal; "" for none.
func (s Signal) String() string {
	if s.Name == "" {
		return ""
	}
	text := fmt.Sprintf("%s@%d", s.Name, int(s.Before.Seconds()))
	if s.BatchOnly {
		return "B:" + text
	}
	return text
}

// clock is a time as sbatch reads it, in the submitting host's zone.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02T15:04:05")
}
