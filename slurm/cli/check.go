package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tuneplane/tp/slurm"
)

const (
	maxVariable = 255         // bytes; sbatch drops a variable with a longer name
	maxString   = 128<<10 - 1 // bytes of NAME=value; Linux's MAX_ARG_STRLEN
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
	for _, list := range all {
		if err := supported(list, version); err != nil {
			return nil, nil, err
		}
	}
	inScript, err := apart(r, all)
	if err != nil {
		return nil, nil, err
	}
	for _, list := range all {
		var args []string
		if inScript {
			list = nil
		}
		for _, o := range list {
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
	if err := r.Validate(); err != nil {
		return err
	}
	for _, v := range r.Env {
		switch {
		case len(v.Name) > maxVariable:
			return fmt.Errorf("the name of an environment variable has %d bytes, sbatch takes at most %d: %.40q…", len(v.Name), maxVariable, v.Name)
		case len(v.Name)+1+len(v.Value) > maxString:
			return fmt.Errorf("environment variable %s has %d bytes: no program starts with more than %d", v.Name, len(v.Value), maxString)
		}
	}
	for i, c := range r.Components {
		for _, node := range slices.Concat(c.NodeList, c.Exclude) {
			if strings.Contains(node, "/") {
				return fmt.Errorf("component %d: %q is no node name, sbatch would read the list from that file", i, node)
			}
		}
	}
	for i, list := range r.Options() {
		for _, o := range list { // also those that Validate does not know yet
			if strings.ContainsFunc(o.Value, unicode.IsControl) {
				return fmt.Errorf("component %d: %s %q holds a control character", i, o.Field, o.Value)
			}
		}
	}
	return nil
}
