package slurm

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// State is a base state of a job, as Slurm spells it. An unknown value is kept.
type State string

// Base states of squeue(1) JOB STATE CODES.
const (
	Pending     State = "PENDING"
	Running     State = "RUNNING"
	Suspended   State = "SUSPENDED"
	Completed   State = "COMPLETED"
	Cancelled   State = "CANCELLED"
	Failed      State = "FAILED"
	Timeout     State = "TIMEOUT"
	NodeFail    State = "NODE_FAIL"
	Preempted   State = "PREEMPTED"
	BootFail    State = "BOOT_FAIL"
	Deadline    State = "DEADLINE"
	OutOfMemory State = "OUT_OF_MEMORY"
	// Revoked is a flag that leaves nothing to say here: another cluster of the
	// federation runs the job.
	Revoked State = "REVOKED"
)

// flagAlone is what a flag means where Slurm shows it instead of the base state:
// before the base state of an ending job can be seen, it counts as running.
var flagAlone = map[string]State{
	"COMPLETING": Running, "CONFIGURING": Running, "EXPEDITING": Pending, "LAUNCH_FAILED": Pending, "POWER_UP_NODE": Running,
	"RECONFIG_FAIL": Pending, "REQUEUED": Pending, "REQUEUE_FED": Pending, "REQUEUE_HOLD": Pending, "RESIZING": Running,
	"RESV_DEL_HOLD": Pending, "REVOKED": Revoked, "SIGNALING": Running, "SPECIAL_EXIT": Pending, "STAGE_OUT": Running,
	"STOPPED": Suspended, "UPDATE_DB": Running,
}

// Flags are the state flags of all releases, each with the base state that it
// stands for where Slurm shows it alone.
func Flags() map[string]State { return maps.Clone(flagAlone) }

// BaseState reads a state where Slurm gives one word for base state and flags:
// dialect v0.0.38 and squeue show a flag instead of the base state. sacct's
// "CANCELLED by 1000" is CANCELLED. A word nobody knows is a state of its own.
func BaseState(word string) (State, []string) {
	word, _, _ = strings.Cut(word, " ")
	if state, ok := flagAlone[word]; ok {
		return state, []string{word}
	}
	return State(word), nil
}

// Ended reports whether the state is final for this attempt.
func (s State) Ended() bool {
	switch s {
	case Completed, Cancelled, Failed, Timeout, NodeFail, Preempted, BootFail, Deadline, OutOfMemory:
		return true
	}
	return false
}

// Job is one job, or one component of a heterogeneous job, as Slurm reports
// it. Text fields come from outside and are shown only after neutralising.
type Job struct {
	ID        JobID
	HetJob    JobID // leader's id; 0 for a plain job
	HetOffset int   // component number
	// ArrayJob is the id that names the whole array, 0 for a job that is in
	// none. ArrayTask is its index, "7", or of tasks that Slurm keeps as one
	// record the indexes, "2-5%2".
	ArrayJob  JobID  `json:",omitempty"`
	ArrayTask string `json:",omitempty"`
	Name      string
	User      string
	Comment   string
	State     State
	Flags     []string // COMPLETING, CONFIGURING, REQUEUED, …
	Reason    string   // "Resources", "Priority", …; "" or "None" when there is none
	// Description explains Reason where Slurm has more to say.
	Description string
	ExitCode    int // exit status of the batch script
	Signal      int // signal that ended it; 0 for none
	Restarts    int
	Submit      time.Time
	Start       time.Time // estimate while pending; zero when unknown
	End         time.Time

	Partition   string
	Account     string
	QOS         string
	Reservation string
	Constraint  string
	Nodes       int
	NodeList    string // compact host list; "" while pending
	Required    string // nodes asked for by name, compact
	Excluded    string
	Licenses    string
	Dependency  string // what is still unfulfilled
	Tasks       int
	CPUs        int
	CPUsPerTask int
	Memory      MiB // per node; [WholeNode] for all of it, 0 when it is counted otherwise
	// GRES is per node, as asked for. Total is over all nodes: as allocated,
	// as asked for while pending.
	GRES      []GRES
	Total     []GRES
	TimeLimit Minutes
	WorkDir   string
	Output    string
	Requeue   bool

	Asked

	FromDB bool // read from accounting, not from the controller
}

// Asked is what a job was asked for, in the words of [Request] and [Component],
// as far as only who compares the two wants to know.
type Asked struct {
	// Of these and Job.Memory at most one is set. The partition's default shows
	// as if it had been asked for.
	MemoryPerCPU MiB           `json:",omitempty"`
	MemoryPerGPU MiB           `json:",omitempty"`
	Error        string        `json:",omitempty"`
	Eligible     time.Time     `json:",omitzero"` // when it may start, once Slurm has decided: no sooner than Begin
	Deadline     time.Time     `json:",omitzero"`
	Priority     int           `json:",omitempty"` // as it is now; 0 for a held job
	Nice         int           `json:",omitempty"`
	MailType     []string      `json:",omitempty"`
	MailUser     string        `json:",omitempty"`
	WCKey        string        `json:",omitempty"` // "*" in front of the user's default
	Extra        string        `json:",omitempty"`
	Container    string        `json:",omitempty"`
	KillInvalid  bool          `json:",omitempty"` // cancelled once its dependency can never be met
	Prefer       string        `json:",omitempty"`
	TimeMin      Minutes       `json:",omitempty"`
	Share        Share         `json:",omitempty"`
	Network      string        `json:",omitempty"`
	Switches     int           `json:",omitempty"`
	SwitchWait   time.Duration `json:",omitempty"`
	Segment      int           `json:",omitempty"`
	// Untold names fields of Request and Component that the source of this
	// answer has no word for: their zero value here says nothing. Env, Script,
	// Signal and GPUOption nobody tells.
	Untold []string `json:",omitempty"`
}

// Leader is the id that cancels and names the whole job.
func (j Job) Leader() JobID {
	if j.HetJob != 0 {
		return j.HetJob
	}
	return j.ID
}

// Tells reports whether the source of this answer has a word for a field of
// [Request] or [Component]. Accounting keeps too little to be held to it.
func (j Job) Tells(field string) bool { return !j.FromDB && !slices.Contains(j.Untold, field) }

// Has reports whether a state flag is set.
func (j Job) Has(flag string) bool { return slices.Contains(j.Flags, flag) }
