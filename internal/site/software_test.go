package site

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/spec"
)

// software is that of a site file with this text, and the home directory.
func software(t *testing.T, text string) (Software, string, error) {
	t.Helper()
	c, home, err := world(t, nil, map[string]string{"etc/site.toml": text})
	if err != nil {
		return Software{}, home, err
	}
	return c.Software, home, nil
}

const runtimes = `[images]
container = "apptainer"
mounts = ["~/cache:/cache", "/scratch/{user}"]
[runtimes."nemo-rl-0.7.0"]
image = "/images/nemo.sqsh"
credentials = "~/.config/enroot"
[runtimes."trl-1.9.0"]
image = "registry.example.org/trl:1.9"
gpu = "amd"
[runtimes.trl]
framework = "trl"
versions = ["1.0.0"]
default = true
modules = ["cuda/12.4"]
venv = "~/envs/it's"
prolog = ["export A=1"]
[runtimes.trl-any]
framework = "trl"
container = "none"
`

func TestRuntimes(t *testing.T) {
	s, home, err := software(t, runtimes)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Mounts) != 2 || s.Mounts[0].Source != home+"/cache" || s.Mounts[0].Target != "/cache" || s.Mounts[1].Source != "/scratch/ada" {
		t.Errorf("mounts %+v", s.Mounts)
	}
	nemo := s.Runtimes[0]
	if nemo.Framework != "nemo-rl" || nemo.Versions[0] != "0.7.0" || nemo.Container != spec.Pyxis || nemo.Credentials != home+"/.config/enroot" || !strings.HasSuffix(nemo.Origin, "site.toml:4") {
		t.Errorf("%+v", nemo)
	}
	want := []string{
		"module load cuda/12.4 || { echo \"tp: the module cuda/12.4 cannot be loaded on ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 69; }",
		"# shellcheck disable=SC1091",
		`source '` + home + `/envs/it'\''s/bin/activate' || { echo "tp: the environment of runtime trl is not on ${SLURMD_NODENAME:-$HOSTNAME}" >&2; exit 69; }`,
		"export A=1",
	}
	if got := s.Runtimes[2].Prolog; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("prolog %q", got)
	}
	for f, want := range map[spec.Framework]string{
		{Kind: "trl", Version: "1.9.0", RuntimeID: "trl-1.9.0"}:         "trl-1.9.0",
		{Kind: "trl", Version: "1.9.0", RuntimeID: "trl-any"}:           "trl-any", // the recipe's word
		{Kind: "trl", Version: "1.9.0"}:                                 "trl-1.9.0",
		{Kind: "trl", Version: "1.0.0", RuntimeID: "trl-any"}:           "trl", // the site's default goes before it
		{Kind: "trl", Version: "2"}:                                     "trl-any",
		{Kind: "nemo-rl", Version: "0.6.0", RuntimeID: "nemo-rl-0.6.0"}: "",
		{Kind: "verl", Version: "1.9.0", RuntimeID: "trl-1.9.0"}:        "", // another framework's
	} {
		if r, _ := s.Find(f); r.Name != want {
			t.Errorf("%+v has runtime %q, wanted %q", f, r.Name, want)
		}
	}
}

// What starts an image that a job names.
func TestStarterOfANamedImage(t *testing.T) {
	trl := spec.Framework{Kind: "trl", Version: "1.9.0"}
	for _, c := range []struct{ site, image, want string }{
		{runtimes, "python:3", "apptainer"},
		{runtimes, "/a.sqsh", "pyxis"},
		{runtimes, "/a.sif", "apptainer"},
		{runtimes, "/bundle", "oci"},
		{"[runtimes.\"trl-1.9.0\"]\nimage = \"a/b\"\ncontainer = \"pyxis\"\n", "python:3", "pyxis"},
		{"[runtimes.\"verl-1\"]\nimage = \"a/b\"\ncontainer = \"apptainer\"\n", "python:3", "apptainer"},
		{"[images]\ncontainer = \"pyxis\"\n", "oras://ghcr.io/a", "apptainer"},
		{"[images]\ncontainer = \"none\"\n", "python:3", ""},
		{"", "python:3", ""},
	} {
		s, _, err := software(t, c.site)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := s.Choose(trl, c.image, "--image")
		if string(r.Container) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: %s is started by %q (%v), wanted %q", c.site, c.image, r.Container, err, c.want)
		}
	}
}

func TestRuntimesRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"[runtimes.verl]\nimage = \"a/b\"\n":                                                           "1:11: runtimes.verl: framework is missing",
		"[runtimes.\"verl-1\"]\nimage = \"a/b\"\n":                                                     "2:1: runtimes.verl-1.image: container is missing",
		"[runtimes.\"verl-1\"]\nimage = \"A\"\n":                                                       "2:1: runtimes.verl-1.image: image \"A\"",
		"[runtimes.\"verl-1\"]\ncontainer = \"docker\"\n":                                              "expected none or pyxis or apptainer or oci",
		"[runtimes.\"verl-1\"]\ncontainer = \"pyxis\"\n":                                               "image is missing",
		"[runtimes.\"verl-1\"]\ncontainer = \"none\"\nimage = \"a/b\"\n":                               "none cannot start docker.io/a/b:latest",
		"[runtimes.\"verl-1\"]\ncontainer = \"oci\"\nimage = \"a/b\"\n":                                "oci cannot start",
		"[runtimes.\"verl-1\"]\nmounts = [\"/a\"]\n":                                                   "belong to a container",
		"[runtimes.\"verl-1\"]\nimage = \"/a.sif\"\nmounts = [\"a\"]\n":                                "no absolute path",
		"[runtimes.\"verl-1\"]\nimage = \"/a.sif\"\ncredentials = \"hunter2\"\n":                       "no absolute path; the file it names holds them",
		"[runtimes.\"verl-1\"]\ngpu = \"tpu\"\n":                                                       "expected nvidia or amd or none",
		"[runtimes.\"verl-1\"]\nmodules = [\"a b\"]\n":                                                 "no name of a module",
		"[runtimes.\"verl-1\"]\nimages = \"a\"\n":                                                      "unknown key",
		"[runtimes.\"verl-1\"]\ndefault = true\n[runtimes.verl]\nframework=\"verl\"\ndefault = true\n": "verl-1 is the default of verl already",
		"[images]\nmounts = [\"/a:/etc\"]\n":                                                           "/etc belongs to the image",
	} {
		if _, _, err := software(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, wanted %q", text, err, want)
		}
	}
}
