package spec

// Containers says what starts containers.
type Containers string

// Ways of starting one.
const (
	NoContainers Containers = "none"      // the node itself, with modules or an environment
	Pyxis        Containers = "pyxis"     // srun --container-image, by NVIDIA's plugin and enroot
	Apptainer    Containers = "apptainer" // apptainer exec, inside the step
	OCI          Containers = "oci"       // srun --container, Slurm's own
)

// ContainerKinds are all of them.
var ContainerKinds = []Containers{NoContainers, Pyxis, Apptainer, OCI}

// starts are the images that each can start.
var starts = map[Containers][]ImageKind{
	Pyxis: {RegistryImage, SquashFile}, Apptainer: {RegistryImage, OrasImage, SIFFile}, OCI: {BundleDir},
}

// Starts are the kinds of images that it can start.
func (c Containers) Starts() []ImageKind { return starts[c] }

// Runtime is where a job's software comes from. The zero value is the node
// itself, as it is and as prolog lines make it.
type Runtime struct {
	Name        string     `json:"name,omitempty"`   // in the site's registry; "" for an image that was asked for by name
	Origin      string     `json:"origin,omitempty"` // "--image", "job.toml:3", "/etc/tp/site.toml:12"
	Container   Containers `json:"container,omitempty"`
	Image       Image      `json:"image,omitzero"`
	Mounts      []Mount    `json:"mounts,omitempty"`
	Home        bool       `json:"home,omitempty"`        // the user's home directory is mounted
	GPU         string     `json:"gpu,omitempty"`         // "nvidia", "amd", "none": whose libraries Apptainer brings along
	Credentials string     `json:"credentials,omitempty"` // path, see docs/site.md; never what it holds
	Prolog      []string   `json:"prolog,omitempty"`
}

// Contained reports whether the roles run in containers.
func (r Runtime) Contained() bool { return r.Container != "" && r.Container != NoContainers }
