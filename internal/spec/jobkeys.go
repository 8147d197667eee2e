package spec

// JobKeys are the keys of job.toml, which are also those of [defaults] in
// tp.toml, the user file and the site file. Fields of type any hold one value
// for everybody or a table by role:
//
//	time = "4h"
//	[time]
//	train = "8h"
//
// lab.NewJobFile turns them into typed values with their origins.
type JobKeys struct {
	Description string   `toml:"description"`
	Tags        []string `toml:"tags"`
	Roles       []string `toml:"roles"` // further roles, where the recipe leaves them open
	Profile     []string `toml:"profile"`
	Time        any      `toml:"time"`
	CPUsPerNode any      `toml:"cpus_per_node"`
	Memory      any      `toml:"mem"`
	Account     any      `toml:"account"`
	Partition   any      `toml:"partition"`
	QOS         any      `toml:"qos"`
	Reservation any      `toml:"reservation"`
	Constraint  any      `toml:"constraint"`
	Image       string   `toml:"image"`
	Mounts      []string `toml:"mounts"`

	Model           string `toml:"model"`
	TrainData       string `toml:"train_data"`
	ValidationData  string `toml:"validation_data"`
	TrainSplit      string `toml:"train_split"`
	ValidationSplit string `toml:"validation_split"`

	Env           map[string]any `toml:"env"`
	EnvFromCaller []string       `toml:"env_from_caller"`
	Prolog        []string       `toml:"prolog"`
	Requeue       *bool          `toml:"requeue"`
	Exclude       []string       `toml:"exclude"`
	Params        map[string]any `toml:"params"`

	SlurmKeys
}

// SlurmKeys are those of Slurm, in the words of sbatch(1). after and dependency
// are flags only: a job's id has no place in a file.
type SlurmKeys struct {
	MemPerCPU    any      `toml:"mem_per_cpu"`
	MemPerGPU    any      `toml:"mem_per_gpu"`
	TimeMin      any      `toml:"time_min"`
	Prefer       any      `toml:"prefer"`
	NodeList     any      `toml:"nodelist"`
	ExcludeNodes any      `toml:"exclude_nodes"`
	Exclusive    any      `toml:"exclusive"`
	Switches     any      `toml:"switches"`
	Segment      any      `toml:"segment"`
	Network      any      `toml:"network"`
	Begin        string   `toml:"begin"`
	Deadline     string   `toml:"deadline"`
	Hold         *bool    `toml:"hold"`
	Nice         *int     `toml:"nice"`
	Priority     *int     `toml:"priority"`
	Licenses     string   `toml:"licenses"`
	Signal       string   `toml:"signal"`
	MailType     []string `toml:"mail_type"`
	MailUser     string   `toml:"mail_user"`
	WCKey        string   `toml:"wckey"`
	Extra        string   `toml:"extra"`
	Comment      string   `toml:"comment"`
}
