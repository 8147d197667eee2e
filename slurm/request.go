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
	// sbatch(1) "filename pattern": a literal % is written %%. Error is that of
	// stderr; "" joins it to stdout. Files are appended to: a requeued job must
	// not truncate the log of its first life.
	Output     string
	Error      string    `json:",omitempty"`
	Begin      time.Time // zero: at once
	Deadline   time.Time `json:",omitzero"` // removed if it cannot end by then
	Dependency string    // as in sbatch --dependency; the job is cancelled once that can never be met
	Array      string    `json:",omitempty"` // task indexes, "0-99%10"; not with several components
	Requeue    bool      // whether Slurm may requeue the job after a node failure or preemption
	Hold       bool
	Nice       int
	Priority   int    `json:",omitempty"` // 1 … 4294967293; 0 leaves it to Slurm
	Signal     Signal // zero: none
	MailType   []string
	MailUser   string
	WCKey      string `json:",omitempty"`
	Extra      string `json:",omitempty"` // free text that sites' plugins read
	Container  string `json:",omitempty"` // OCI bundle directory, absolute
}

// Component is one pool of equal nodes.
type Component struct {
	Partition   string
	Account     string
	QOS         string
	Reservation string
	Constraint  string
	Prefer      string `json:",omitempty"` // features that are better to have
	Licenses    string // only on component 0
	NodeList    []string
	Exclude     []string
	Nodes       int
	// TasksPerNode is 1 unless the launcher is MPI.
	TasksPerNode int
	CPUsPerTask  int
	// At most one of the three says how much memory: per node ([WholeNode] for
	// all of it), per CPU or per GPU. With none it is the partition's default.
	Memory       MiB
	MemoryPerCPU MiB    `json:",omitempty"`
	MemoryPerGPU MiB    `json:",omitempty"`
	GRES         []GRES // per node
	// GPUOption says how sbatch is asked for GPUs; sites differ in which option
	// their plugins accept. "" and "gres" are --gres; "gpus-per-node" is that
	// option for GRES named gpu.
	GPUOption string `json:",omitempty"`
	TimeLimit Minutes
	TimeMin   Minutes `json:",omitempty"` // the least that backfill may cut TimeLimit to
	Share     Share   `json:",omitempty"`
	Network   string  `json:",omitempty"` // interconnect options, as in sbatch --network
	// Switches is the most leaf switches the nodes may span, for at most
	// SwitchWait (the site's limit when 0); 0 for any number.
	Switches   int           `json:",omitempty"`
	SwitchWait time.Duration `json:",omitempty"`
	Segment    int           `json:",omitempty"` // nodes per block of topology/block; 0 for none
}

// WholeNode as Memory asks for all memory of each node (sbatch --mem=0).
const WholeNode MiB = -1

// Share says who else may use a component's nodes. An unknown value is refused.
type Share string

const (
	ShareDefault  Share = ""              // as the partition says
	Exclusive     Share = "exclusive"     // nobody
	ExclusiveUser Share = "user"          // jobs of the same user
	ExclusiveMCS  Share = "mcs"           // jobs of the same MCS label
	ExclusiveTopo Share = "topo"          // nobody in the topology segment; from 24.05
	Oversubscribe Share = "oversubscribe" // anybody, even of the same CPUs
)

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
