package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
)

const pinned = "registry.example.org/ml/verl:0.9@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// verl is a job of a framework that needs a runtime.
func verl(version string) Input {
	in := input("h200:8")
	in.Spec.Framework = spec.Framework{Kind: "verl", Version: version, RuntimeID: "verl-" + version}
	in.Spec.Env = []spec.EnvVar{{Name: "HF_HOME", Value: "/hf", Origin: "--env"}}
	i, err := spec.ParseImage(pinned)
	if err != nil {
		panic(err)
	}
	in.Software = site.Software{Origin: "/etc/tp/site.toml", Runtimes: []site.Runtime{
		{Framework: "verl", Versions: []string{"0.9.0"}, Runtime: spec.Runtime{Name: "verl-0.9.0", Origin: "/etc/tp/site.toml:3", Container: spec.Pyxis, Image: i,
			Mounts: []spec.Mount{{Source: "/shared", Target: "/shared", ReadOnly: true, Origin: "/etc/tp/site.toml:5"}}}},
		{Framework: "trl", Versions: []string{"1.9.0"}, Runtime: spec.Runtime{Name: "trl-1.9.0", Container: spec.NoContainers, Prolog: []string{"module load trl"}}},
	}}
	return in
}

func blocks(p *Plan) (codes []string, first gates.Verdict) {
	for _, v := range p.Observed.Verdicts {
		if v.Level == gates.Block {
			if len(codes) == 0 {
				first = v
			}
			codes = append(codes, v.Code)
		}
	}
	return codes, first
}

func mustResolve(t *testing.T, in Input) *Plan {
	t.Helper()
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheSitesRuntime(t *testing.T) {
	in := verl("0.9.0")
	in.Spec.Model, in.Spec.Data.Train, in.Spec.Data.Validation = "/models/qwen", "/shared/data/train.parquet", "org/set"
	p := mustResolve(t, in)
	if codes, _ := blocks(p); len(codes) > 0 {
		t.Errorf("blocked by %v", codes)
	}
	var mounts []string
	for _, m := range p.Fixed.Runtime.Mounts {
		mounts = append(mounts, m.String())
	}
	want := "/shared:ro /models/qwen:ro /runs/ann/hello/run-0123456789ab"
	if got := strings.Join(mounts, " "); got != want {
		t.Errorf("mounts %q, wanted %q: the run directory last, data below a mount not twice, hub ids not at all", got, want)
	}
	for _, text := range []string{"--container-image='registry.example.org#ml/verl@sha256:", "--container-env=HF_HOME \\\n"} {
		if !strings.Contains(p.Fixed.Request.Script, text) {
			t.Errorf("the script has no %s", text)
		}
	}
	if len(p.Observed.Warnings) > 0 {
		t.Errorf("a digest needs no warning: %q", p.Observed.Warnings)
	}
	// The image is under the digest, and so is who starts it.
	in.Software.Runtimes[0].Container = spec.Apptainer
	if other := mustResolve(t, in); other.Digest == p.Digest {
		t.Error("another container, the same digest")
	}
}

func TestNoRuntimeIsRegistered(t *testing.T) {
	codes, v := blocks(mustResolve(t, verl("0.8.0")))
	if len(codes) != 1 || v.Code != "admission.runtime" || v.Found != "/etc/tp/site.toml has no runtime for it; registered: verl-0.9.0, trl-1.9.0" || !strings.Contains(v.Remedy, "verl-0.9.0") {
		t.Errorf("%v: %+v", codes, v)
	}
	in := verl("0.8.0")
	in.Snapshot = nil // what needs no cluster is said without one
	if codes, _ := blocks(mustResolve(t, in)); len(codes) != 1 {
		t.Errorf("offline: %v", codes)
	}
	in = verl("0.8.0")
	in.Software.Runtimes = nil // nobody keeps a registry
	if codes, _ := blocks(mustResolve(t, in)); len(codes) != 0 {
		t.Errorf("without a registry: %v", codes)
	}
	in = verl("0.8.0")
	in.Spec.Framework = spec.Framework{Kind: "custom", Version: "1", RuntimeID: "custom-1"}
	if codes, _ := blocks(mustResolve(t, in)); len(codes) != 0 {
		t.Errorf("custom runs on the node: %v", codes)
	}
	in = verl("0.8.0")
	in.Spec.Image = pinned
	if p := mustResolve(t, in); p.Fixed.Runtime.Container != spec.Pyxis {
		t.Errorf("an image stands for the runtime, and is started as the site's: %+v", p.Fixed.Runtime)
	}
}

func TestTheAllowList(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example.org/ml/other:1": "", "docker.io/library/python:3": "admission.image", "/images/a.sqsh": "admission.image",
	} {
		in := verl("0.9.0")
		in.Software.Allow, in.Software.AllowSet = []string{"registry.example.org/ml/*"}, true
		in.Spec.Image = image
		codes, v := blocks(mustResolve(t, in))
		if strings.Join(codes, " ") != want || want != "" && !strings.Contains(v.Found, "registry.example.org/ml/*") {
			t.Errorf("%s: %v %+v, wanted %q", image, codes, v, want)
		}
		in.Software.Allow = nil // an empty list allows none …
		if codes, _ := blocks(mustResolve(t, in)); strings.Join(codes, " ") != "admission.image" {
			t.Errorf("%s with an empty list: %v", image, codes)
		}
		in.Spec.Image = "" // … but the site's own
		if codes, _ := blocks(mustResolve(t, in)); len(codes) != 0 {
			t.Errorf("the site's runtime is blocked by %v", codes)
		}
	}
}

