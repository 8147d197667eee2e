package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Job holds the keys of /slurm/<dialect>/job of all dialects side by side.
type Job struct {
	JobID       Num         `json:"job_id"`
	HetJob      Num         `json:"het_job_id"`
	HetOffset   Num         `json:"het_job_offset"`
	ArrayJob    Num         `json:"array_job_id"`
	ArrayTask   Num         `json:"array_task_id"`
	ArrayTasks  Text        `json:"array_task_string"` // of tasks that are one record still
	Name        Text        `json:"name"`
	User        Text        `json:"user_name"`
	Comment     Text        `json:"comment"`
	State       Words       `json:"job_state"`
	Reason      Text        `json:"state_reason"`
	Description Text        `json:"state_description"`
	Exit        Exit        `json:"exit_code"`
	Restarts    Num         `json:"restart_cnt"`
	Submit      Num         `json:"submit_time"`
	Start       Num         `json:"start_time"`
	End         Num         `json:"end_time"`
	Partition   Text        `json:"partition"`
	Account     Text        `json:"account"`
	QOS         Text        `json:"qos"`
	Reservation Text        `json:"resv_name"`
	Features    Text        `json:"features"`
	NodeCount   Num         `json:"node_count"`
	Nodes       Text        `json:"nodes"`
	Required    List        `json:"required_nodes"`
	Excluded    List        `json:"excluded_nodes"`
	Licenses    Text        `json:"licenses"`
	Dependency  Text        `json:"dependency"`
	Tasks       Num         `json:"tasks"`
	CPUs        Num         `json:"cpus"`
	CPUsPerTask Num         `json:"cpus_per_task"`
	Memory      Num         `json:"memory_per_node"`
	PerNode     Text        `json:"tres_per_node"`
	Requested   Text        `json:"tres_req_str"`
	Allocated   Text        `json:"tres_alloc_str"`
	TimeLimit   Num         `json:"time_limit"`
	WorkDir     Text        `json:"current_working_directory"`
	Output      Text        `json:"standard_output"`
	Requeue     Maybe[bool] `json:"requeue"`
	Cluster     Text        `json:"cluster"`
	wanted
}

// Model is the job in the words of package slurm.
func (w *Job) Model() slurm.Job {
	j := slurm.Job{
		ID:          ID(w.JobID),
		HetJob:      ID(w.HetJob),
		Name:        string(w.Name),
		User:        string(w.User),
		Comment:     string(w.Comment),
		Reason:      string(w.Reason),
		Description: string(w.Description),
		ExitCode:    w.Exit.Code,
		Signal:      w.Exit.Signal,
		Restarts:    w.Restarts.Count(),
		Submit:      w.Submit.Time(),
		Start:       w.Start.Time(),
		End:         w.End.Time(),
		Partition:   string(w.Partition),
		Account:     string(w.Account),
		QOS:         string(w.QOS),
		Reservation: string(w.Reservation),
		Constraint:  string(w.Features),
		Nodes:       w.NodeCount.Count(),
		NodeList:    string(w.Nodes),
		Required:    strings.Join(w.Required, ","),
		Excluded:    strings.Join(w.Excluded, ","),
		Licenses:    string(w.Licenses),
		Dependency:  string(w.Dependency),
		Tasks:       w.Tasks.Count(),
		CPUs:        w.CPUs.Count(),
		CPUsPerTask: w.CPUsPerTask.Count(),
		Memory:      slurm.MiB(w.Memory.Count()),
		GRES:        slurm.ParseGRES(string(w.PerNode)),
		Total:       slurm.ParseGRES(string(cmp.Or(w.Allocated, w.Requested))),
		TimeLimit:   minutes(w.TimeLimit),
		WorkDir:     string(w.WorkDir),
		Output:      string(w.Output),
		Requeue:     w.Requeue.V,
	}
	if j.HetJob != 0 {
		j.HetOffset = w.HetOffset.Count()
	}
	if j.End.Sub(j.Start) > century { // no limit is 4294967295 seconds
		j.End = time.Time{}
	}
	j.ArrayJob, j.ArrayTask = array(w.ArrayJob, w.ArrayTask, w.ArrayTasks)
	j.State, j.Flags = jobState(w.State)
	w.fill(&j)
	switch {
	case len(j.GRES) == 0:
		j.GRES = PerNode(j.Total, j.Nodes)
	case w.Allocated == "":
		// 22.05 counts a pending job's devices for one node only.
		j.Total = overNodes(j.GRES, j.Nodes)
	}
	return j
}

const century = 100 * 365 * 24 * time.Hour

// array is a job's place in an array: some dialects give every job an
// array_job_id, so the task decides.
func array(id, task Num, tasks Text) (slurm.JobID, string) {
	switch {
	case ID(id) == 0:
	case tasks != "":
		return ID(id), string(tasks)
	case task.Set:
		return ID(id), strconv.Itoa(task.Count())
	}
	return 0, ""
}

// jobState splits ["RUNNING","COMPLETING"]: the base state comes first.
func jobState(w Words) (slurm.State, []string) {
	if len(w) == 0 {
		return "", nil
	}
	state, flags := slurm.BaseState(w[0])
	return state, append(append([]string{}, flags...), w[1:]...)
}

// PerNode spreads a total over nodes, rounding up: jobs that asked for GPUs
// per job have no count per node.
func PerNode(total []slurm.GRES, nodes int) []slurm.GRES {
	out := slices.Clone(total)
	for i := range out {
		n := max(1, nodes)
		out[i].Count = (out[i].Count + n - 1) / n
	}
	return out
}

func overNodes(perNode []slurm.GRES, nodes int) []slurm.GRES {
	out := slices.Clone(perNode)
	for i := range out {
		out[i].Count *= max(1, nodes)
	}
	return out
}

// ID is a job id, 0 for anything that is none.
func ID(n Num) slurm.JobID {
	if id := n.Count(); id <= noVal {
		return slurm.JobID(id)
	}
	return 0
}

// minutes reads a time limit. v0.0.38 writes -1 for a partition without limit.
func minutes(n Num) slurm.Minutes {
	if n.Infinite || n.Set && n.Value == -1 {
		return slurm.Unlimited
	}
	return slurm.Minutes(n.Count())
}

// Exit is an exit code: the wait status as a number up to v0.0.39, an object
// of return code and signal after.
type Exit struct{ Code, Signal int }

// UnmarshalJSON never fails; what it cannot read is 0.
func (e *Exit) UnmarshalJSON(b []byte) error {
	*e = Exit{}
	if n := readNum(bytes.TrimSpace(b)); n.Set {
		wait := n.Count()
		e.Code, e.Signal = wait>>8&0xff, wait&0x7f
		return nil
	}
	var obj Maybe[struct {
		Return Num `json:"return_code"`
		Signal Maybe[struct {
			ID  Num `json:"id"`
			Old Num `json:"signal_id"` // slurmdb of v0.0.38 and .39
		}] `json:"signal"`
	}]
	_ = obj.UnmarshalJSON(b)
	e.Code = obj.V.Return.Count()
	e.Signal = cmp.Or(obj.V.Signal.V.ID.Count(), obj.V.Signal.V.Old.Count())
	return nil
}
