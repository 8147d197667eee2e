package site

import "github.com/tuneplane/tp/internal/spec"

// Shared are the keys that both files may hold; embedded, and exported because
// the decoder looks through exported types only.
type Shared struct {
	RunRoot      string               `toml:"run_root"`
	StateDir     string               `toml:"state_dir"`
	DefaultFleet string               `toml:"default_fleet"`
	Objects      objectKeys           `toml:"objects"`
	Fleets       map[string]fleetKeys `toml:"fleets"`
	Defaults     spec.JobKeys         `toml:"defaults"`
}

// siteKeys are the keys of the site file.
type siteKeys struct {
	Shared
	PlanTTL     string                 `toml:"plan_ttl"`
	PollSeconds int                    `toml:"poll_seconds"`
	Series      map[string]seriesKeys  `toml:"series"`
	Images      imageKeys              `toml:"images"`
	Runtimes    map[string]runtimeKeys `toml:"runtimes"`
	Environment environmentKeys        `toml:"environment"`
	Network     networkKeys            `toml:"network"`
	Requests    requestKeys            `toml:"requests"`
	Recipes     string                 `toml:"recipes"`
}

// userKeys are the keys of the user file.
type userKeys struct{ Shared }

// siteOnly are the keys that no later layer may set, with the reason.
var siteOnly = map[string]string{
	"series":       "the hardware registry",
	"images":       "the image allow list",
	"runtimes":     "the registry of runtimes",
	"plan_ttl":     "how long plans live",
	"poll_seconds": "the polling floor",
	"environment":  "what every job's environment gets",
	"network":      "the network between nodes",
	"requests":     "how resources are asked for",
	"recipes":      "the directory of recipes",
}

type objectKeys struct {
	Kind        string `toml:"kind"`
	Path        string `toml:"path"`
	Endpoint    string `toml:"endpoint"`
	Bucket      string `toml:"bucket"`
	Region      string `toml:"region"`
	Prefix      string `toml:"prefix"`
	Credentials string `toml:"credentials"`
	PathStyle   *bool  `toml:"path_style"`
}

type fleetKeys struct {
	Kind         string   `toml:"kind"`
	URL          string   `toml:"url"`
	TokenFile    string   `toml:"token_file"`
	TokenCommand []string `toml:"token_command"`
	Timeout      string   `toml:"timeout"`
	User         string   `toml:"user"`
	Cluster      string   `toml:"cluster"`
	Transport    string   `toml:"transport"`
	Transports   []string `toml:"transports"`
	Fallback     *bool    `toml:"fallback"`
	Slurmrestd   string   `toml:"slurmrestd"`
	Tools        string   `toml:"tools"`
	Account      string   `toml:"account"`
	Partition    string   `toml:"partition"`
	QOS          string   `toml:"qos"`
	Time         string   `toml:"time"`
	Prolog       []string `toml:"prolog"`
}

type seriesKeys struct {
	GRES       string   `toml:"gres"`
	Devices    int      `toml:"devices"`
	CPUs       int      `toml:"cpus"`
	Memory     string   `toml:"memory"`
	Default    string   `toml:"default"`
	Arch       string   `toml:"arch"`
	Partitions []string `toml:"partitions"`
	Price      float64  `toml:"price"`
	Constraint string   `toml:"constraint"`
	Feature    string   `toml:"feature"`
	Aliases    []string `toml:"aliases"`

	GPURequest  string   `toml:"gpu_request"`
	MemoryRule  string   `toml:"mem"`
	Account     string   `toml:"account"`
	QOS         string   `toml:"qos"`
	Reservation string   `toml:"reservation"`
	Time        string   `toml:"time"`
	Exclusive   any      `toml:"exclusive"` // true, or "user", "mcs", "topo"
	Segment     int      `toml:"segment"`
	Switches    int      `toml:"switches"`
	Prolog      []string `toml:"prolog"`
}

// requestKeys hold for every series that does not say otherwise.
type requestKeys struct {
	GPURequest string `toml:"gpu_request"`
	MemoryRule string `toml:"mem"`
}

type imageKeys struct {
	Allow     []string `toml:"allow"`
	Container string   `toml:"container"`
	Mounts    []string `toml:"mounts"`
}

type runtimeKeys struct {
	Framework   string   `toml:"framework"`
	Versions    []string `toml:"versions"`
	Default     bool     `toml:"default"`
	Image       string   `toml:"image"`
	Container   string   `toml:"container"`
	Mounts      []string `toml:"mounts"`
	Home        bool     `toml:"home"`
	GPU         string   `toml:"gpu"`
	Credentials string   `toml:"credentials"`
	Modules     []string `toml:"modules"`
	Venv        string   `toml:"venv"`
	Prolog      []string `toml:"prolog"`
}

type environmentKeys struct {
	Pass       []string `toml:"pass"`
	GetUserEnv bool     `toml:"get_user_env"`
}

type networkKeys struct {
	Interface string `toml:"interface"`
	Family    string `toml:"family"`
	Ports     string `toml:"ports"`
}
