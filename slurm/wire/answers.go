package wire

import (
	"cmp"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Answer is the body of an answer.
type Answer interface {
	// About is what the answer has around its payload.
	About() *Envelope
	// Empty reports whether there is no payload.
	Empty() bool
}

// About is the envelope itself, for the types that embed it.
func (e *Envelope) About() *Envelope { return e }

// Ping is the answer of /ping and scontrol ping.
type Ping struct {
	Envelope
	Pings []struct {
		Host       Text        `json:"hostname"`
		Ping       Text        `json:"ping"`       // v0.0.38
		Pinged     Text        `json:"pinged"`     // .39 to .44
		Responding Maybe[bool] `json:"responding"` // from .42
	} `json:"pings"`
}

func (b *Ping) Empty() bool { return len(b.Pings) == 0 }

// Up reports whether a controller answers.
func (b *Ping) Up() bool {
	for _, p := range b.Pings {
		if p.Ping == "UP" || p.Pinged == "UP" || p.Responding.V {
			return true
		}
	}
	return false
}

// Clusters is accounting's list of clusters.
type Clusters struct {
	Envelope
	Clusters []struct {
		Name Text `json:"name"`
	} `json:"clusters"`
}

func (b *Clusters) Empty() bool { return len(b.Clusters) == 0 }

// Nodes is the list of nodes.
type Nodes struct {
	Envelope
	Nodes []Node `json:"nodes"`
}

func (b *Nodes) Empty() bool { return len(b.Nodes) == 0 }

// Model is the list in the words of package slurm.
func (b *Nodes) Model() []slurm.Node {
	var out []slurm.Node
	for i := range b.Nodes {
		out = append(out, b.Nodes[i].Model())
	}
	return out
}

// Partitions is the list of partitions.
type Partitions struct {
	Envelope
	Partitions []Partition `json:"partitions"`
}

func (b *Partitions) Empty() bool { return len(b.Partitions) == 0 }

// Model is the list in the words of package slurm.
func (b *Partitions) Model() []slurm.Partition {
	var out []slurm.Partition
	for i := range b.Partitions {
		out = append(out, b.Partitions[i].Model())
	}
	return out
}

// Reservations is the list of reservations.
type Reservations struct {
	Envelope
	Reservations []Reservation `json:"reservations"`
}

func (b *Reservations) Empty() bool { return len(b.Reservations) == 0 }

// Model is the list in the words of package slurm.
func (b *Reservations) Model() []slurm.Reservation {
	var out []slurm.Reservation
	for i := range b.Reservations {
		out = append(out, b.Reservations[i].Model())
	}
	return out
}

// Jobs is the controller's list of jobs.
type Jobs struct {
	Envelope
	Jobs []Job `json:"jobs"`
}

func (b *Jobs) Empty() bool { return len(b.Jobs) == 0 }

// Model is the list in the words of package slurm, without what has no id.
func (b *Jobs) Model() []slurm.Job {
	out := make([]slurm.Job, 0, len(b.Jobs))
	for i := range b.Jobs {
		if j := b.Jobs[i].Model(); j.ID != 0 {
			out = append(out, j)
		}
	}
	return out
}

// JobStates is what the controller tells in /jobs/state: ids and states alone.
type JobStates struct {
	Envelope
	Jobs []struct {
		ID    Text  `json:"job_id"` // "12", "12+1" of a component, "12_3" of an array
		State Words `json:"state"`
	} `json:"jobs"`
}

func (b *JobStates) Empty() bool { return len(b.Jobs) == 0 }

// Model is the list with nothing but ids and states. The number before a + is
// the component's own; those of a job follow each other, the leader first.
func (b *JobStates) Model() []slurm.Job {
	var out []slurm.Job
	for _, w := range b.Jobs {
		text, task, isTask := strings.Cut(string(w.ID), "_")
		text, component, isHet := strings.Cut(text, "+")
		id, offset := ParseNum(text).Count(), ParseNum(component).Count()
		if id <= 0 || id > noVal || isHet && offset >= id {
			continue
		}
		j := slurm.Job{ID: slurm.JobID(id)}
		if isHet {
			j.HetJob, j.HetOffset = slurm.JobID(id-offset), offset
		}
		if isTask {
			j.ArrayJob, j.ArrayTask = j.ID, task
		}
		j.State, j.Flags = jobState(w.State)
		out = append(out, j)
	}
	return out
}

// DBJobs is accounting's list of jobs.
type DBJobs struct {
	Envelope
	Jobs []DBJob `json:"jobs"`
}

func (b *DBJobs) Empty() bool { return len(b.Jobs) == 0 }

// Model is the list in the words of package slurm. A requeued job has a record
// per life; the last submitted one counts.
func (b *DBJobs) Model() []slurm.Job {
	var all []slurm.Job
	for i := range b.Jobs {
		all = append(all, b.Jobs[i].Model())
	}
	return LastLives(all)
}

// LastLives keeps of every id the record that was submitted last, in the order
// of first appearance, and drops what has no id.
func LastLives(jobs []slurm.Job) []slurm.Job {
	var out []slurm.Job
	at := map[slurm.JobID]int{}
	for _, j := range jobs {
		i, seen := at[j.ID]
		switch {
		case j.ID == 0:
		case !seen:
			at[j.ID] = len(out)
			out = append(out, j)
		case !j.Submit.Before(out[i].Submit):
			out[i] = j
		}
	}
	return out
}

// Submission is the answer to a submission. Truth is the id: with one the job
// is queued, whatever errors[] say.
type Submission struct {
	Envelope
	JobID   Num  `json:"job_id"`
	Message Text `json:"job_submit_user_msg"` // of the site's job_submit plugin
	// Result repeats them in v0.0.39 to .41.
	Result Maybe[struct {
		JobID   Num  `json:"job_id"`
		Message Text `json:"job_submit_user_msg"`
	}] `json:"result"`
}

// Queued is the id of the job, 0 when there is none.
func (b *Submission) Queued() slurm.JobID { return cmp.Or(ID(b.JobID), ID(b.Result.V.JobID)) }

// Said is the message of the site's job_submit plugin.
func (b *Submission) Said() string {
	return strings.TrimSpace(string(cmp.Or(b.Message, b.Result.V.Message)))
}

func (b *Submission) Empty() bool { return b.Queued() == 0 }

// Cancellation is the answer to a cancellation.
type Cancellation struct {
	Envelope
	Status []struct { // from v0.0.42
		Error Maybe[struct {
			Code    Num  `json:"code"`
			Text    Text `json:"string"`
			Message Text `json:"message"`
		}] `json:"error"`
	} `json:"status"`
}

// Complaint is the first entry of the status list that is an error.
func (b *Cancellation) Complaint() (number int, words string) {
	for _, s := range b.Status {
		if e := s.Error.V; e.Code.Count() != 0 {
			return e.Code.Count(), string(cmp.Or(e.Message, e.Text))
		}
	}
	return 0, ""
}

// Empty is always true: an answer without complaint has nothing to say.
func (b *Cancellation) Empty() bool { return true }
