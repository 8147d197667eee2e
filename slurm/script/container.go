package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
)

// inside are the options of srun that put a step into its container, one a line.
// Every pyxis flag whose default the site may change is said.
func (s Step) inside() (string, error) {
	r := s.Runtime
	if !r.Contained() {
		return "", nil
	}
	if err := expressible(r); err != nil {
		return "", fmt.Errorf("role %q: %w", s.Role, err)
	}
	switch r.Container {
	case spec.Pyxis:
		b := "--container-image=" + shell.Quote(enroot(r.Image))
		if list := pyxisMounts(r.Mounts); list != "" {
			b += " \\\n  --container-mounts=" + shell.Quote(list)
		}
		home := "--no-container-mount-home"
		if r.Home {
			home = "--container-mount-home"
		}
		b += " \\\n  --container-workdir=\"$TP_EXP_DIR\" " + home + " --no-container-entrypoint"
		if len(s.Force) > 0 {
			b += " \\\n  --container-env=" + shell.Quote(strings.Join(s.Force, ","))
		}
		return b + " ", nil
	case spec.OCI:
		return "--container=" + shell.Quote(r.Image.Path) + " ", nil
	}
	return "", nil
}

// box is the function that runs a role's function in its container, on the
// node and below tp_role, whose log also has what the runtime says; "" where
// srun does it. An image's own variables win over the node's, but for those
// that somebody set for this job.
func (s Step) box(role string) string {
	r := s.Runtime
	if r.Container != spec.Apptainer {
		return ""
	}
	var b strings.Builder
	b.WriteString("command -v apptainer >/dev/null || { echo \"tp: apptainer is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 127; }\n")
	if r.Image.File() {
		fmt.Fprintf(&b, "[ -r %s ] || { echo \"tp: the image %s is not on ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 66; }\n", shell.Quote(r.Image.Path), r.Image.Path)
	}
	for _, name := range s.Force {
		fmt.Fprintf(&b, "export APPTAINERENV_%s=\"${%s-}\"\n", name, name)
	}
	b.WriteString("exec apptainer exec")
	if s.GPUsPerNode > 0 {
		switch r.GPU {
		case "", "nvidia":
			b.WriteString(" --nv")
		case "amd":
			b.WriteString(" --rocm")
		}
	}
	if !r.Home {
		b.WriteString(" --no-home")
	}
	if r.Credentials != "" {
		b.WriteString(" --authfile " + shell.Quote(r.Credentials))
	}
	for _, m := range r.Mounts {
		text := m.Source + ":" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		b.WriteString(" \\\n  --bind " + shell.Quote(text))
	}
	// --cwd is newer than 1.1, and this works with all.
	fmt.Fprintf(&b, " \\\n  %s \\\n  bash -c \"set -euo pipefail; $(declare -f %s); cd \\\"\\$TP_EXP_DIR\\\"; %s\"\n", shell.Quote(pull(r.Image)), role, role)
	return b.String()
}

// enroot is the image as pyxis hands it to enroot.
func enroot(i spec.Image) string {
	if i.File() {
		return i.Path
	}
	text := i.Repo
	if i.Registry == "docker.io" { // enroot's default, and it adds library/ as well
		text = strings.TrimPrefix(text, "library/")
	} else {
		text = i.Registry + "#" + text
	}
	if i.Digest != "" { // enroot 4 and later
		return text + "@" + i.Digest
	}
	return text + ":" + i.Tag
}

// pull is the image as Apptainer reads it: a digest alone, for tag and digest
// together are documented for definition files only.
func pull(i spec.Image) string {
	if i.File() {
		return i.Path
	}
	text := "docker://" + i.Registry + "/" + i.Repo
	if i.Kind == spec.OrasImage {
		text = i.Name()
	}
	if i.Digest != "" {
		return text + "@" + i.Digest
	}
	return text + ":" + i.Tag
}

func pyxisMounts(list []spec.Mount) string {
	var out []string
	for _, m := range list {
		text := m.Source + ":" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}

// expressible refuses what a runtime has no words for.
func expressible(r spec.Runtime) error {
	if !slices.Contains(r.Container.Starts(), r.Image.Kind) {
		return fmt.Errorf("%s starts %s", r.Container, wants[r.Container])
	}
	taken := map[string]spec.Mount{}
	for _, m := range r.Mounts {
		for _, p := range []string{m.Source, m.Target} {
			bad, why := "", ""
			switch r.Container {
			case spec.Pyxis:
				bad, why = ":, \t", "pyxis reads as the end of a path"
			case spec.Apptainer:
				bad, why = ":,\"\\", "apptainer --bind reads as the end of a path or as a quote"
			}
			if at := strings.IndexAny(p, bad); at >= 0 {
				return fmt.Errorf("%s (%s) cannot be mounted: it has %q, which %s; give it another name, or a link without it", p, m.Origin, p[at], why)
			}
		}
		if other, ok := taken[m.Target]; ok && other.Source != m.Source {
			return fmt.Errorf("%s is to be %s (%s) and %s (%s) at the same time", m.Target, other.Source, other.Origin, m.Source, m.Origin)
		}
		taken[m.Target] = m
	}
	return nil
}

var wants = map[spec.Containers]string{
	spec.Pyxis:     "images of a registry and .sqsh files",
	spec.Apptainer: "images of a registry, docker:// or oras://, and .sif files",
	spec.OCI:       "the directory of an OCI bundle that is on every node",
}

// containerChecks end the run with a plain word, before any role starts, where
// the cluster lacks what its containers need.
func (p *Program) containerChecks(b *strings.Builder) {
	var seen []spec.Containers
	for _, s := range p.Steps {
		if s.Body == "" || slices.Contains(seen, s.Runtime.Container) {
			continue
		}
		seen = append(seen, s.Runtime.Container)
		switch s.Runtime.Container {
		case spec.Pyxis:
			b.WriteString(pyxisCheck)
			if c := s.Runtime.Credentials; c != "" { // the one variable that every pyxis hands to enroot for this
				b.WriteString("export ENROOT_CONFIG_PATH=" + shell.Quote(c) + "\n")
			}
		case spec.OCI:
			b.WriteString(ociCheck)
		}
	}
}

// pyxisCheck: srun would say "unrecognized option" and give 1.
const pyxisCheck = `tp_help=$(srun --help 2>&1) || true
if [[ $tp_help != *--container-image* ]]; then
  tp_fail 69 "srun on $(hostname) has no --container-image: Slurm's plugin pyxis is not there, and the site file says that it starts the containers"
fi
`

// ociCheck: without oci.conf Slurm ignores --container in silence.
const ociCheck = `tp_conf=$(scontrol show config 2>/dev/null | sed -n 's/^SLURM_CONF *= //p')
if [[ ! -e ${tp_conf%/*}/oci.conf ]]; then
  tp_fail 69 "there is no oci.conf beside $tp_conf on $(hostname): Slurm would ignore --container and run on the node itself"
fi
`
