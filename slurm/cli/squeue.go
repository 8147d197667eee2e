package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// everything makes squeue show ended jobs, hidden partitions and nothing of
// other clusters of a federation.
var everything = []string{"--states=all", "--all", "--local"}

// squeueJobs reads whole jobs.
func (c *Client) squeueJobs(ctx context.Context, op string, args ...string) ([]slurm.Job, error) {
	parser, err := c.parser(ctx)
	if err != nil {
		return nil, err
	}
	args = append(args, everything...)
	if parser != "" {
		var b wire.Jobs
		if err := c.read(ctx, op, &b, "squeue", append(args, "--json="+parser)...); !errors.Is(err, errNoJSON) {
			return b.Model(), err
		}
	}
	args = append(args, "--noheader")
	out, err := c.ask(ctx, op, "squeue", append(args, "--Format="+wholeFormat)...)
	if err != nil {
		return nil, err
	}
	jobs, err := parseWhole(out)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	// Up to 23.11 --Format knows no excluded nodes, --format does.
	if out, err = c.ask(ctx, op, "squeue", append(args, "--format=%A"+separator+"%x"+endOfJob)...); err != nil {
		return nil, err
	}
	version, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	excluded := parseExcluded(out)
	for i := range jobs {
		jobs[i].Excluded = excluded[jobs[i].ID]
		if !release(version).before(major{26, 5}) { // OverSubscribe is NO for every job
			jobs[i].Share, jobs[i].Untold = slurm.ShareDefault, append(jobs[i].Untold, "Share")
		}
	}
	return jobs, nil
}

// parseExcluded reads ids and node lists.
func parseExcluded(out string) map[slurm.JobID]string {
	excluded := map[slurm.JobID]string{}
	for _, line := range pieces(out, endOfJob+"\n") {
		id, nodes, _ := strings.Cut(line, separator)
		if id, err := jobID(id[strings.LastIndexByte(id, '\n')+1:]); err == nil {
			excluded[id] = value(nodes)
		}
	}
	return excluded
}

// wholeFields are columns of squeue --Format, as 22.05 knows them.
var wholeFields = []string{
	"JobID", "JobArrayID", "ArrayJobID", "ArrayTaskID", "State", "Reason", "UserName", "Partition", "Account", "QOS", "Reservation",
	"Feature", "NumNodes", "NodeList", "ReqNodes", "Licenses", "Dependency", "NumTasks", "NumCPUs", "cpus-per-task", "MinMemory",
	"tres-per-node", "tres-alloc", "TimeLimit", "exit_code", "RestartCnt", "SubmitTime", "StartTime", "EndTime", "WorkDir", "STDOUT",
	"Requeue", "STDERR", "EligibleTime", "Deadline", "PriorityLong", "Nice", "wckey", "Container", "Prefer", "MinTime", "OverSubscribe",
	"Network", "ReqSwitch", "Wait4Switch", "mem-per-tres", "Comment", "Name",
}

// untold are fields of a request that squeue has no column for; of a dependency
// it does not tell what happens when it can never be met.
var untold = []string{"MailType", "MailUser", "Extra", "Segment", "Dependency"}

// wholeFormat: width 0 is as wide as the value is; the text behind it ends it.
var wholeFormat = strings.Join(wholeFields, ":0"+separator+",") + ":0" + endOfJob

