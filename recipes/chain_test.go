package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
)

// nemoLab has an experiment of nemo-rl/grpo and files beside it, by their
// paths in the lab.
func nemoLab(t *testing.T, config string, files map[string]string) (*lab.Lab, *lab.Experiment) {
	t.Helper()
	l, e := newLab(t, "nemo-rl/grpo", "x", map[string]string{"config.yaml": config})
	for name, text := range files {
		path := filepath.Join(l.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return l, e
}

// merged is what the chain makes of a configuration: "path=text@file:line".
func merged(t *testing.T, version, config string, files map[string]string) (string, []string, error) {
	t.Helper()
	l, _ := nemoLab(t, config, files)
	r, _ := Embedded().Get("nemo-rl/grpo")
	var warnings []string
	c := &chain{lab: l, recipe: r, version: version, start: "experiments/x", dirs: []string{"experiments/x", "configs"}, warn: func(w string) { warnings = append(warnings, w) }}
	got, err := c.read("config.yaml", "experiments/x/config.yaml", []byte(config), nil)
	if err != nil {
		return "", warnings, err
	}
	var out []string
	for _, v := range got.Values {
		out = append(out, v.Path+"="+v.Text+"@"+got.Origin(v))
	}
	return strings.Join(out, " "), warnings, nil
}

// The order and the rules of NeMo-RL's loader (nemo_rl/utils/config.py).
func TestDefaultsChain(t *testing.T) {
	base := map[string]string{
		"configs/base.yaml":      "a: {x: 1, y: 2}\nb: [1, 2]\nc: 1\nd: {e: {f: 1, g: 2}}\nn: null\n",
		"configs/models/m.yaml":  "defaults: ../base.yaml\na: {y: 20, z: 30}\n",
		"configs/later.yaml":     "c: 3\nb: []\n",
		"configs/override.yaml":  "defaults: base.yaml\na: {_override_: true, w: 1}\n",
		"configs/interp.yaml":    "p: {len: 8, size: \"${p.len}\", t: \"${mul:${p.len}, 2}\"}\n",
		"configs/self.yaml":      "defaults: [other.yaml]\n",
		"configs/other.yaml":     "defaults: self.yaml\n",
		"configs/scalar.yaml":    "d: 7\nn: {k: 1}\na: {}\n",
		"experiments/x/own.yaml": "c: 9\n",
	}
	for _, c := range []struct{ name, config, want string }{
		{"one parent", "defaults: ../../configs/models/m.yaml\nc: 2\n",
			"a.x=1@configs/base.yaml:1 a.y=20@configs/models/m.yaml:2 b=[1,2]@configs/base.yaml:2 c=2@config.yaml:2 d.e.f=1@configs/base.yaml:4 d.e.g=2@configs/base.yaml:4 n=null@configs/base.yaml:5 a.z=30@configs/models/m.yaml:2"},
		{"later parents win", "defaults: [../../configs/base.yaml, ../../configs/later.yaml]\n",
			"a.x=1@configs/base.yaml:1 a.y=2@configs/base.yaml:1 b=[]@configs/later.yaml:2 c=3@configs/later.yaml:1 d.e.f=1@configs/base.yaml:4 d.e.g=2@configs/base.yaml:4 n=null@configs/base.yaml:5"},
		{"_override_ in a parent", "defaults: ../../configs/override.yaml\n",
			"b=[1,2]@configs/base.yaml:2 c=1@configs/base.yaml:3 d.e.f=1@configs/base.yaml:4 d.e.g=2@configs/base.yaml:4 n=null@configs/base.yaml:5 a.w=1@configs/override.yaml:2"},
		{"_override_ in the file", "defaults: ../../configs/base.yaml\na:\n  _override_: true\n  q: 5\nd: {_override_: false, e: {f: 3}}\n",
			"b=[1,2]@configs/base.yaml:2 c=1@configs/base.yaml:3 d.e.f=3@config.yaml:5 d.e.g=2@configs/base.yaml:4 n=null@configs/base.yaml:5 a.q=5@config.yaml:4 d._override_=false@config.yaml:5"},
		{"interpolations stay", "defaults: ../../configs/interp.yaml\np: {len: 16}\n",
			"p.len=16@config.yaml:2 p.size=${p.len}@configs/interp.yaml:1 p.t=${mul:${p.len}, 2}@configs/interp.yaml:1"},
		{"scalars and mappings take each other's place", "defaults: [../../configs/base.yaml, ../../configs/scalar.yaml, own.yaml]\n",
			"a.x=1@configs/base.yaml:1 a.y=2@configs/base.yaml:1 b=[1,2]@configs/base.yaml:2 c=9@experiments/x/own.yaml:1 d=7@configs/scalar.yaml:1 n.k=1@configs/scalar.yaml:2"},
		{"the framework's own example", "defaults: /opt/nemo-rl/examples/configs/grpo_math_1B.yaml\nc: 1\n", "c=1@config.yaml:2"},
		{"no parents", "c: 1\n", "c=1@config.yaml:1"},
	} {
		got, warnings, err := merged(t, "0.7.0", c.config, base)
		if err != nil || got != c.want || len(warnings) > 0 {
			t.Errorf("%s: %v %q\n got  %s\n want %s", c.name, err, warnings, got, c.want)
		}
	}
	for config, want := range map[string]string{
		"a: 1\ndefaults: ../../configs/none.yaml\n":       "config.yaml:2:11: defaults: ../../configs/none.yaml: there is no file configs/none.yaml",
		"defaults: [../../configs/base]\n":                "config.yaml:1:12: defaults: ../../configs/base: there is no file configs/base; there is ../../configs/base.yaml, and NeMo-RL adds no ending",
		"defaults: ../y/config.yaml\n":                    "config.yaml:1:11: defaults: ../y/config.yaml: is not packed; only experiments/x and configs travel with the experiment",
		"defaults: ../../../etc/passwd\n":                 "is not packed",
		"defaults: /etc/passwd\n":                         "config.yaml:1:11: defaults: /etc/passwd: lies outside of the lab; of the framework's own files only examples/configs/grpo_math_1B.yaml is known here",
		"defaults: ../../configs/self.yaml\n":             "configs/other.yaml:1:11: defaults: self.yaml: the defaults form a circle",
		"defaults: config.yaml\n":                         "the defaults form a circle",
		"defaults: {a: b}\n":                              "config.yaml:1:15: defaults is a path or a list of paths",
		"defaults:\nc: 1\n":                               "config.yaml:1:10: defaults is a path or a list of paths",
		"defaults: {}\n":                                  "config.yaml:1:11: defaults is a path or a list of paths",
		"defaults: [[a]]\n":                               "config.yaml:1:12: defaults is a path or a list of paths",
		"defaults: ../../configs/base.yaml\na: 1\na: 2\n": "config.yaml:3:1: a: the key is there twice",
	} {
		if _, _, err := merged(t, "0.7.0", config, base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got  %v\n want %s", config, err, want)
		}
	}
}

// A mark below the top level does nothing in NeMo-RL, so it is said.
func TestNestedOverrideIsSaid(t *testing.T) {
	files := map[string]string{"configs/base.yaml": "a: {b: {c: 1, d: 2}}\n", "configs/up/a.yaml": "defaults: b.yaml\n", "configs/up/b.yaml": "k: 1\n"}
	got, warnings, err := merged(t, "0.7.0", "defaults: ../../configs/base.yaml\na: {b: {_override_: true, c: 9}}\n", files)
	if err != nil || got != "a.b.c=9@config.yaml:2 a.b.d=2@configs/base.yaml:1 a.b._override_=true@config.yaml:2" {
		t.Errorf("%s, %v", got, err)
	}
	if len(warnings) != 1 || warnings[0] != "config.yaml:2:21: a.b._override_: NeMo-RL heeds _override_ only right below a top-level key; here it is merged as any other key" {
		t.Errorf("%q", warnings)
	}
	// Before 0.6 there is no such mark, and all parents are looked for from the first file.
	got, warnings, err = merged(t, "0.5.0", "defaults: ../../configs/base.yaml\na: {_override_: true, e: 1}\n", files)
	if err != nil || !strings.HasPrefix(got, "a.b.c=1@configs/base.yaml:1 ") || len(warnings) != 1 || !strings.Contains(warnings[0], "NeMo-RL 0.5.0 does not know _override_") {
		t.Errorf("%s, %q, %v", got, warnings, err)
	}
	if _, _, err = merged(t, "0.5.0", "defaults: ../../configs/up/a.yaml\n", files); err == nil || !strings.Contains(err.Error(), "configs/up/a.yaml:1:11: defaults: b.yaml: there is no file experiments/x/b.yaml") {
		t.Errorf("%v", err)
	}
	if _, _, err = merged(t, "0.7.0", "defaults: ../../configs/up/a.yaml\n", files); err != nil {
		t.Error(err)
	}
}

// Parents travel with the job, and a parent's values break rules with its place.
func TestParentsArePackedAndChecked(t *testing.T) {
	files := map[string]string{"configs/base/grpo.yaml": "defaults: /opt/nemo-rl/examples/configs/grpo_math_1B.yaml\ngrpo:\n  num_prompts_per_step: 30\npolicy:\n  train_micro_batch_size: 0\n"}
	l, e := nemoLab(t, "defaults: ../../configs/base/grpo.yaml\ngrpo: {val_batch_size: 512}\n", files)
	_, _, err := Compose(l, e, Options{Profiles: []string{"h200:8"}})
	want := "configs/base/grpo.yaml:5:27: policy.train_micro_batch_size: 0 is under 1"
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
	_, _, err = Compose(l, e, Options{Profiles: []string{"h200:8"}, Set: []string{"train_micro_batch_size=4"}})
	want = "config.yaml: policy.train_global_batch_size: 512 does not divide grpo.num_prompts_per_step (30, configs/base/grpo.yaml:3) × grpo.num_generations_per_prompt (16, default of nemo-rl 0.7.0) = 480\n" +
		"config.yaml:2:24: grpo.val_batch_size: 512 is over grpo.max_val_samples (256, default of nemo-rl 0.7.0)"
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
	s, _ := compose(t, l, e, Options{Set: []string{"train_micro_batch_size=4", "num_prompts_per_step=32", "val_batch_size=64"}})
	if got := strings.Join(s.Roles[0].Files, " "); got != "experiments/x/config.yaml configs/base/grpo.yaml" {
		t.Error(got)
	}
}
