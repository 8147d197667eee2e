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
}
