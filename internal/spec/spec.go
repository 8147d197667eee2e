// Package spec holds the plain values of the road: what a user wants, before
// any fact of a cluster is known. A Spec is composed by recipes from an
// experiment, its recipe and the flags; plan.Resolve turns it into pools.
package spec

import "time"

// Spec is one wanted job.
type Spec struct {
	Experiment  string    `json:"experiment"`            // directory name under experiments/
	Project     string    `json:"project,omitempty"`     // groups runs; from tp.toml
	Name        string    `json:"name"`                  // shown name; the experiment's unless --name
	Description string    `json:"description,omitempty"` // job.toml
	Tags        []string  `json:"tags,omitempty"`
	Recipe      Recipe    `json:"recipe"`
	Framework   Framework `json:"framework"`
	Image       string    `json:"image,omitempty"`  // container image, canonical; "" leaves it to the site
	Mounts      []Mount   `json:"mounts,omitempty"` // asked for by the job
	Roles       []Role    `json:"roles"`            // the driver first
	Profiles    []Profile `json:"profiles"`
	Model       string    `json:"model,omitempty"` // path on the cluster or hub id
	Data        Data      `json:"data,omitzero"`
	Params      []Param   `json:"params,omitempty"` // every parameter with its value and origin
	Env         []EnvVar  `json:"env,omitempty"`    // what recipe, job.toml and --env add
	Job         Job       `json:"job"`
	Dirs        []string  `json:"dirs"`              // packed directories, relative to the lab
	Exclude     []string  `json:"exclude,omitempty"` // further patterns that are not packed
}

// Recipe names the catalogue entry.
type Recipe struct {
	Name    string `json:"name"` // "custom/custom"
	Version string `json:"version"`
	Digest  string `json:"digest"` // "sha256:…"
	Foreign bool   `json:"foreign,omitempty"`
}

// Data is what the training reads: paths on the cluster or hub ids, and the
// splits in them.
type Data struct {
	Train           string `json:"train,omitempty"`
	Validation      string `json:"validation,omitempty"`
	TrainSplit      string `json:"train_split,omitempty"`
	ValidationSplit string `json:"validation_split,omitempty"`
}

// Framework names what trains.
type Framework struct {
	Kind      string `json:"kind"` // "pytorch"
	Version   string `json:"version"`
	RuntimeID string `json:"runtime_id"`
}

// Role is a part of the training system and the shell text that runs it, once
// per node of its pool. The driver's exit ends the run; other roles serve it.
type Role struct {
	Name   string `json:"name"`
	Driver bool   `json:"driver,omitempty"`
	// Beside is the role whose pool it runs on; "" when it has a profile itself.
	Beside string `json:"beside,omitempty"`
	// Nodes says which nodes of the pool run it.
	Nodes NodeSet `json:"nodes,omitempty"`
	// MPI makes it one step of many tasks.
	MPI *MPI `json:"mpi,omitempty"`
	// Body is bash, already quoted, in strict mode, started in the experiment's
	// directory with the TP_ variables of docs/job-environment.md.
	// It ends in exec, so that signals reach the training: give it a shell of
	// its own and expect nothing to run after it. A role without a body has a
	// place and no step: it lives in another role's processes, as in Ray.
	Body string `json:"body"`
	// Needs lists programs that must exist on the node ("bash", "python3").
	Needs []string `json:"needs,omitempty"`
	// Files must be in the bundle; relative to the lab.
	Files []string `json:"files,omitempty"`
}

// NodeSet is a part of a pool's nodes.
type NodeSet string

// Parts of a pool.
const (
	EveryNode  NodeSet = ""
	FirstNode  NodeSet = "first"
	LaterNodes NodeSet = "rest" // all but the first; of a pool of one node none
)

// MPI says how a role's processes are started by srun.
type MPI struct {
	Plugin string `json:"plugin"`          // of srun --mpi: "pmix", "pmi2"
	Tasks  int    `json:"tasks,omitempty"` // per node; 0 for one per GPU
}

// Param is one parameter of the recipe with the value that will be used.
type Param struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"` // config path
	Value  string `json:"value"`          // exactly as typed
	Origin string `json:"origin"`         // "default", "config.yaml:12", "-s", …
}

// EnvVar is one variable of the job and who asked for it.
type EnvVar struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "--env", "job.toml:7", "recipe", "caller"
}

// PerRole is a setting that may differ by role: the key "" is everybody's.
type PerRole map[string]string

// For is the value of the first of the roles that has one, else everybody's.
func (p PerRole) For(roles ...string) string {
	for _, r := range roles {
		if v, ok := p[r]; ok {
			return v
		}
	}
	return p[""]
}

// Job is everything about the job that is not the training itself.
type Job struct {
	Time        PerRole  `json:"time,omitempty"` // as written: "4h", "30m", "1-00:00:00"
	CPUsPerNode PerRole  `json:"cpus_per_node,omitempty"`
	Memory      PerRole  `json:"mem,omitempty"` // per node: "200G", "0" for the whole node
	Account     PerRole  `json:"account,omitempty"`
	Partition   PerRole  `json:"partition,omitempty"`
	QOS         PerRole  `json:"qos,omitempty"`
	Reservation PerRole  `json:"reservation,omitempty"`
	Constraint  PerRole  `json:"constraint,omitempty"`
	Prolog      []string `json:"prolog,omitempty"` // lines run before strict mode
	Requeue     bool     `json:"requeue,omitempty"`
	Slurm
}

