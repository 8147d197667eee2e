package wire

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// DBJob is a job of accounting, another schema than the controller's.
type DBJob struct {
	JobID Num        `json:"job_id"`
	Het   Maybe[het] `json:"het"`
	Array Maybe[struct {
		JobID Num  `json:"job_id"`
		Task  Num  `json:"task_id"`
		Tasks Text `json:"task"`
	}] `json:"array"`
	Name    Text        `json:"name"`
	User    Text        `json:"user"`
	Cluster Text        `json:"cluster"`
	Comment Maybe[note] `json:"comment"`
	State   Maybe[struct {
		Current Words `json:"current"`
		Reason  Text  `json:"reason"`
	}] `json:"state"`
	Exit     Exit `json:"exit_code"`
	Restarts Num  `json:"restart_cnt"` // from v0.0.42
	Time     Maybe[struct {
		Submit Num `json:"submission"`
		Start  Num `json:"start"`
		End    Num `json:"end"`
		Limit  Num `json:"limit"`
	}] `json:"time"`
	Partition   Text `json:"partition"`
	Account     Text `json:"account"`
	QOS         Text `json:"qos"`
	Constraints Text `json:"constraints"`
	Reservation Maybe[struct {
		Name Text `json:"name"`
	}] `json:"reservation"`
	NodeCount Num  `json:"allocation_nodes"`
	Nodes     Text `json:"nodes"`
	Licenses  Text `json:"licenses"`
	Required  Maybe[struct {
		CPUs   Num `json:"CPUs"`
		Memory Num `json:"memory_per_node"`
	}] `json:"required"`
	TRES Maybe[struct {
		Allocated []tres `json:"allocated"`
		Requested []tres `json:"requested"`
	}] `json:"tres"`
	WorkDir Text `json:"working_directory"`
	Output  Text `json:"stdout"` // from v0.0.42
}

type het struct {
	JobID  Num `json:"job_id"`
	Offset Num `json:"job_offset"`
}

type note struct {
	Job Text `json:"job"`
}

type tres struct {
	Type  Text `json:"type"`
	Name  Text `json:"name"`
	Count Num  `json:"count"`
}

// Model is the job in the words of package slurm; FromDB is set.
func (w *DBJob) Model() slurm.Job {
	t, s, r := w.Time.V, w.State.V, w.Required.V
	j := slurm.Job{
		ID:         ID(w.JobID),
		HetJob:     ID(w.Het.V.JobID),
		Name:       string(w.Name),
		User:       string(w.User),
		Comment:    string(w.Comment.V.Job),
		Reason:     string(s.Reason),
		ExitCode:   w.Exit.Code,
		Signal:     w.Exit.Signal,
		Restarts:   w.Restarts.Count(),
		Submit:     t.Submit.Time(),
		Start:      t.Start.Time(),
		End:        t.End.Time(),
		Partition:  string(w.Partition),
		Account:    string(w.Account),
		QOS:        string(w.QOS),
		Constraint: string(w.Constraints),
		Nodes:      w.NodeCount.Count(),
		Licenses:   string(w.Licenses),
		CPUs:       r.CPUs.Count(),
		Memory:     slurm.MiB(r.Memory.Count()),
		TimeLimit:  minutes(t.Limit),
		WorkDir:    string(w.WorkDir),
		Output:     string(w.Output),
		FromDB:     true,
	}
	if name := string(w.Reservation.V.Name); name != "0" {
		j.Reservation = name
	}
	if j.HetJob != 0 {
		j.HetOffset = w.Het.V.Offset.Count()
	}
	if !strings.EqualFold(string(w.Nodes), "None assigned") {
		j.NodeList = string(w.Nodes)
	}
	j.ArrayJob, j.ArrayTask = array(w.Array.V.JobID, w.Array.V.Task, w.Array.V.Tasks)
	j.State, j.Flags = jobState(s.Current)
	total := gresOf(w.TRES.V.Allocated)
	if len(total) == 0 {
		total = gresOf(w.TRES.V.Requested)
	}
	for _, t := range w.TRES.V.Requested {
		if t.Type == "node" {
			j.Nodes = cmp.Or(j.Nodes, t.Count.Count())
		}
	}
	j.Total, j.GRES = total, PerNode(total, j.Nodes)
	return j
}

// gresOf turns a TRES list into GRES through its text form, so that there is
// one rule for typed and untyped entries.
func gresOf(list []tres) []slurm.GRES {
	var b strings.Builder
	for _, t := range list {
		if t.Type == "gres" && t.Count.Set {
			b.WriteString("gres/" + string(t.Name) + "=" + strconv.Itoa(t.Count.Count()) + ",")
		}
	}
	return slurm.ParseGRES(b.String())
}
