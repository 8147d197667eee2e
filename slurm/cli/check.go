package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/tuneplane/tp/slurm"
)

const (
	maxVariable = 255 // sbatch drops a variable with a longer name
	maxString   = 128<<10 - 1
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

// check refuses what sbatch would take for something else, and what no program
// can start with.
func check(r *slurm.Request) error {
	if err := r.Validate(); err != nil {
		return err
	}
	for _, v := range r.Env {
		switch {
		case len(v.Name) > maxVariable:
			return fmt.Errorf("bad name of an environment variable: %q", v.Name)
		case len(v.Name)+1+len(v.Value) > maxString:
			return fmt.Errorf("environment variable %s has %d bytes: no program starts with more than %d", v.Name, len(v.Value), maxString)
		}
	}
	return nil
}
