package cli

import "context"

// Config is slurm.conf as slurmctld uses it: the value of each key, "" for one
// that is not there.
func (t Tools) Config(ctx context.Context, keys ...string) ([]string, error) {
	out, err := t.call("scontrol", "show", "config").output(ctx)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = setting(string(out), key)
	}
	return values, nil
}
