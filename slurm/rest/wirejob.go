package rest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// wireJob holds the keys of /slurm/<dialect>/job of all dialects side by side.
type wireJob struct {
	JobID       num         `json:"job_id"`
	HetJob      num         `json:"het_job_id"`
	HetOffset   num         `json:"het_job_offset"`
	Name        text        `json:"name"`
	User        text        `json:"user_name"`
	Comment     text        `json:"comment"`
	State       words       `json:"job_state"`
	Reason      text        `json:"state_reason"`
	Description text        `json:"state_description"`
	Exit        status      `json:"exit_code"`
	Restarts    num         `json:"restart_cnt"`
	Submit      num         `json:"submit_time"`
	Start       num         `json:"start_time"`
	End         num         `json:"end_time"`
	Partition   text        `json:"partition"`
	Account     text        `json:"account"`
	QOS         text        `json:"qos"`
	Reservation text        `json:"resv_name"`
	Features    text        `json:"features"`
	NodeCount   num         `json:"node_count"`
	Nodes       text        `json:"nodes"`
	Required    csv         `json:"required_nodes"`
	Excluded    csv         `json:"excluded_nodes"`
	Licenses    text        `json:"licenses"`
	Dependency  text        `json:"dependency"`
	Tasks       num         `json:"tasks"`
	CPUs        num         `json:"cpus"`
	CPUsPerTask num         `json:"cpus_per_task"`
	Memory      num         `json:"memory_per_node"`
	PerNode     text        `json:"tres_per_node"`
	Requested   text        `json:"tres_req_str"`
	Allocated   text        `json:"tres_alloc_str"`
	TimeLimit   num         `json:"time_limit"`
	WorkDir     text        `json:"current_working_directory"`
	Output      text        `json:"standard_output"`
	Requeue     maybe[bool] `json:"requeue"`
	Cluster     text        `json:"cluster"`
}

func (w *wireJob) job() slurm.Job {
	j := slurm.Job{
		ID:          jobID(w.JobID),
		HetJob:      jobID(w.HetJob),
		Name:        string(w.Name),
		User:        string(w.User),
		Comment:     string(w.Comment),
		Reason:      string(w.Reason),
		Description: string(w.Description),
		ExitCode:    w.Exit.code,
		Signal:      w.Exit.signal,
		Restarts:    w.Restarts.count(),
		Submit:      w.Submit.time(),
		Start:       w.Start.time(),
		End:         w.End.time(),
		Partition:   string(w.Partition),
		Account:     string(w.Account),
		QOS:         string(w.QOS),
		Reservation: string(w.Reservation),
		Constraint:  string(w.Features),
		Nodes:       w.NodeCount.count(),
		NodeList:    string(w.Nodes),
		Required:    strings.Join(w.Required, ","),
		Excluded:    strings.Join(w.Excluded, ","),
		Licenses:    string(w.Licenses),
		Dependency:  string(w.Dependency),
		Tasks:       w.Tasks.count(),
		CPUs:        w.CPUs.count(),
		CPUsPerTask: w.CPUsPerTask.count(),
		Memory:      slurm.MiB(w.Memory.count()),
		GRES:        slurm.ParseGRES(string(w.PerNode)),
		Total:       slurm.ParseGRES(string(cmp.Or(w.Allocated, w.Requested))),
		TimeLimit:   minutes(w.TimeLimit),
		WorkDir:     string(w.WorkDir),
		Output:      string(w.Output),
		Requeue:     w.Requeue.v,
	}
	if j.HetJob != 0 {
		j.HetOffset = w.HetOffset.count()
	}
	j.State, j.Flags = jobState(w.State)
	switch {
	case len(j.GRES) == 0:
		j.GRES = perNode(j.Total, j.Nodes)
	case w.Allocated == "":
		// 22.05 counts a pending job's devices for one node only.
		j.Total = overNodes(j.GRES, j.Nodes)
	}
	return j
}

// jobState splits ["RUNNING","COMPLETING"]: the base state comes first.
func jobState(w words) (slurm.State, []string) {
	if len(w) == 0 {
		return "", nil
	}
	state, flags := slurm.BaseState(w[0])
	return state, append(append([]string{}, flags...), w[1:]...)
}

// perNode spreads a total over nodes, rounding up: jobs that asked for GPUs
// per job have no count per node.
func perNode(total []slurm.GRES, nodes int) []slurm.GRES {
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

func jobID(n num) slurm.JobID {
	if id := n.count(); id <= noVal {
		return slurm.JobID(id)
	}
	return 0
}

// minutes reads a time limit. v0.0.38 writes -1 for a partition without limit.
func minutes(n num) slurm.Minutes {
	if n.infinite || n.set && n.value == -1 {
		return slurm.Unlimited
	}
	return slurm.Minutes(n.count())
}

// status is an exit code: the wait status as a number up to v0.0.39, an object
// of return code and signal after.
type status struct{ code, signal int }

func (s *status) UnmarshalJSON(b []byte) error {
	*s = status{}
	if n := readNum(b); n.set {
		wait := n.count()
		s.code, s.signal = wait>>8&0xff, wait&0x7f
		return nil
	}
	var obj maybe[struct {
		Return num `json:"return_code"`
		Signal maybe[struct {
			ID  num `json:"id"`
			Old num `json:"signal_id"` // slurmdb of v0.0.38 and .39
		}] `json:"signal"`
	}]
	_ = obj.UnmarshalJSON(b)
	s.code = obj.v.Return.count()
	s.signal = cmp.Or(obj.v.Signal.v.ID.count(), obj.v.Signal.v.Old.count())
	return nil
}
