package slurm

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of Slurm that [Request.Validate] holds a request against.
const (
	MaxComponents = 128        // MAX_HET_JOB_COMPONENTS
	MaxScript     = 4 << 20    // bytes; slurm.conf(5) max_script_size, the default
	MaxName       = 200        // bytes; of Slurm's 1024, for names become parts of paths
	MaxPriority   = 4294967293 // NO_VAL - 1: what is above has other meanings
	MaxNice       = 2147483645 // NICE_OFFSET - 3, sbatch(1)
)

// MailTypes are the words of sbatch --mail-type that a request may hold. NONE
// stands alone.
var MailTypes = []string{
	"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT",
	"TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

// Validate does what the sbatch client does before it asks, for slurmrestd
// takes anything: a script without "#!" is queued and fails on the node. Every
// transport calls it first. What only the cluster can know (a partition's
// name), and whether a time has passed, is not its business.
func (r *Request) Validate() error {
	switch n := len(r.Components); {
	case n == 0:
		return errors.New("the request has no component")
	case n > MaxComponents:
		return fmt.Errorf("%d components: Slurm takes at most %d", n, MaxComponents)
	case n > 1 && r.Array != "":
		return fmt.Errorf("an array (%s) of a job with %d components: Slurm has no arrays of heterogeneous jobs", r.Array, n)
	}
	for _, check := range []func() error{r.validateScript, r.validateEnv, r.validateLines, r.validateNumbers, r.validateWords} {
		if err := check(); err != nil {
			return err
		}
	}
	for i := range r.Components {
		if err := r.Components[i].validate(i); err != nil {
			return fmt.Errorf("component %d: %w", i, err)
		}
	}
	return nil
}

func (r *Request) validateScript() error {
	switch {
	case !strings.HasPrefix(r.Script, "#!"):
		return errors.New(`the batch script does not start with "#!"`)
	case strings.Contains(r.Script, "\r\n"):
		return errors.New("the batch script has DOS line ends (CRLF)")
	case len(r.Script) > MaxScript:
		return fmt.Errorf("the batch script has %d bytes: Slurm takes at most %d (max_script_size)", len(r.Script), MaxScript)
	}
	return noNUL("the batch script", r.Script)
}

func (r *Request) validateEnv() error {
	if len(r.Env) == 0 {
		return errors.New("the environment is empty: Slurm refuses such a job")
	}
	for _, v := range r.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || !utf8.ValidString(v.Name) {
			return fmt.Errorf("bad name of an environment variable: %q", v.Name)
		}
		if err := noNUL("environment variable "+v.Name, v.Value); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) validateLines() error {
	switch {
	case r.WorkDir == "":
		return errors.New("the working directory is missing: the job would fail on the node")
	case !path.IsAbs(r.WorkDir):
		return fmt.Errorf("the working directory %q is not absolute", r.WorkDir)
	case r.Container != "" && !path.IsAbs(r.Container):
		return fmt.Errorf("the container bundle %q is not absolute", r.Container)
	case len(r.Name) > MaxName:
		return fmt.Errorf("the job name has %d bytes: at most %d", len(r.Name), MaxName)
	}
	return oneLine([]line{
		{"name", r.Name}, {"comment", r.Comment}, {"working directory", r.WorkDir}, {"output", r.Output}, {"error file", r.Error},
		{"dependency", r.Dependency}, {"array", r.Array}, {"signal", r.Signal.Name}, {"mail user", r.MailUser},
		{"mail type", strings.Join(r.MailType, ",")}, {"wckey", r.WCKey}, {"extra", r.Extra}, {"container", r.Container},
	})
}

func (r *Request) validateNumbers() error {
	switch {
	case r.Priority < 0 || r.Priority > MaxPriority:
		return fmt.Errorf("priority %d: expected 1 to %d, or 0 for Slurm's own", r.Priority, MaxPriority)
	case r.Priority > 0 && r.Hold:
		return fmt.Errorf("priority %d of a held job: holding is a priority of 0", r.Priority)
	case r.Nice < -MaxNice || r.Nice > MaxNice:
		return fmt.Errorf("nice %d: expected -%d to %d", r.Nice, MaxNice, MaxNice)
	case r.Signal.Name != "" && (r.Signal.Before < time.Second || r.Signal.Before > 65535*time.Second):
		return fmt.Errorf("signal %s %s before the end: expected 1 to 65535 seconds", r.Signal.Name, r.Signal.Before)
	}
	return nil
}

func (r *Request) validateWords() error {
	for _, word := range r.MailType {
		switch {
		case !slices.Contains(MailTypes, word):
			return fmt.Errorf("mail type %q: expected %s", word, strings.Join(MailTypes, ", "))
		case word == "NONE" && len(r.MailType) > 1:
			return fmt.Errorf("mail type NONE stands alone, not in %s", strings.Join(r.MailType, ","))
		}
	}
	return nil
}

func (c *Component) validate(i int) error {
	switch {
	case c.Nodes < 1:
		return fmt.Errorf("%d nodes", c.Nodes)
	case c.CPUsPerTask < 0 || c.TasksPerNode < 0 || c.MemoryPerCPU < 0 || c.MemoryPerGPU < 0 || c.Switches < 0 || c.SwitchWait < 0 || c.Segment < 0:
		return errors.New("a negative count")
	case c.Memory < WholeNode:
		return fmt.Errorf("%d MiB of memory", int64(c.Memory))
	case c.TimeLimit < Unlimited || c.TimeMin < 0:
		return fmt.Errorf("a time limit of %d minutes, at least %d", int(c.TimeLimit), int(c.TimeMin))
	case c.TimeMin > 0 && c.TimeLimit > 0 && c.TimeMin > c.TimeLimit:
		return fmt.Errorf("the least time limit %s is over the time limit %s", c.TimeMin, c.TimeLimit)
	case i > 0 && c.Licenses != "":
		return errors.New("licences can only be asked for by component 0")
	case c.SwitchWait > 0 && c.Switches == 0:
		return errors.New("a time to wait for switches without a number of switches")
	case c.GPUOption != "" && c.GPUOption != "gres" && c.GPUOption != "gpus-per-node":
		return fmt.Errorf("GPU option %q: expected gres or gpus-per-node", c.GPUOption)
	}
	if memory := c.memoryModes(); len(memory) > 1 {
		return fmt.Errorf("memory is asked for in two ways: %s", strings.Join(memory, " and "))
	}
	if c.MemoryPerGPU > 0 && !slices.ContainsFunc(c.GRES, func(g GRES) bool { return g.Name == "gpu" && g.Count > 0 }) {
		return errors.New("memory per GPU without a GPU")
	}
	switch c.Share {
	case ShareDefault, Exclusive, ExclusiveUser, ExclusiveMCS, ExclusiveTopo, Oversubscribe:
	default:
		return fmt.Errorf("sharing %q: expected exclusive, user, mcs, topo or oversubscribe", string(c.Share))
	}
	for _, node := range slices.Concat(c.NodeList, c.Exclude) {
		if strings.Contains(node, "/") { // sbatch would read the list from that file
			return fmt.Errorf("%q is no node name", node)
		}
	}
	for _, g := range c.GRES {
		if g.Name == "" || g.Count < 0 || strings.ContainsAny(g.Name+g.Type, ":,= \t\n\x00") {
			return fmt.Errorf("bad GRES %q", g)
		}
	}
	return oneLine([]line{
		{"partition", c.Partition}, {"account", c.Account}, {"QOS", c.QOS}, {"reservation", c.Reservation},
		{"constraint", c.Constraint}, {"preferred features", c.Prefer}, {"licences", c.Licenses}, {"network", c.Network},
		{"node list", strings.Join(c.NodeList, ",")}, {"excluded nodes", strings.Join(c.Exclude, ",")},
	})
}

func (c *Component) memoryModes() []string {
	var out []string
	if c.Memory != 0 {
		out = append(out, "per node")
	}
	if c.MemoryPerCPU != 0 {
		out = append(out, "per CPU")
	}
	if c.MemoryPerGPU != 0 {
		out = append(out, "per GPU")
	}
	return out
}

// noNUL: a NUL ends a C string.
func noNUL(what, s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%s holds a NUL byte", what)
	}
	return nil
}

type line struct{ what, text string }

func oneLine(lines []line) error {
	for _, l := range lines {
		if strings.ContainsFunc(l.text, unicode.IsControl) {
			return fmt.Errorf("%s %q holds a control character", l.what, l.text)
		}
		if !utf8.ValidString(l.text) {
			return fmt.Errorf("%s %q is not valid UTF-8", l.what, l.text)
		}
	}
	return nil
}
