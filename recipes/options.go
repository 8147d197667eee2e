package recipes

import (
	"os"

	"github.com/tuneplane/tp/internal/lab"
)

// Options are the flags of plan, submit and sweep that say what is wanted. The
// zero value takes everything from the lab.
type Options struct {
	Set      []string // -s KEY=VALUE
	Profiles []string // --profile [ROLE[,ROLE]=]SERIES[:N]
	Env      []string // --env NAME=VALUE; NAME alone takes the caller's value
	EnvFiles []string // --env-file: lines NAME=VALUE

	Name, Project, Description, Image string

	// Model and data: a path on the cluster or a hub's id.
	Model, TrainData, ValidationData, TrainSplit, ValidationSplit string

	Tags, Prolog, Exclude, Mounts []string
	Requeue                       *bool

	// NoValidate takes parameters outside their range or choices, with a
	// warning. Types stay: a text where a number is wanted is never meant.
	NoValidate bool

	// Each entry is VALUE for every role, or ROLE[,ROLE]=VALUE.
	Time, CPUsPerNode, Memory, Account, Partition, QOS, Reservation, Constraint []string

	// Draft asks only whether the experiment is right: a model or data that tp
	// submit would want are said, not missed.
	Draft bool
	Lock  *Lock // in place of the experiment's

	Slurm Slurm

	Defaults  []*lab.JobFile              // user file, then site file
	Catalog   *Catalog                    // nil: Embedded
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
}

// Slurm are the flags that say the rest of what sbatch can be asked for.
type Slurm struct {
	// Each entry is VALUE for every role, or ROLE[,ROLE]=VALUE.
	MemPerCPU, MemPerGPU, TimeMin, Prefer, NodeList, ExcludeNodes, Exclusive, Switches, Segment, Network []string

	Begin, Deadline, Licenses, Signal, MailUser, WCKey, Extra, Comment string

	Dependency []string // as in sbatch --dependency; a run's id may stand for a job's
	After      []string // jobs or runs that have to end well first
	MailType   []string
	Hold       *bool
	Nice       *int
	Priority   *int
}

func (o Options) withDefaults() Options {
	if o.Catalog == nil {
		o.Catalog = Embedded()
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	return o
}

// Setting is one value of a job with where it was set; tp config show prints
// them.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "--time", "job.toml:7", "tp.toml:3", "default"
}

// Composition is a spec and how it came about.
type Composition struct {
	Settings []Setting
	Warnings []string
	Recipe   *Recipe // with the bindings of a foreign lock
	Lock     *Lock
	State    LockState // Current or Foreign
	Reasons  []string  // why the lock is foreign
}
