package recipes

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
)

const digest0 = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// One lock of each variant that was seen.
var variants = map[string]string{
	"lab v1":           `{"apiVersion":"lab/recipe-lock/v1","sdk_version":"0.1.0","recipe":{"name":"ddp","version":"0.7.0","digest":"` + digest0 + `","framework":"pytorch"}}`,
	"lab v2":           `{"apiVersion":"lab/recipe-lock/v2","sdk_version":"0.1.0","recipe":{"name":"pytorch/ddp","version":"1.0.0","digest":"` + digest0 + `","framework":"pytorch","framework_version":"2.8"}}`,
	"lab v3 early":     `{"apiVersion":"lab/recipe-lock/v3","created_by":{"sdk_version":"0.2"},"requires":{"sdk":">=0.1,<1"},"recipe":{"name":"pytorch/ddp","version":"1.0.0","digest":"` + digest0 + `","manifest_digest":"` + digest0 + `","template_digest":"` + digest0 + `"},"framework":{"kind":"pytorch","version":"2.8","runtime_id":"pytorch-2.8"}}`,
	"forge v3":         `{"apiVersion":"forge/recipe-lock/v3","created_by":{"core_version":"0.3.3"},"requires":{"core":">=0.1,<1"},"recipe":{"name":"pytorch/ddp","version":"1.0.0","digest":"` + digest0 + `"},"framework":{"kind":"pytorch","version":"2.8","runtime_id":"pytorch-2.8"}}`,
	"forge v4":         `{"apiVersion":"forge/recipe-lock/v4","created_by":{"core_version":"0.3.53"},"requires":{"core":">=0.1,<1"},"recipe":{"name":"pytorch/image-classification","version":"1.0.0","digest":"` + digest0 + `"},"framework":{"kind":"pytorch","version":"2.8","runtime_id":"pytorch-2.8"},"bindings":{"entrypoint":{"kind":"experiment","value":"train.py"},"params":{"learning_rate":{"path":"lr","type":"float"},"mode":{"path":"mode","type":"enum"},"epochs":{"path":"epochs","type":"int"}}}}`,
	"v4 without binds": `{"apiVersion":"tuneplane/recipe-lock/v4","created_by":{"core_version":"0.4.0"},"recipe":{"name":"pytorch/ddp","version":"1.0.0","digest":"` + digest0 + `"},"framework":{"kind":"pytorch","version":"2.8","runtime_id":"pytorch-2.8"},"bindings":{"entrypoint":{"kind":"experiment","value":"train.py"},"params":{}}}`,
}