func TestATagWarns(t *testing.T) {
	in := verl("0.9.0")
	in.Spec.Image = "registry.example.org/ml/verl:0.9"
	if w := mustResolve(t, in).Observed.Warnings; len(w) != 1 || !strings.Contains(w[0], "has no digest") {
		t.Errorf("%q", w)
	}
}

func TestAnImageFileThatIsMissing(t *testing.T) {
	in := verl("0.9.0")
	in.Spec.Image = "/images/a.sqsh"
	in.Stat = func(path string) error { return errors.New(path + " is not there") }
	codes, v := blocks(mustResolve(t, in))
	if len(codes) != 1 || v.Code != "admission.imageMissing" || !strings.Contains(v.Found, "/images/a.sqsh is not there") {
		t.Errorf("%v %+v", codes, v)
	}
	i, _ := spec.ParseImage("/raid/a.sqsh") // the site may keep it on the nodes
	in.Spec.Image, in.Software.Runtimes[0].Image = "", i
	if codes, _ := blocks(mustResolve(t, in)); len(codes) != 0 {
		t.Errorf("the site's: %v", codes)
	}
}

func TestMountsThatCannotBe(t *testing.T) {
	bundle := func(in *Input) {
		i, _ := spec.ParseImage("/bundles/verl")
		in.Software.Runtimes[0].Image, in.Software.Runtimes[0].Container = i, spec.OCI
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"a comma in the run directory": {func(in *Input) { in.RunDir = "/runs/a,b/run-0123456789ab" }, `/runs/a,b/run-0123456789ab (run directory) cannot be mounted: it has ',', which pyxis`},
		"a blank in data":              {func(in *Input) { in.Spec.Data.Train = "/my data/x.parquet" }, "(model or data) cannot be mounted: it has ' '"},
		"a bundle without the run":     {bundle, "/runs/ann/hello/run-0123456789ab is not in the bundle /bundles/verl"},
		"a mount into a bundle": {func(in *Input) {
			bundle(in)
			in.Spec.Mounts = []spec.Mount{{Source: "/a", Target: "/a", Origin: "--mount"}}
		}, "--mount: Slurm's --container mounts nothing"},
	} {
		in := verl("0.9.0")
		c.change(&in)
		if _, err := Resolve(in); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	in := verl("0.9.0")
	bundle(&in)
	in.Software.Mounts = []spec.Mount{{Source: "/runs", Target: "/runs", Origin: "site"}}
	if p := mustResolve(t, in); !strings.Contains(p.Fixed.Request.Script, "--container=/bundles/verl ") {
		t.Error("the bundle is not in the script")
	}
}

func TestARuntimeOfModules(t *testing.T) {
	in := verl("0.9.0")
	in.Spec.Framework = spec.Framework{Kind: "trl", Version: "1.9.0"}
	in.Spec.Job.Prolog = []string{"echo mine"}
	in.Spec.Mounts = []spec.Mount{{Source: "/a", Target: "/b", Origin: "--mount"}}
	p := mustResolve(t, in)
	if !strings.Contains(p.Fixed.Request.Script, "module load trl\necho mine\n") || strings.Contains(p.Fixed.Request.Script, "--container") {
		t.Error("modules before the job's own lines, and no container")
	}
	if w := p.Observed.Warnings; len(w) != 1 || !strings.Contains(w[0], "mounts are for containers") {
		t.Errorf("%q", w)
	}
}
