package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tuneplane/tp/slurm"
)

const (
	maxComponents = 128     // MAX_HET_JOB_COMPONENTS
	maxScript     = 4 << 20 // slurm.conf(5) max_script_size, the default
	maxName       = 200     // slurm.Request.Name
	maxVariable   = 255     // sbatch drops a variable with a longer name
	maxString     = 128<<10 - 1
)

// Check does everything about a submission but to send it: an error for what
// sbatch of this release cannot express or must not be asked, warnings for what
// is left out. It belongs in the preview.
func (c *Client) Check(ctx context.Context, r *slurm.Request) (warnings []string, err error) {
	_, warnings, err = c.arguments(ctx, r)
	return warnings, err
}

// arguments are the options of each component as sbatch is given them.
func (c *Client) arguments(ctx context.Context, r *slurm.Request) (components [][]string, warnings []string, err error) {
	if err := check(r); err != nil {
		return nil, nil, err
	}
	version, err := c.Version(ctx)
	if err != nil {
		return nil, nil, err
	}
	all := r.Options()
	for i, list := range all {
		kept, lost, err := supported(list, version)
		if err != nil {
			return nil, nil, err
		}
		all[i], warnings = kept, append(warnings, lost...)
		var args []string
		for _, o := range kept {
			if o.Bare {
				args = append(args, "--"+o.Name)
			} else {
				args = append(args, "--"+o.Name+"="+o.Value)
			}
		}
		components = append(components, args)
	}
	foreign, err := foreignDirectives(r.Script, all)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range r.Env {
		// sbatch itself drops these from an environment that it reads; slurmd
		// sets the last two anew anyway.
		if slices.Contains([]string{"DISPLAY", "HOSTNAME", "ENVIRONMENT"}, v.Name) {
			warnings = append(warnings, fmt.Sprintf("Env: sbatch does not carry %s to the job", v.Name))
		}
	}
	return components, append(warnings, foreign...), nil
}

// check refuses what sbatch would take for something else.
func check(r *slurm.Request) error {
	switch n := len(r.Components); {
	case n == 0:
		return errors.New("the request has no component")
	case n > maxComponents:
		return fmt.Errorf("%d components: Slurm takes at most %d", n, maxComponents)
	case n > 1 && r.Array != "":
		return errors.New("a heterogeneous job cannot be an array")
	case !strings.HasPrefix(r.Script, "#!"):
		return errors.New(`the batch script does not start with "#!"`)
	case strings.Contains(r.Script, "\r\n"):
		return errors.New("the batch script has DOS line ends (CRLF)")
	case strings.IndexByte(r.Script, 0) >= 0:
		return errors.New("the batch script holds a NUL byte")
	case len(r.Script) > maxScript:
		return fmt.Errorf("the batch script has %d bytes: Slurm takes at most %d", len(r.Script), maxScript)
	case len(r.Env) == 0:
		return errors.New("the environment is empty: Slurm refuses such a job")
	case !path.IsAbs(r.WorkDir):
		return fmt.Errorf("the working directory %q is not absolute", r.WorkDir)
	case len(r.Name) > maxName:
		return fmt.Errorf("the job name has %d bytes: at most %d", len(r.Name), maxName)
	}
	for _, v := range r.Env {
		switch {
		case v.Name == "" || len(v.Name) > maxVariable || strings.ContainsAny(v.Name, "=\x00"):
			return fmt.Errorf("bad name of an environment variable: %q", v.Name)
		case strings.IndexByte(v.Value, 0) >= 0:
			return fmt.Errorf("environment variable %s holds a NUL byte", v.Name)
		case len(v.Name)+1+len(v.Value) > maxString:
			return fmt.Errorf("environment variable %s has %d bytes: no program starts with more than %d", v.Name, len(v.Value), maxString)
		}
	}
	for i := range r.Components {
		if err := checkComponent(&r.Components[i]); err != nil {
			return fmt.Errorf("component %d: %w", i, err)
		}
	}
	for i, list := range r.Options() {
		for _, o := range list {
			if strings.ContainsFunc(o.Value, unicode.IsControl) {
				return fmt.Errorf("component %d: %s %q holds a control character", i, o.Field, o.Value)
			}
		}
	}
	return nil
}

func checkComponent(c *slurm.Component) error {
	memory := 0
	for _, m := range []slurm.MiB{c.Memory, c.MemoryPerCPU, c.MemoryPerGPU} {
		if m != 0 {
			memory++
		}
	}
	switch {
	case c.Nodes < 1:
		return fmt.Errorf("%d nodes", c.Nodes)
	case c.CPUsPerTask < 0 || c.TasksPerNode < 0 || c.Memory < slurm.WholeNode || c.MemoryPerCPU < 0 || c.MemoryPerGPU < 0 || c.Switches < 0 || c.Segment < 0:
		return errors.New("a negative count")
	case memory > 1:
		return errors.New("memory is asked for in two ways")
	case c.TimeLimit < slurm.Unlimited || c.TimeMin < slurm.Unlimited:
		return fmt.Errorf("a time limit of %d minutes", int(min(c.TimeLimit, c.TimeMin)))
	}
	switch c.Share {
	case slurm.ShareDefault, slurm.Exclusive, slurm.ExclusiveUser, slurm.ExclusiveMCS, slurm.ExclusiveTopo, slurm.Oversubscribe:
	default:
		return fmt.Errorf("unknown way to share nodes %q", c.Share)
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
	return nil
}
