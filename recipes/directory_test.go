package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

const own = `name = "mine/train"
version = "1"
title = "Ours"
summary = "What we do."
launcher = "plain"
config = "none"
roles = ["train"]
driver = "train"
[framework]
kind = "mine"
versions = ["1"]
default = "1"
[entrypoint]
kind = "experiment"
value = "train.sh"
`

// ours is a directory with one good recipe.
func ours(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recipes")
	put(t, dir+"/mine/train/recipe.toml", own)
	put(t, dir+"/mine/train/template/train.sh", "true\n")
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryOfRecipes(t *testing.T) {
	dir := ours(t)
	put(t, dir+"/README.md", "what is not a recipe is left alone")
	put(t, dir+"/notes/old/thing.txt", "so is this")
	c, err := Embedded().With(dir, "lab, recipes/")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Get("mine/train")
	if err != nil {
		t.Fatal(err)
	}
	if r.Origin != "lab, recipes/" || !strings.HasPrefix(r.Digest, "sha256:") {
		t.Errorf("%s from %q", r.Digest, r.Origin)
	}
	for text, want := range map[string]string{c.List(): "mine/train         1       Ours (lab, recipes/)\n", r.Describe(): "from        lab, recipes/\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(c.Names()) != len(Embedded().Names())+1 || Embedded().has("mine/train") != nil {
		t.Errorf("%q", c.Names())
	}
	lock, err := NewLock(r, "")
	if err != nil {
		t.Fatal(err)
	}
	lock, err = ParseLock(lock.Encode("test"))
	if err != nil {
		t.Fatal(err)
	}
	if state, why := c.Check(lock); state != Current {
		t.Errorf("%s: %q", state, why)
	}
	put(t, dir+"/mine/train/recipe.toml", strings.Replace(own, "What we do", "What we did", 1))
	if c, err = Embedded().With(dir, "lab, recipes/"); err != nil {
		t.Fatal(err)
	}
	if state, _ := c.Check(lock); state != Stale {
		t.Errorf("a changed recipe leaves the lock %s", state)
	}
	if same, err := Embedded().With(dir+"/nowhere", "x"); err != nil || same != Embedded() {
		t.Errorf("a missing directory: %v", err)
	}
}

// The directory of a lab comes from whoever wrote the lab.
func TestHostileDirectoryOfRecipes(t *testing.T) {
	manifest := "/mine/train/recipe.toml"
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"clash": {func(dir string) error { return os.Rename(dir+"/mine", dir+"/verl") }, `name "mine/train" does not match its directory "verl/train"`},
		"taken": {func(dir string) error {
			put(t, dir+"/verl/grpo/recipe.toml", strings.Replace(own, "mine/train", "verl/grpo", 1))
			return nil
		}, "the name verl/grpo is taken (built in)"},
		"link": {func(dir string) error { return os.Symlink("/etc/passwd", dir+"/mine/train/template/passwd") }, "mine/train/template/passwd is no regular file"},
		"manifest is a link": {func(dir string) error {
			os.Remove(dir + manifest)
			return os.Symlink("/etc/passwd", dir+manifest)
		}, "mine/train/recipe.toml is no regular file"},
		"framework is a link": {func(dir string) error { return os.Symlink("/etc", dir+"/etc") }, "etc is a symbolic link"},
		"fifo": {func(dir string) error {
			os.Remove(dir + manifest)
			return syscall.Mkfifo(dir+manifest, 0o600)
		}, "mine/train/recipe.toml is no regular file"},
		"terabyte":    {func(dir string) error { return os.Truncate(dir+manifest, 1<<40) }, "a file of a recipe has 1048576 at most"},
		"no UTF-8":    {func(dir string) error { return os.WriteFile(dir+manifest, []byte("name = \"\xff\"\n"), 0o644) }, "recipe.toml"},
		"unknown key": {func(dir string) error { put(t, dir+manifest, "hook = \"rm\"\n"+own); return nil }, "mine/train/recipe.toml:1:1"},
		"escape": {func(dir string) error {
			put(t, dir+manifest, strings.Replace(own, "What we do.", `\u001b]0;x\u0007`, 1))
			return nil
		}, "has a control character"},
		"escape in a name": {func(dir string) error {
			put(t, dir+manifest, own+"[env]\n\"A\\u001b\" = \"1\"\n")
			return nil
		}, "has a control character"},
		"directory": {func(dir string) error { os.RemoveAll(dir); return os.Symlink("/etc", dir) }, "recipes are not read through links"},
		"kind": {func(dir string) error {
			put(t, dir+manifest, strings.Replace(own, `kind = "mine"`, `kind = "$(id)"`, 1))
			return nil
		}, "framework.kind"},
		"source": {func(dir string) error {
			put(t, dir+manifest, own+"[source]\ndir = \"/opt/$(id)\"\nenv = \"MINE\"\n")
			return nil
		}, "dir is an absolute path of letters"},
		"version": {func(dir string) error {
			put(t, dir+manifest, strings.ReplaceAll(own, `"1"`, "\"1\\\"; id\""))
			return nil
		}, "is no version"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := ours(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Embedded().With(dir, "lab"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, wanted %q", err, c.want)
			}
		})
	}
}

