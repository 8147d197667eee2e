package cli

import (
	"context"

	"github.com/tuneplane/tp/slurm"
)

// Config is slurm.conf as slurmctld uses it.
func (t Tools) Config(ctx context.Context) (slurm.Record, error) {
	out, err := t.call("scontrol", "show", "config").output(ctx)
	if err != nil {
		return nil, err
	}
	return slurm.ParseConfig(string(out)), nil
}
