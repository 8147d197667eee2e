package rest

import (
	"cmp"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// dbJob is a job of accounting, another schema than the controller's.
type dbJob struct {
	JobID   num         `json:"job_id"`
	Het     maybe[het]  `json:"het"`
	Name    text        `json:"name"`
	User    text        `json:"user"`
	Cluster text        `json:"cluster"`
	Comment maybe[note] `json:"comment"`
	State   maybe[struct {
		Current words `json:"current"`
		Reason  text  `json:"reason"`
	}] `json:"state"`
	Exit     status `json:"exit_code"`
	Restarts num    `json:"restart_cnt"` // from v0.0.42
	Time     maybe[struct {
		Submit num `json:"submission"`
		Start  num `json:"start"`
		End    num `json:"end"`
		Limit  num `json:"limit"`
	}] `json:"time"`
	Partition   text `json:"partition"`
	Account     text `json:"account"`
	QOS         text `json:"qos"`
	Constraints text `json:"constraints"`
	Reservation maybe[struct {
		Name text `json:"name"`
	}] `json:"reservation"`
	NodeCount num  `json:"allocation_nodes"`
	Nodes     text `json:"nodes"`
	Licenses  text `json:"licenses"`
	Required  maybe[struct {
		CPUs   num `json:"CPUs"`
		Memory num `json:"memory_per_node"`
	}] `json:"required"`
	TRES maybe[struct {
		Allocated []tres `json:"allocated"`
		Requested []tres `json:"requested"`
	}] `json:"tres"`
	WorkDir text `json:"working_directory"`
	Output  text `json:"stdout"` // from v0.0.42
}

type het struct {
	JobID  num `json:"job_id"`
	Offset num `json:"job_offset"`
}

type note struct {
	Job text `json:"job"`
}

type tres struct {
	Type  text `json:"type"`
	Name  text `json:"name"`
	Count num  `json:"count"`
}

func (w *dbJob) job() slurm.Job {
	t, s, r := w.Time.v, w.State.v, w.Required.v
	j := slurm.Job{
		ID:         jobID(w.JobID),
		HetJob:     jobID(w.Het.v.JobID),
		Name:       string(w.Name),
		User:       string(w.User),
		Comment:    string(w.Comment.v.Job),
		Reason:     string(s.Reason),
		ExitCode:   w.Exit.code,
		Signal:     w.Exit.signal,
		Restarts:   w.Restarts.count(),
		Submit:     t.Submit.time(),
		Start:      t.Start.time(),
		End:        t.End.time(),
		Partition:  string(w.Partition),
		Account:    string(w.Account),
		QOS:        string(w.QOS),
		Constraint: string(w.Constraints),
		Nodes:      w.NodeCount.count(),
		Licenses:   string(w.Licenses),
		CPUs:       r.CPUs.count(),
		Memory:     slurm.MiB(r.Memory.count()),
		TimeLimit:  minutes(t.Limit),
		WorkDir:    string(w.WorkDir),
		Output:     string(w.Output),
		FromDB:     true,
	}
	if name := string(w.Reservation.v.Name); name != "0" {
		j.Reservation = name
	}
	if j.HetJob != 0 {
		j.HetOffset = w.Het.v.Offset.count()
	}
	if !strings.EqualFold(string(w.Nodes), "None assigned") {
		j.NodeList = string(w.Nodes)
	}
	j.State, j.Flags = jobState(s.Current)
	total := gresOf(w.TRES.v.Allocated)
	if len(total) == 0 {
		total = gresOf(w.TRES.v.Requested)
	}
	for _, t := range w.TRES.v.Requested {
		if t.Type == "node" {
			j.Nodes = cmp.Or(j.Nodes, t.Count.count())
		}
	}
	j.Total, j.GRES = total, perNode(total, j.Nodes)
	return j
}

// gresOf turns a TRES list into GRES through its text form, so that there is
// one rule for typed and untyped entries.
func gresOf(list []tres) []slurm.GRES {
	var b strings.Builder
	for _, t := range list {
		if t.Type == "gres" && t.Count.set {
			b.WriteString("gres/" + string(t.Name) + "=" + t.Count.text() + ",")
		}
	}
	return slurm.ParseGRES(b.String())
}