// What a recipe says reaches the job as words: no text of it is read by a shell.
func TestHostileRecipeIsWords(t *testing.T) {
	for _, evil := range []string{"$(touch PWNED)", "`touch PWNED`", "'$(touch PWNED)'", "\"$(touch PWNED)\"", ") ; touch PWNED ; ("} {
		quoted := strconv.Quote(evil)
		for launcher, extra := range map[string]string{"plain": "", "torchrun": "", "ray": "[pins]\npool_ = \"train\"\n"} {
			dir := ours(t)
			text := strings.Replace(own, `"plain"`, `"`+launcher+`"`, 1)
			text = strings.Replace(text, `config = "none"`, `config = "yaml-flat"`, 1)
			if extra != "" {
				text = strings.Replace(text, "roles =", "pinning = \"placement-groups\"\nroles =", 1)
			}
			text = strings.Replace(text, "[framework]", "command = [\"{entry}\", "+quoted+", \"{overrides}\", \"{p}\"]\n[framework]", 1)
			text = strings.Replace(text, `kind = "experiment"
value = "train.sh"`, "kind = \"program\"\nvalue = "+quoted, 1)
			text += extra + "[params.p]\ntype = \"str\"\ndefault = " + quoted + "\n[params.q]\ntype = \"str\"\npath = \"q\"\ndefault = " + quoted + "\n[[owned]]\npath = \"a.b\"\nvalue = " + quoted + "\n"
			put(t, dir+"/mine/train/recipe.toml", text)
			catalog, err := Embedded().With(dir, "lab")
			if err != nil {
				t.Fatal(launcher, err)
			}
			s := composed(t, catalog, "mine/train", "a: 1\n")
			for _, role := range s.Roles {
				cmd := exec.Command("bash", "-c", "exec() { :; }\n"+role.Body)
				cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nowhere", "TP_RUN_DIR=.", "TP_OUT_DIR=.", "TP_CODE_DIR=.", "TP_EXP_DIR=.", "TP_NODE_RANK=0", "TP_NNODES=1"}
				touch := cmd.Dir + "/bin/touch"
				put(t, touch, "#!/bin/bash\n: >"+cmd.Dir+"/PWNED\n")
				if err := os.Chmod(touch, 0o755); err != nil {
					t.Fatal(err)
				}
				cmd.Env[0] = "PATH=" + cmd.Dir + "/bin"
				out, _ := cmd.CombinedOutput() // it fails: no program of it is here
				if _, err := os.Stat(cmd.Dir + "/PWNED"); err == nil {
					t.Errorf("%s: a shell ran what the recipe says\n%s\n%s", launcher, role.Body, out)
				}
				if role.Driver && !strings.Contains(role.Body, "touch PWNED") {
					t.Errorf("%s: the words are not in\n%s", launcher, role.Body)
				}
			}
		}
	}
}

// composed is the spec of an experiment with this recipe and configuration.
func composed(t *testing.T, catalog *Catalog, recipe, config string) *spec.Spec {
	t.Helper()
	r, err := catalog.Get(recipe)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := NewLock(r, "")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	put(t, root+"/tp.toml", "name = \"x\"\n")
	put(t, root+"/experiments/e/recipe.lock.json", string(lock.Encode("test")))
	put(t, root+"/experiments/e/config.yaml", config)
	put(t, root+"/experiments/e/train.sh", "true\n")
	l, err := lab.Find(root, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Experiment("e")
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := Compose(l, e, Options{Catalog: catalog, Profiles: []string{"h200:1"}, Set: []string{"a=7531"}})
	if err != nil {
		t.Fatalf("%s: %v", r.Config, err)
	}
	return s
}

// A recipe without a table of keys works with every kind of configuration that
// does not need one.
func TestRecipeWithoutSchema(t *testing.T) {
	for _, kind := range []ConfigKind{NeMoYAML, TRLYAML, YAMLArgs, Flags} {
		dir := ours(t)
		text := strings.Replace(own, `config = "none"`, `config = "`+string(kind)+`"`, 1)
		put(t, dir+"/mine/train/recipe.toml", strings.Replace(text, "[framework]", "command = [\"bash\", \"{entry}\", \"{overrides}\"]\n[framework]", 1))
		catalog, err := Embedded().With(dir, "lab")
		if err != nil {
			t.Fatal(kind, err)
		}
		if s := composed(t, catalog, "mine/train", "a: 1\n"); !strings.Contains(s.Roles[0].Body, "7531") {
			t.Errorf("%s: what is set is not in\n%s", kind, s.Roles[0].Body)
		}
		if text := catalog.List() + catalog.has("mine/train").Describe(); !strings.Contains(text, "Ours") {
			t.Errorf("%s: %s", kind, text)
		}
	}
}
