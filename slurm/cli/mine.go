package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// separator cannot occur in reasons and is unlikely in names, which come last
// and so may hold anything but a newline.
const separator = "\x1f"

var mineFormat = strings.Join([]string{"%A", "%i", "%T", "%r", "%u", "%P", "%j"}, separator)

// Mine lists the caller's jobs that slurmctld remembers, ended ones included,
// as far as squeue tells: ids, state, reason, user, partition and name. Both
// --me and the state filter are applied by the controller, not here.
func (t Tools) Mine(ctx context.Context) ([]slurm.Job, error) {
	out, err := t.run(ctx, t.Path("squeue"), "--me", "--noheader", "--all", "--local", "--states=all", "--format="+mineFormat)
	if err != nil {
		return nil, err
	}
	return ParseMine(string(out))
}

// ParseMine reads the lines of [Tools.Mine].
func ParseMine(out string) ([]slurm.Job, error) {
	var jobs []slurm.Job
	for line := range strings.SplitSeq(out, "\n") {
		if line == "" {
			continue
		}
		f := strings.SplitN(line, separator, 7)
		if len(f) != 7 {
			return nil, fmt.Errorf("squeue: line with %d fields instead of 7: %q", len(f), line)
		}
		id, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("squeue: job id %q", f[0])
		}
		state, flags := slurm.BaseState(f[2])
		j := slurm.Job{ID: slurm.JobID(id), State: state, Flags: flags, Reason: f[3], User: f[4], Partition: f[5], Name: f[6]}
		if leader, offset, isHet := strings.Cut(f[1], "+"); isHet {
			l, err1 := strconv.ParseUint(leader, 10, 32)
			o, err2 := strconv.ParseUint(offset, 10, 16)
			if err1 != nil || err2 != nil {
				return nil, fmt.Errorf("squeue: component id %q", f[1])
			}
			j.HetJob, j.HetOffset = slurm.JobID(l), int(o)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
