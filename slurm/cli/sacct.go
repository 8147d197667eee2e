package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// recordFields are columns of sacct, as 22.05 knows them. The name comes last.
var recordFields = []string{
	"JobIDRaw", "JobID", "User", "State", "Reason", "ExitCode", "Submit", "Start", "End", "Partition", "Account", "QOS", "Reservation",
	"Constraints", "NNodes", "NodeList", "ReqNodes", "ReqCPUS", "ReqTRES", "AllocTRES", "Timelimit", "WorkDir", "Comment", "JobName",
}

// newRecordFields came with 24.05.
var newRecordFields = []string{"Restarts", "StdOut", "Licenses"}

// recordsPerCall bounds the condition that slurmdbd makes of the ids.
const recordsPerCall = 1000

// recorded asks accounting for jobs by id, some hundreds at once.
func (c *Client) recorded(ctx context.Context, ids []slurm.JobID) ([]slurm.Job, error) {
	var all []slurm.Job
	for some := range slices.Chunk(ids, recordsPerCall) {
		jobs, err := c.sacct(ctx, "show jobs in accounting", "--jobs="+joined(some))
		if err != nil {
			return all, err
		}
		all = append(all, jobs...)
	}
	return all, nil
}

// lookBack bounds a look-up by user: names carry a run id, so only recent
// jobs matter, and a user's whole history may have a million records.
const lookBack = 30 * 24 * time.Hour

// recordedByName asks accounting for a user's jobs of a name.
func (c *Client) recordedByName(ctx context.Context, user, name string) ([]slurm.Job, error) {
	args := []string{"--user=" + user, "--starttime=" + c.o.Clock().Add(-lookBack).Local().Format("2006-01-02T15:04:05")}
	if slurm.FilterableName(name) {
		args = append(args, "--name="+name)
	}
	jobs, err := c.sacct(ctx, "look up jobs by name in accounting", args...)
	return slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !j.Named(user, name) }), err
}

// sacct reads jobs without steps. A requeued job has a record per life; the
// last submitted one counts.
func (c *Client) sacct(ctx context.Context, op string, args ...string) ([]slurm.Job, error) {
	version, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	fields := recordFields
	if !release(version).before(major{24, 5}) {
		fields = slices.Concat(newRecordFields, recordFields)
	}
	out, err := c.ask(ctx, op, "sacct", append(args, "--allocations", "--duplicates", "--noheader", "--parsable2",
		"--delimiter="+separator, "--format="+strings.Join(fields, ","))...)
	if err != nil {
		return nil, err
	}
	return parseRecorded(out, fields)
}

// parseRecorded reads sacct's lines. sacct ends a record with a newline and
// nothing else, and comments and names may hold one: a record goes on until it
// has all its fields, and what is left of a name before the next one is dropped.
func parseRecorded(out string, fields []string) ([]slurm.Job, error) {
	var jobs []slurm.Job
	record := ""
	for line := range strings.Lines(out) {
		record += line
		columns := strings.SplitN(strings.TrimSuffix(record, "\n"), separator, len(fields))
		if len(columns) < len(fields) {
			continue
		}
		record = ""
		f := map[string]string{}
		for i, name := range fields {
			f[name] = columns[i]
		}
		array, task, _ := strings.Cut(f["JobID"], "_")
		raw, _, _ := strings.Cut(f["JobIDRaw"], ".")
		j, err := identity(raw, f["JobID"], array, strings.Trim(task, "[]"))
		if err != nil {
			return nil, fmt.Errorf("sacct: %w", err)
		}
		word, _, _ := strings.Cut(f["State"], " ") // CANCELLED by 1001
		j.State, j.Flags = slurm.BaseState(word)
		j.Reason, j.Description = reason(f["Reason"])
		j.ExitCode, j.Signal = exit(f["ExitCode"])
		j.Submit, j.Start, j.End = clock(f["Submit"]), clock(f["Start"]), clock(f["End"])
		j.Name, j.User, j.Comment = f["JobName"], f["User"], f["Comment"]
		j.Partition, j.Account, j.QOS, j.Reservation = f["Partition"], f["Account"], f["QOS"], value(f["Reservation"])
		j.Constraint, j.Nodes, j.NodeList, j.Required = f["Constraints"], number(f["NNodes"]), value(f["NodeList"]), value(f["ReqNodes"])
		j.CPUs, j.TimeLimit, j.WorkDir = number(f["ReqCPUS"]), minutes(f["Timelimit"]), f["WorkDir"]
		j.Restarts, j.Output, j.Licenses = number(f["Restarts"]), f["StdOut"], value(f["Licenses"])
		if j.Total = slurm.ParseGRES(f["AllocTRES"]); len(j.Total) == 0 {
			j.Total = slurm.ParseGRES(f["ReqTRES"])
		}
		j.GRES = wire.PerNode(j.Total, j.Nodes)
		j.FromDB = true
		jobs = append(jobs, j)
	}
	if strings.Contains(record, separator) {
		return nil, fmt.Errorf("sacct: a job without all of its %d fields: %.200q", len(fields), record)
	}
	return wire.LastLives(jobs), nil
}
