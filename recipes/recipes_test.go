package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

// newLab is a lab with one experiment of a recipe and further files in it.
func newLab(t *testing.T, recipe, name string, files map[string]string) (*lab.Lab, *lab.Experiment) {
	t.Helper()
	l, err := lab.Init(context.Background(), filepath.Join(t.TempDir(), "lab"), lab.InitOptions{Name: "proj", NoGit: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExperiment(l, Embedded(), name, New{Recipe: recipe, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		path := e.Path(file)
		if file == "tp.toml" {
			path = filepath.Join(l.Root, file)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if l, err = lab.Find(l.Root, lab.Options{}); err != nil {
		t.Fatal(err)
	}
	if e, err = l.Experiment(name); err != nil {
		t.Fatal(err)
	}
	return l, e
}

func compose(t *testing.T, l *lab.Lab, e *lab.Experiment, o Options) (*spec.Spec, *Composition) {
	t.Helper()
	if len(o.Profiles) == 0 {
		o.Profiles = []string{"h200:8"}
	}
	s, c, err := Compose(l, e, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// Every recipe's template makes an experiment that composes, and its shell
// text passes bash -n and shellcheck.
func TestEveryRecipe(t *testing.T) {
	for _, name := range Embedded().Names() {
		l, e := newLab(t, name, "first", nil)
		r, _ := Embedded().Get(name)
		s, c := compose(t, l, e, inputsOf(r, Options{}))
		if c.State != Current {
			t.Errorf("%s: the new lock is %s: %s", name, c.State, c.Reasons)
		}
		for _, role := range s.Roles {
			lint(t, name+" "+role.Name, role.Body)
		}
		scripts, _ := filepath.Glob(e.Path("*.sh"))
		for _, script := range scripts {
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			lint(t, script, string(text))
		}
		if text := r.Describe(); !strings.Contains(text, r.Summary) || !strings.Contains(Embedded().List(), name) {
			t.Errorf("%s describes itself as %q", name, text)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

// inputsOf adds what a recipe takes: a model and data.
func inputsOf(r *Recipe, o Options) Options {
	for name, into := range map[string]*string{"model": &o.Model, "train_data": &o.TrainData, "validation_data": &o.ValidationData} {
		if r.Inputs[name] != "" && *into == "" {
			*into = "/shared/" + name + ".parquet"
		}
	}
	return o
}

func lint(t *testing.T, name, text string) {
	t.Helper()
	linters := [][]string{{"bash", "-n"}}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		linters = append(linters, []string{"shellcheck", "-s", "bash", "-e", "SC2016", "-"})
	}
	for _, linter := range linters {
		cmd := exec.Command(linter[0], linter[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %q: %v\n%s", name, linter, err, out)
		}
	}
}

// run executes a role's body as a job would, with a python3 that prints its
// arguments, and returns the words.
func run(t *testing.T, e *lab.Experiment, body string, env ...string) []string {
	t.Helper()
	bin := t.TempDir()
	fake := "#!/bin/sh\n[ \"$1\" != -c ] || exit 1 # asked for its versions: not the old torch\nprintf '%s\\0' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", body)
	cmd.Dir = e.Dir
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TP_OUT_DIR=/o u't", "TP_NNODES=2", "TP_RUN_ID=run-0123456789ab", "TP_RESTART=0",
		"TP_NODE_RANK=0", "TP_ROLE_TRAIN_IP=n1", "TP_ROLE_TRAIN_PORT=29500"}, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, body, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestTorchrunCommandLine(t *testing.T) {
	l, e := newLab(t, "pytorch/ddp", `a b'$x "實驗"🙂\`, map[string]string{"config.yaml": "lr: 1.0\nname: x\n"})
	s, _ := compose(t, l, e, Options{Set: []string{"lr=1e-5", `name=it's "$HOME" \ 實驗` + "\n"}})
	got := run(t, e, s.Roles[0].Body, "TP_GPUS_PER_NODE=8")
	want := []string{"-m", "torch.distributed.run", "--nnodes=2", "--node_rank=0", "--nproc_per_node=8", "--rdzv_backend=static",
		"--master_addr=n1", "--master_port=29500", "train.py", "--config", "config.yaml", "--output-dir", "/o u't", "--overrides-json",
		`{"lr": 1e-5, "name": "it's \"$HOME\" \\ 實驗\n"}`}
	if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for env, want := range map[string]string{"TP_GPUS_PER_NODE=0": "--nproc_per_node=1", "X=y": "--nproc_per_node=1"} {
		if got := run(t, e, s.Roles[0].Body, env); got[4] != want {
			t.Errorf("%s: %s", env, got[4])
		}
	}
	s, _ = compose(t, l, e, Options{Set: []string{"procs_per_node=3"}})
	if got := run(t, e, s.Roles[0].Body, "TP_GPUS_PER_NODE=8"); got[4] != "--nproc_per_node=3" || got[len(got)-1] != "{}" {
		t.Errorf("procs_per_node: %q", got)
	}
}

func TestCustomRoles(t *testing.T) {
	l, e := newLab(t, "custom/custom", "c", map[string]string{
		"job.toml": "roles = ['reward']\n", "train.sh": "echo train\n", "reward.sh": "echo reward\n"})
	s, _ := compose(t, l, e, Options{Profiles: []string{"train=h200:8", "reward=cpu:1"}})
	if len(s.Roles) != 2 || !s.Roles[0].Driver || s.Roles[1].Driver || s.Roles[1].Files[0] != "experiments/c/reward.sh" {
		t.Fatalf("%+v", s.Roles)
	}
	for _, role := range s.Roles {
		if got := run(t, e, role.Body); got[0] != role.Name+"\n" {
			t.Errorf("%s ran %q", role.Name, got)
		}
	}
}

func TestDigestsIgnoreHowAManifestIsWritten(t *testing.T) {
	data, err := files.ReadFile("catalog/pytorch/ddp/recipe.toml")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := Embedded().Get("pytorch/ddp")
	for change, same := range map[string]bool{"# only a comment\n" + string(data): true, strings.Replace(string(data), "max = 1024", "max = 1023", 1): false} {
		m, err := ParseManifest("recipe.toml", []byte(change))
		if err != nil {
			t.Fatal(err)
		}
		d, err := digests(m, r.Template, nil)
		if err != nil || (d.ManifestDigest == r.ManifestDigest) != same {
			t.Errorf("%s: same %v, want %v, %v", d.ManifestDigest, !same, same, err)
		}
	}
}

func TestManifestErrors(t *testing.T) {
	data, err := files.ReadFile("catalog/pytorch/ddp/recipe.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`launcher = "torchrun"`, `launcher = "mpirun"`, `r.toml:5:1: launcher: "mpirun" is not known; there are plain, torchrun, accelerate, ray and mpi`},
		{`driver = "train"`, `driver = "actor"`, `r.toml:8:1: driver: "actor" is none of the roles`},
		{`type = "int"`, `type = "integer"`, `params.procs_per_node: type "integer" is not known`},
		{`min = 1`, `min = 2000`, `params.procs_per_node: min is over max`},
		{`min = 1`, `default = 0` + "\nmin = 1", `params.procs_per_node: default: 0 is under 1`},
		{`doc = `, `dok = `, `unknown key "params.procs_per_node.dok"; did you mean "doc"?`},
	} {
		_, err := ParseManifest("r.toml", []byte(strings.Replace(string(data), c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got  %v\n want %s", c.new, err, c.want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, name := range []string{"catalog/pytorch/ddp/recipe.toml", "catalog/custom/custom/recipe.toml"} {
		data, err := files.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest("r.toml", data)
		if err != nil {
			return
		}
		_ = (&Recipe{Manifest: *m}).Describe()
		if _, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		}
	})
}
