package lab

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files under a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, dir string) *Lab {
	t.Helper()
	l, err := Find(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestFindWalksUp(t *testing.T) {
	for marker, text := range map[string]string{
		"tp.toml":        "name = 'p'\ndescription = 'd'\n[defaults]\ntime = '4h'\n",
		"tuneplane.yaml": "apiVersion: tuneplane/project/v1\nname: p\ncreated_by: someone 1\n",
		"starforge.yaml": "apiVersion: forge/project/v1\nname: p\n",
	} {
		root := tree(t, map[string]string{marker: text, "experiments/a/config.yaml": ""})
		l := find(t, filepath.Join(root, "experiments", "a"))
		if l.Root != root || l.Marker != marker || l.Name != "p" {
			t.Errorf("%s: %+v", marker, l)
		}
	}
	if _, err := Find("/proc", Options{}); err == nil || !strings.Contains(err.Error(), "no lab here") {
		t.Errorf("outside a lab: %v", err)
	}
}

func TestMarkerOfAStrangerIsRefused(t *testing.T) {
	root := tree(t, map[string]string{"tp.toml": "name = 'p'\n"})
	if os.Getuid() == 0 { // root's own files are trusted by everybody
		if err := os.Lchown(filepath.Join(root, "tp.toml"), 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	other := os.Getuid() + 4242
	_, err := Find(root, Options{UID: &other})
	if err == nil || !strings.Contains(err.Error(), "neither to you") {
		t.Fatalf("got %v", err)
	}
	if _, err := Find(root, Options{UID: &other, Trust: []string{root}}); err != nil {
		t.Errorf("trusted by path: %v", err)
	}
	if _, err := Find(root, Options{UID: &other, Trust: []string{filepath.Dir(root)}}); err == nil {
		t.Error("trusting the parent trusted the lab")
	}
}

func TestErrorsInFiles(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"tp.toml", "nmae = 'x'\n", `tp.toml:1:1: unknown key "nmae"; did you mean "name"?`},
		{"tp.toml", "[defaults]\ntiem = '4h'\n", `tp.toml:2:1: unknown key "defaults.tiem"; did you mean "time"?`},
		{"tp.toml", "token_command = 'id'\n", `tp.toml:1:1: token_command is refused in a lab: it names a command or a tool that runs on this machine`},
		{"tp.toml", "[defaults]\nendpoint = 'http://x'\n", `tp.toml:2:1: endpoint is refused in a lab: it names an endpoint that receives a token or a signed request`},
		{"tp.toml", "name = 'a/b'\n", `tp.toml:1:1: name: a name has no slash`},
		{"experiments/a/job.toml", "requeue = true\nslurmrestd_url = 'x'\n", `job.toml:2:1: slurmrestd_url is refused in a lab: it names an endpoint that receives a token or a signed request`},
		{"experiments/a/job.toml", "[tools]\nsbatch = '/tmp/x'\n", `job.toml:1:2: tools is refused in a lab: it names a command or a tool that runs on this machine`},
		{"experiments/a/job.toml", "ca_file = 'x'\n", `job.toml:1:1: ca_file is refused in a lab: it says which certificate is trusted`},
		{"experiments/a/job.toml", "credentials = 'x'\n", `job.toml:1:1: credentials is refused in a lab: it is a secret or says where one is read`},
		{"experiments/a/job.toml", "time = ['4h']\n", `job.toml:1:1: time: expected a text, or a table of texts by role`},
		{"experiments/a/job.toml", "env.A = [1]\n", `job.toml:1:5: env.A: expected a text or a number`},
		{"experiments/a/job.toml", "requeue = 'yes'\n", `job.toml:1:11: requeue: expected true or false, found a string`},
	} {
		files := map[string]string{"tp.toml": "name = 'x'\n", "experiments/a/config.yaml": ""}
		files[c.file] = c.text
		l, err := Find(tree(t, files), Options{})
		if err == nil {
			_, err = l.Experiment("a")
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s %q:\n got  %v\n want %s", c.file, c.text, err, c.want)
		}
	}
}

func TestJobFileKeepsTextAndPlace(t *testing.T) {
	job, err := ParseJob("job.toml", []byte(`time = {"" = "4h", train = 90}
mem = 0
requeue = false
[env]
OMP_NUM_THREADS = 8
url = "free table"
[params]
lr = 1e-5
opt.beta = 0.90
layers = [1, 2]
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := job.PerRole["time"]; got[""] != "4h" || got["train"] != "90" || job.PerRole["mem"][""] != "0" {
		t.Errorf("per role: %v", job.PerRole)
	}
	if want := []Var{{"OMP_NUM_THREADS", "8", "job.toml:5"}, {"url", "free table", "job.toml:6"}}; !slices.Equal(job.Vars, want) {
		t.Errorf("env: %v", job.Vars)
	}
	if want := []Var{{"lr", "1e-5", "job.toml:8"}, {"opt.beta", "0.90", "job.toml:9"}, {"layers", "[1,2]", "job.toml:10"}}; !slices.Equal(job.Values, want) {
		t.Errorf("params: %v", job.Values)
	}
	if got := job.Origin("requeue"); got != "job.toml:3" {
		t.Errorf("origin %s", got)
	}
}

func TestExperiments(t *testing.T) {
	odd := "a b'$x#實驗🙂\\"
	l := find(t, tree(t, map[string]string{"tp.toml": "", "experiments/b/x": "", "experiments/" + odd + "/x": "", "smoke/s/x": "", "experiments/.hidden/x": "", "experiments/file": ""}))
	all, err := l.Experiments()
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	if err != nil || !slices.Equal(names, []string{odd, "b", "s"}) {
		t.Errorf("%q, %v", names, err)
	}
	for _, name := range []string{"b", "experiments/b", "./experiments/b/", "smoke/s", odd} {
		if _, err := l.Experiment(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "experiments/../b", "/etc", "a\nb", "file", "smoke/b", strings.Repeat("x", 129), "experiments/"} {
		if _, err := l.Experiment(name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
}

func TestFIFOInPlaceOfAFile(t *testing.T) {
	root := tree(t, map[string]string{"tp.toml": "", "experiments/a/x": ""})
	if out, err := exec.Command("mkfifo", filepath.Join(root, "experiments/a/job.toml")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if _, err := find(t, root).Experiment("a"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}

func TestInitAndNew(t *testing.T) {
	ctx := context.Background()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	dir := filepath.Join(t.TempDir(), `it's a "lab"`)
	l, err := Init(ctx, dir, InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != `it's a "lab"` {
		t.Errorf("name %q", l.Name)
	}
	p, err := Git(ctx, dir, []string{"experiments", "common", "configs"})
	if err != nil || len(p.Commit) != 40 || p.Dirty {
		t.Errorf("after init: %+v, %v", p, err)
	}
	if _, err := Init(ctx, dir, InitOptions{}); err == nil {
		t.Error("a second init went through")
	}
	template := os.DirFS(tree(t, map[string]string{"train.sh": "echo\n", "sub/x.py": "1\n"}))
	a, err := l.New("a", NewOptions{Templates: []fs.FS{template}, Files: map[string][]byte{LockName: []byte("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.Path("outputs/big"), "x")
	if _, err := l.New("a", NewOptions{Templates: []fs.FS{template}}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a taken name: %v", err)
	}
	b, err := l.New("b", NewOptions{From: a})
	if err != nil {
		t.Fatal(err)
	}
	if !exists(b.Path("sub/x.py")) || !exists(b.Path(LockName)) || exists(b.Path("outputs")) {
		t.Error("the fork has not the files it should have")
	}
	left, _ := filepath.Glob(filepath.Join(dir, "experiments", ".tp-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func FuzzParseJob(f *testing.F) {
	f.Add([]byte("time = '4h'\n[params]\na.b = 1\n"))
	f.Add([]byte("[[params.x]]\ny=1\n[env]\nA=1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := ParseJob("job.toml", data)
		if err == nil {
			job.Origin("time")
		}
	})
}