func TestEveryVariantIsReadAsForeign(t *testing.T) {
	for name, text := range variants {
		lock, err := ParseLock([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(lock.Recipe.Name, "pytorch/") || lock.Framework.Kind != "pytorch" || lock.Recipe.Digest != digest0 {
			t.Errorf("%s: %+v", name, lock)
		}
		if state, why := Embedded().Check(lock); state != Foreign || len(why) == 0 {
			t.Errorf("%s: %s %q", name, state, why)
		}
	}
}

func TestForeignBindingsAreParameters(t *testing.T) {
	l, e := newLab(t, "pytorch/ddp", "x", map[string]string{"config.yaml": "lr: 0.1\nepochs: 3\nmode: a\nother: 1\n", lab.LockName: variants["forge v4"]})
	s, c := compose(t, l, e, Options{Set: []string{"learning_rate=1e-5", "epochs=4", "other=2"}})
	if c.State != Foreign || !s.Recipe.Foreign || s.Recipe.Name != "pytorch/image-classification" || len(c.Warnings) != 1 {
		t.Errorf("%+v %+v", s.Recipe, c)
	}
	if !strings.Contains(s.Roles[0].Body, `{"epochs": 4, "lr": 1e-5, "other": 2}`) {
		t.Error(s.Roles[0].Body)
	}
	if _, _, err := Compose(l, e, Options{Profiles: []string{"h200"}, Set: []string{"lr=1", "learning_rate=2"}}); err == nil || !strings.Contains(err.Error(), "sets the same value as lr") {
		t.Errorf("one value set twice: %v", err)
	}
	if _, _, err := Compose(l, e, Options{Profiles: []string{"h200"}, Set: []string{"learning_rate=fast"}}); err == nil || !strings.Contains(err.Error(), `-s learning_rate: "fast" is no number`) {
		t.Errorf("type of a binding: %v", err)
	}
}

func TestEntryPointOfAForeignLockStaysInside(t *testing.T) {
	for _, entry := range []string{"../x.py", "/etc/passwd", "-c", "a/../../x", "x\ny"} {
		text := strings.Replace(variants["forge v4"], `"value":"train.py"`, `"value":`+jsonText(entry), 1)
		l, e := newLab(t, "pytorch/ddp", "x", map[string]string{lab.LockName: text})
		if _, _, err := Compose(l, e, Options{Profiles: []string{"h200"}}); err == nil || !strings.Contains(err.Error(), "no path within") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestStaleIsRefusedWithReasons(t *testing.T) {
	l, e := newLab(t, "custom/custom", "x", nil)
	lock, err := ReadLock(e)
	if err != nil {
		t.Fatal(err)
	}
	lock.Recipe.Digest, lock.Recipe.Version = digest0, "0.9.0"
	if err := WriteLock(e, lock, "old"); err != nil {
		t.Fatal(err)
	}
	_, _, err = Compose(l, e, Options{}) // before anything else, such as the missing profile
	if err == nil || !strings.Contains(err.Error(), "recipe.version: locked 0.9.0, catalogue 1.0.0") || !strings.Contains(err.Error(), "recipe.digest: locked sha256:000") {
		t.Fatalf("got %v", err)
	}
	u, err := Embedded().PlanUpgrade(l, e, UpgradeOptions{Version: "new"})
	if err != nil || u.State != Stale || !u.Needed() || len(u.Changes) < 4 {
		t.Fatalf("%+v, %v", u, err)
	}
	if err := Apply([]*Upgrade{u}); err != nil {
		t.Fatal(err)
	}
	compose(t, l, e, Options{})
	fresh, err := ReadLock(e)
	if err != nil {
		t.Fatal(err)
	}
	gone := *fresh
	gone.Framework.Version = "0.1"
	if state, why := Embedded().Check(&gone); state != Removed || !strings.Contains(why[0], "custom 0.1 is no longer supported") {
		t.Errorf("%s %q", state, why)
	}
}

func TestMalformedLocks(t *testing.T) {
	for text, want := range map[string]string{
		"{\n \"a\": }":                        "line 2, column 8",
		"[]":                                  "found a JSON array",
		`{"apiVersion":"lab/recipe-lock/v9"}`: "apiVersion",
		`{"apiVersion":"lab/recipe-lock/v2"}`: "recipe.name is missing",
		`{"apiVersion":"lab/recipe-lock/v2","recipe":{"name":7}}`:                    "recipe.name: found a JSON number",
		`{"apiVersion":"lab/recipe-lock/v2","recipe":{"name":"../x"}}`:               "is no <framework>/<method>",
		strings.Replace(variants["forge v4"], `"type":"int"`, `"type":"complex"`, 1): `bindings.params.epochs.type "complex" is not known`,
	} {
		l, e := newLab(t, "custom/custom", "x", map[string]string{lab.LockName: text})
		_, _, err := Compose(l, e, Options{})
		if err == nil || !strings.Contains(err.Error(), "experiments/x/recipe.lock.json is malformed") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	l, e := newLab(t, "custom/custom", "x", map[string]string{lab.LockName: strings.ReplaceAll(variants["forge v4"], "pytorch/image", "nowhere/image")})
	if _, _, err := Compose(l, e, Options{}); err == nil || !strings.Contains(err.Error(), "no recipe here can launch nowhere/image-classification") {
		t.Errorf("got %v", err)
	}
}

func TestWrittenLockIsCanonical(t *testing.T) {
	_, e := newLab(t, "pytorch/ddp", "x", nil)
	data, err := os.ReadFile(e.Path(lab.LockName))
	if err != nil {
		t.Fatal(err)
	}
	var any map[string]any
	if err := json.Unmarshal(data, &any); err != nil {
		t.Fatal(err)
	}
	again, _ := json.MarshalIndent(any, "", "  ") // maps are written sorted
	want := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<").Replace(string(again)) + "\n"
	if string(data) != want || any["apiVersion"] != LockVersion {
		t.Errorf("got  %s\nwant %s", data, want)
	}
	lock := &Lock{Params: map[string]Binding{"實驗": {Path: "a.b", Type: Int}}}
	if !strings.Contains(string(lock.Encode("v")), "\"實驗\"") {
		t.Error("other alphabets are escaped")
	}
}

func TestForkKeepsTheRecipe(t *testing.T) {
	l, e := newLab(t, "pytorch/ddp", "x", nil)
	fork, err := NewExperiment(l, Embedded(), "y", New{From: e, Version: "v"})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := ReadLock(fork)
	if err != nil || lock.Recipe.Name != "pytorch/ddp" {
		t.Errorf("%+v, %v", lock, err)
	}
	compose(t, l, fork, Options{})
	if _, err := NewExperiment(l, Embedded(), "z", New{Recipe: "pytorch/dpd", Version: "v"}); err == nil || !strings.Contains(err.Error(), `no recipe "pytorch/dpd"`) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseLock(f *testing.F) {
	for _, text := range variants {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := ParseLock(data)
		if err != nil {
			return
		}
		Embedded().Check(lock)
		again, err := ParseLock(lock.Encode("v"))
		if err != nil || again.Recipe != lock.Recipe {
			t.Fatalf("%+v was written and read as %+v, %v", lock, again, err)
		}
	})
}