// Slurm is the rest of what sbatch can be asked for, as written, in its words.
type Slurm struct {
	MemPerCPU    PerRole `json:"mem_per_cpu,omitempty"`
	MemPerGPU    PerRole `json:"mem_per_gpu,omitempty"`
	TimeMin      PerRole `json:"time_min,omitempty"`
	Prefer       PerRole `json:"prefer,omitempty"`
	NodeList     PerRole `json:"nodelist,omitempty"`
	ExcludeNodes PerRole `json:"exclude_nodes,omitempty"`
	Exclusive    PerRole `json:"exclusive,omitempty"` // one of Shares
	Switches     PerRole `json:"switches,omitempty"`  // "2", "1@30m"
	Segment      PerRole `json:"segment,omitempty"`
	Network      PerRole `json:"network,omitempty"`

	Begin    string   `json:"begin,omitempty"` // see ParseWhen
	Deadline string   `json:"deadline,omitempty"`
	After    []string `json:"after,omitempty"` // as sbatch --dependency, with runs for jobs
	Hold     bool     `json:"hold,omitempty"`
	Nice     int      `json:"nice,omitempty"`
	Priority int      `json:"priority,omitempty"`
	Licenses string   `json:"licenses,omitempty"`
	Signal   string   `json:"signal,omitempty"` // "USR1@300"
	MailType []string `json:"mail_type,omitempty"`
	MailUser string   `json:"mail_user,omitempty"`
	WCKey    string   `json:"wckey,omitempty"`
	Extra    string   `json:"extra,omitempty"`
	Comment  string   `json:"comment,omitempty"` // follows tp's own in the job's comment
}

// Pool is nodes of one series that one or more roles share: a Profile after
// the hardware registry was asked. Pools that look the same to Slurm share a
// component and take slices of its nodes.
type Pool struct {
	Name        string   `json:"name"` // its first role, or "all"
	Roles       []string `json:"roles"`
	Series      string   `json:"series"`
	GRES        string   `json:"gres,omitempty"` // "gpu:h200", without the count
	Nodes       int      `json:"nodes"`
	GPUsPerNode int      `json:"gpus_per_node"`
	CPUsPerNode int      `json:"cpus_per_node"`
	MemoryMiB   int64    `json:"memory_mib"` // per node
	Partition   string   `json:"partition"`
	Account     string   `json:"account,omitempty"`
	QOS         string   `json:"qos,omitempty"`
	Reservation string   `json:"reservation,omitempty"`
	Constraint  string   `json:"constraint,omitempty"`
	TimeMinutes int      `json:"time_minutes"`
	Component   int      `json:"component"`   // het component it belongs to
	NodeOffset  int      `json:"node_offset"` // first node within the component
	Asked       Asked    `json:"asked,omitzero"`

	// How the site wants the pool asked for; internal/site says what they mean.
	GPURequest string `json:"gpu_request,omitempty"`
	MemoryRule string `json:"memory_rule,omitempty"`
}

// Asked is the rest of what a pool asks Slurm for.
type Asked struct {
	MemPerCPU    int64         `json:"mem_per_cpu_mib,omitempty"` // MemoryMiB is what that makes
	MemPerGPU    int64         `json:"mem_per_gpu_mib,omitempty"`
	TimeMin      int           `json:"time_min_minutes,omitempty"`
	Prefer       string        `json:"prefer,omitempty"`
	NodeList     string        `json:"nodelist,omitempty"`
	ExcludeNodes string        `json:"exclude_nodes,omitempty"`
	Exclusive    string        `json:"exclusive,omitempty"`
	Switches     int           `json:"switches,omitempty"`
	SwitchWait   time.Duration `json:"switch_wait,omitempty"` // nanoseconds
	Segment      int           `json:"segment,omitempty"`
	Network      string        `json:"network,omitempty"`
}

// GPUs is the pool's total.
func (p Pool) GPUs() int { return p.Nodes * p.GPUsPerNode }

// Provenance says where the code comes from.
type Provenance struct {
	Commit    string    `json:"commit,omitempty"` // full hash; "" outside git
	Branch    string    `json:"branch,omitempty"`
	Dirty     bool      `json:"dirty"`
	Changed   []string  `json:"changed,omitempty"`   // tracked files that differ from the commit
	Untracked []string  `json:"untracked,omitempty"` // packed all the same
	Remote    string    `json:"remote,omitempty"`    // without credentials
	PatchHash string    `json:"patch_sha256,omitempty"`
	User      string    `json:"user"`
	Host      string    `json:"host"`
	Version   string    `json:"tp_version"`
	Command   []string  `json:"command,omitempty"` // argv, secrets never travel there
	Time      time.Time `json:"time"`
}