// parseWhole reads what squeue prints in wholeFormat.
func parseWhole(out string) ([]slurm.Job, error) {
	var jobs []slurm.Job
	for _, line := range pieces(out, endOfJob+"\n") {
		columns := strings.SplitN(line, separator, len(wholeFields))
		if len(columns) != len(wholeFields) {
			return nil, fmt.Errorf("squeue: a job with %d fields instead of %d: %.200q", len(columns), len(wholeFields), line)
		}
		f := map[string]string{}
		for i, name := range wholeFields {
			f[name] = columns[i]
		}
		j, err := identity(f["JobID"], f["JobArrayID"], f["ArrayJobID"], f["ArrayTaskID"])
		if err != nil {
			return nil, err
		}
		j.State, j.Flags = slurm.BaseState(f["State"])
		j.Reason, j.Description = reason(f["Reason"])
		j.Name, j.User, j.Comment = f["Name"], f["UserName"], value(f["Comment"])
		j.Partition, j.Account, j.QOS, j.Reservation = f["Partition"], value(f["Account"]), value(f["QOS"]), value(f["Reservation"])
		j.Constraint, j.Nodes, j.NodeList, j.Required = value(f["Feature"]), number(f["NumNodes"]), value(f["NodeList"]), value(f["ReqNodes"])
		j.Licenses, j.Dependency = value(f["Licenses"]), value(f["Dependency"])
		j.Tasks, j.CPUs, j.CPUsPerTask = number(f["NumTasks"]), number(f["NumCPUs"]), number(f["cpus-per-task"])
		j.GRES, j.Total = slurm.ParseGRES(value(f["tres-per-node"])), slurm.ParseGRES(value(f["tres-alloc"]))
		j.Untold = slices.Clone(untold)
		setMemory(&j, f["MinMemory"], f["mem-per-tres"], f["tres-alloc"])
		j.TimeLimit, j.Restarts = minutes(f["TimeLimit"]), number(f["RestartCnt"])
		j.ExitCode, j.Signal = exit(f["exit_code"])
		j.Submit, j.Start, j.End = clock(f["SubmitTime"]), clock(f["StartTime"]), clock(f["EndTime"])
		j.WorkDir, j.Output, j.Requeue = value(f["WorkDir"]), value(f["STDOUT"]), f["Requeue"] == "1"
		j.Error, j.Eligible, j.Deadline = value(f["STDERR"]), clock(f["EligibleTime"]), clock(f["Deadline"])
		j.Priority, j.WCKey, j.Container, j.Prefer = number(f["PriorityLong"]), value(f["wckey"]), value(f["Container"]), value(f["Prefer"])
		j.Nice, _ = strconv.Atoi(f["Nice"])
		j.TimeMin, j.Share, j.Network = minutes(f["MinTime"]), share(f["OverSubscribe"]), value(f["Network"])
		j.Switches, j.SwitchWait = number(f["ReqSwitch"]), time.Duration(seconds(f["Wait4Switch"]))*time.Second
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// statesFormat asks for what a list of runs shows. The name comes last.
var statesFormat = strings.Join([]string{"%A", "%i", "%F", "%K", "%T", "%r", "%u", "%P", "%V", "%S", "%e", "%D", "%l", "%j"}, separator) + endOfJob

const statesFields = 14

// squeueStates reads little about each job.
func (c *Client) squeueStates(ctx context.Context, op string, args ...string) ([]slurm.Job, error) {
	out, err := c.ask(ctx, op, "squeue", append(append(args, everything...), "--noheader", "--format="+statesFormat)...)
	if err != nil {
		return nil, err
	}
	return parseStates(out)
}

// parseStates reads what squeue prints in statesFormat.
func parseStates(out string) ([]slurm.Job, error) {
	var jobs []slurm.Job
	for _, line := range pieces(out, endOfJob+"\n") {
		f := strings.SplitN(line, separator, statesFields)
		if len(f) != statesFields {
			return nil, fmt.Errorf("squeue: a job with %d fields instead of %d: %.200q", len(f), statesFields, line)
		}
		j, err := identity(f[0], f[1], f[2], f[3])
		if err != nil {
			return nil, err
		}
		j.State, j.Flags = slurm.BaseState(f[4])
		j.Reason, j.Description = reason(f[5])
		j.User, j.Partition, j.Name = f[6], f[7], f[13]
		j.Submit, j.Start, j.End = clock(f[8]), clock(f[9]), clock(f[10])
		j.Nodes, j.TimeLimit = number(f[11]), minutes(f[12])
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// identity reads the ids of a job: its number, "87+1" or "89_7", the array's
// number and "7" or "2-5%2". squeue --clusters may print a line before the first.
func identity(id, shown, array, task string) (j slurm.Job, err error) {
	id = id[strings.LastIndexByte(id, '\n')+1:]
	if j.ID, err = jobID(id); err != nil {
		return j, err
	}
	if leader, offset, isHet := strings.Cut(shown, "+"); isHet {
		if j.HetJob, err = jobID(leader); err != nil {
			return j, err
		}
		n, err := strconv.ParseUint(offset, 10, 16)
		if err != nil {
			return j, fmt.Errorf("%q is no component of a job", shown)
		}
		j.HetOffset = int(n)
	}
	if task = value(task); task != "" {
		if j.ArrayJob, err = jobID(array); err != nil {
			return j, err
		}
		j.ArrayTask = task
	}
	return j, nil
}

func jobID(s string) (slurm.JobID, error) {
	id, err := strconv.ParseUint(s, 10, 32)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%.80q is no job id", s)
	}
	return slurm.JobID(id), nil
}

// reason cuts what some releases add to it: "ReqNodeNotAvail,
// UnavailableNodes:cpu-2", "RaisedSignal:9(Killed)".
func reason(s string) (reason, description string) {
	if at := strings.IndexAny(s, ",:"); at > 0 && !strings.Contains(s[:at], " ") {
		return s[:at], s
	}
	return s, ""
}

// exit reads "3:0", code and signal, or the wait status that 22.05 prints.
func exit(s string) (code, signal int) {
	c, sig, isPair := strings.Cut(s, ":")
	if isPair {
		return number(c), number(sig)
	}
	wait := number(s)
	return wait >> 8 & 0xff, wait & 0x7f
}

// memory reads "600M", "1.50G", "0".
func memory(s string) slurm.MiB {
	unit := float64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'K':
			unit = 1. / 1024
		case 'G':
			unit = 1024
		case 'T':
			unit = 1024 * 1024
		}
		s = strings.TrimRight(s, "KMGT")
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || n*unit > 1<<40 {
		return 0
	}
	return slurm.MiB(n*unit + 0.5)
}

// tresMemory finds mem= in a TRES list.
func tresMemory(tres string) slurm.MiB {
	for item := range strings.SplitSeq(tres, ",") {
		if text, ok := strings.CutPrefix(item, "mem="); ok {
			return memory(text)
		}
	}
	return 0
}

// setMemory tells memory per node from memory per CPU, which squeue prints
// alike: the sum over the job says which it was. With as many CPUs as nodes they
// are the same. Where it was asked per GPU, the partition's default stands beside
// it on 22.05. All of a node is 0.
func setMemory(j *slurm.Job, least, perTRES, tres string) {
	m := memory(least)
	j.MemoryPerGPU = wire.PerGPU(perTRES)
	switch {
	case j.MemoryPerGPU > 0:
	case m == 0:
		j.Memory = slurm.WholeNode
	case j.Nodes == j.CPUs:
		j.Memory = m
		j.Untold = append(j.Untold, "Memory", "MemoryPerCPU")
	case tresMemory(tres) == m*slurm.MiB(j.CPUs):
		j.MemoryPerCPU = m
	default:
		j.Memory = m
	}
}

// share reads the column OverSubscribe, which says how nodes are shared.
func share(s string) slurm.Share {
	switch s {
	case "NO":
		return slurm.Exclusive
	case "YES":
		return slurm.Oversubscribe
	case "OK", "":
		return slurm.ShareDefault
	}
	return slurm.Share(strings.ToLower(s)) // USER, MCS, TOPO
}
