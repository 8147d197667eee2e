package slurm

import "time"

// Request is a batch job before it is queued: one component for a plain job,
// several for a heterogeneous one. It has two encoders, the batch script
// (slurm/script) and slurmrestd's JSON (slurm/rest); both must say the same.
type Request struct {
	Name    string // job name; any text without control characters, ≤ 200 bytes
	Comment string
	// Components hold at least one entry. Component 0 runs the batch script.
	Components []Component
	// Env is the whole environment of the batch script, in order.
	Env []EnvVar
	// Script is the complete batch script, "#!" line and #SBATCH lines included.
	Script string
	// WorkDir is the absolute directory the script starts in.
	WorkDir string
	// Output is the file pattern of the batch script's stdout and stderr, as in
	// sbatch(1) "filename pattern": a literal % is written %%.
	Output     string
	Begin      time.Time // zero: at once
	Dependency string    // as in sbatch --dependency
	Requeue    bool      // whether Slurm may requeue the job after a node failure or preemption
	Hold       bool
	Nice       int
	Signal     Signal // zero: none
	MailType   []string
	MailUser   string
}

// Component is one pool of equal nodes.
type Component struct {
	Partition   string
	Account     string
	QOS         string
	Reservation string
	Constraint  string
	Licenses    string // only on component 0
	NodeList    []string
	Exclude     []string
	Nodes       int
	// TasksPerNode is 1 unless the launcher is MPI.
	TasksPerNode int
	CPUsPerTask  int
	Memory       MiB    // per node; 0: the partition's default
	GRES         []GRES // per node
	TimeLimit    Minutes
	Exclusive    bool // whole nodes, shared with nobody
}

// Tasks is the number of tasks of the component.
func (c Component) Tasks() int { return c.Nodes * max(1, c.TasksPerNode) }

// GRES is a generic resource, counted per node.
type GRES struct {
	Name  string // "gpu"
	Type  string // "h200"; "" when the site names no types
	Count int
}

// EnvVar is one variable of the job's environment.
type EnvVar struct{ Name, Value string }

// Signal is a warning before the time limit (sbatch --signal).
type Signal struct {
	Name      string        // "USR1", "TERM"; "" for none
	Before    time.Duration // seconds resolution; Slurm may send it up to 60 s earlier
	BatchOnly bool          // to the batch shell only ("B:")
}
