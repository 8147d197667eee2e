package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/spec"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// contained is a job of two pools whose roles run in an image.
func contained(t *testing.T, how spec.Containers, image string, mounts ...string) Program {
	t.Helper()
	p := twoPools()
	i, err := spec.ParseImage(image)
	if err != nil {
		t.Fatal(err)
	}
	r := spec.Runtime{Container: how, Image: i, Mounts: []spec.Mount{{Source: p.RunDir, Target: p.RunDir, Origin: "run directory"}}}
	for _, text := range mounts {
		m, err := spec.ParseMount(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Origin = "--mount"
		r.Mounts = append(r.Mounts, m)
	}
	for i := range p.Steps {
		p.Steps[i].Runtime, p.Steps[i].Force = r, []string{"REWARDS"}
	}
	return p
}

// TestContainersGolden shows what each way of starting containers makes of the
// roles; what comes before is the same for all.
func TestContainersGolden(t *testing.T) {
	cases := map[string]Program{
		"pyxis":          contained(t, spec.Pyxis, "nvcr.io/nvidia/pytorch:24.05-py3@"+digest, "/shared/data:ro", "/shared/hf:/root/hf"),
		"pyxis-file":     contained(t, spec.Pyxis, "/images/verl_0123456789ab.sqsh"),
		"apptainer":      contained(t, spec.Apptainer, "registry.example.org:5000/team/verl:0.9@"+digest, "/shared/data:ro", "/shared/my data:/data"),
		"apptainer-file": contained(t, spec.Apptainer, "/images/verl_0123456789ab.sif"),
		"oci":            contained(t, spec.OCI, "/bundles/verl_0123456789ab"),
	}
	for i := range cases["apptainer"].Steps {
		cases["apptainer"].Steps[i].Runtime.Credentials = "/home/alice/.config/tp/it's/auth.json"
		cases["apptainer-file"].Steps[i].Runtime.GPU = "amd"
		cases["apptainer-file"].Steps[i].Runtime.Home = true
		cases["pyxis"].Steps[i].Runtime.Credentials = "/home/alice/.config/enroot"
	}
	for name, p := range cases {
		whole, err := Render(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		clean(t, name, whole)
		_, got, ok := strings.Cut(whole, "# ---- what each role runs")
		golden := filepath.Join("testdata", name+".sh")
		got = "# ---- what each role runs" + got
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || !ok || got != string(want) {
			t.Errorf("the script of %s differs from %s (%v); go test ./slurm/script -update shows how", name, golden, err)
		}
	}
}

// clean holds a script, and each role's function as its container gets it,
// against bash -n and shellcheck.
func clean(t *testing.T, name, text string) {
	t.Helper()
	for _, linter := range [][]string{{"bash", "-n"}, {"shellcheck", "-s", "bash", "-e", "SC2016,SC2034,SC2154,SC2317", "-"}} {
		if _, err := exec.LookPath(linter[0]); err != nil {
			t.Logf("%s is not here", linter[0])
			continue
		}
		cmd := exec.Command(linter[0], linter[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %q: %v\n%s", name, linter, err, out)
		}
	}
}

func TestContainersRefuse(t *testing.T) {
	for _, c := range []struct {
		how   spec.Containers
		image string
		mount spec.Mount
		want  string
	}{
		{spec.Pyxis, "python:3", spec.Mount{Source: "/a,b", Target: "/d", Origin: "--mount"}, `/a,b (--mount) cannot be mounted: it has ',', which pyxis reads as the end of a path`},
		{spec.Pyxis, "python:3", spec.Mount{Source: "/a:b", Target: "/d"}, `it has ':'`},
		{spec.Pyxis, "python:3", spec.Mount{Source: "/a", Target: "/d e"}, `it has ' '`},
		{spec.Apptainer, "python:3", spec.Mount{Source: "/a,b", Target: "/d"}, `it has ',', which apptainer --bind`},
		{spec.Apptainer, "python:3", spec.Mount{Source: "/a:b", Target: "/d"}, `it has ':'`},
		{spec.Pyxis, "oras://ghcr.io/a", spec.Mount{}, "pyxis starts images of a registry and .sqsh files"},
		{spec.Pyxis, "/a.sif", spec.Mount{}, "pyxis starts images of a registry and .sqsh files"},
		{spec.Apptainer, "/a.sqsh", spec.Mount{}, ".sif files"},
		{spec.OCI, "python:3", spec.Mount{}, "the directory of an OCI bundle"},
	} {
		p := contained(t, c.how, c.image)
		if c.mount != (spec.Mount{}) {
			for i := range p.Steps {
				p.Steps[i].Runtime.Mounts = append(slices.Clone(p.Steps[i].Runtime.Mounts), c.mount)
			}
		}
		if _, err := Render(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s with %s: %v, wanted %q", c.how, c.image, c.mount, err, c.want)
		}
	}
	p := contained(t, spec.Pyxis, "python:3", "/a:/data", "/b:/data")
	if _, err := Render(p); err == nil || !strings.Contains(err.Error(), "/data is to be /a (--mount) and /b") {
		t.Error(err)
	}
}

// An Apptainer role that is started by a real bash gets its function, its
// arguments and the forced variables, whatever is in them.
func TestApptainerRunsTheRole(t *testing.T) {
	p := contained(t, spec.Apptainer, "/bin/bash.sif")
	s := p.Steps[0]
	s.Runtime.Image.Path = "/bin/bash" // any file that is there
	s.Body = "echo \"role: $REWARDS / $IMAGE_OWN in $PWD\""
	dir := t.TempDir()
	fake := "#!/bin/bash\nprintf '%s\\n' \"${@:1:$#-3}\" >\"$0.args\"\nexport REWARDS=\"$APPTAINERENV_REWARDS\" IMAGE_OWN=image\nexec \"${@: -3}\"\n"
	if err := os.WriteFile(filepath.Join(dir, "apptainer"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "tp_role_0() {\n" + s.Body + "\n}\ntp_box_0() {\n" + s.box("tp_role_0") + "}\ntp_box_0\n"
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
	hostile := "it's \"$(id)\" `id` \\ ; \n 训练"
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "REWARDS=" + hostile, "IMAGE_OWN=node", "TP_EXP_DIR=" + dir}
	out, err := cmd.CombinedOutput()
	if want := "role: " + hostile + " / image in " + dir + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, wanted %q", err, out, want)
	}
	args, _ := os.ReadFile(filepath.Join(dir, "apptainer.args"))
	want := "exec\n--nv\n--no-home\n--bind\n" + p.RunDir + ":" + p.RunDir + "\n/bin/bash\n"
	if string(args) != want {
		t.Errorf("apptainer got %q, wanted %q", args, want)
	}
}
