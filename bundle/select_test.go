package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// P70: what is shipped is what the working tree has now.
func TestSelectShipsTheWorkingTree(t *testing.T) {
	root := lab{
		".gitignore": "ignored/\n*.log\n!keep.log\n", "tracked.py": "old", "gone.py": "x", "forced.log": "tracked but ignored",
		"sub/.gitignore": "*.txt\n!yes.txt\n", "sub/no.txt": "", "sub/yes.txt": "y", "ignored/x.py": "", "keep.log": "k", "run.sh": "#!/bin/sh\n",
	}.repo(t)
	run(t, root, "git", "add", "-f", "forced.log")
	commit(t, root)
	lab{"tracked.py": "new", "untracked.py": "u", "a.log": ""}.write(t, root)
	os.Remove(filepath.Join(root, "gone.py"))
	os.Mkdir(filepath.Join(root, "empty"), 0o755)

	sel := selectAll(t, root)
	if got, want := paths(sel.Files), ".gitignore forced.log keep.log run.sh sub/.gitignore sub/yes.txt tracked.py untracked.py"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !sel.Git || !slices.Equal(sel.Untracked, []string{"untracked.py"}) || !slices.Equal(sel.Deleted, []string{"gone.py"}) {
		t.Errorf("%+v", sel)
	}
	if f := sel.Files[3]; f.Mode != modeExec || sel.Files[0].Mode != modeFile {
		t.Errorf("%+v", f)
	}
	if f := sel.Files[6]; f.Size != 3 {
		t.Errorf("%+v", f)
	}
	ignored, err := Ignored(context.Background(), Source{Root: root})
	if err != nil || !slices.Equal(ignored, []string{"a.log", "ignored/", "sub/no.txt"}) {
		t.Errorf("%q %v", ignored, err)
	}
}

func TestSelectExcludes(t *testing.T) {
	root := lab{
		"a.py": "", "outputs/x/y": "", "outputs/z": "", "sub/outputs/q": "", "wandb/log": "", ".venv/bin/python": "", "envs/own/pyvenv.cfg": "", "envs/own/lib/cacert.pem": "",
		".env/bin/activate": "", "datasets/gsm/raw/1": "", "datasets/gsm/data/1": "", "datasets/gsm/card.md": "", "deep/datasets/gsm/raw/code.py": "",
		"x.pyc": "", "__pycache__/a.pyc": "", "doc/paper.pdf": "", "own/skip/f": "", "own/keep.py": "", "b.bin": "", "own/b.bin": "",
	}.repo(t)
	commit(t, root) // tracked files are excluded as well
	sel, err := Select(context.Background(), Source{Root: root, Exclude: []string{"own/skip", "/b.bin"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths(sel.Files), "a.py datasets/gsm/card.md deep/datasets/gsm/raw/code.py own/b.bin own/keep.py"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var skipped []string
	for _, s := range sel.Skipped {
		skipped = append(skipped, fmt.Sprintf("%s=%d", s.Path, s.Files))
	}
	want := ".env/=1 .venv/=1 __pycache__/=1 b.bin=1 datasets/gsm/data/=1 datasets/gsm/raw/=1 doc/paper.pdf=1 envs/own/=2 outputs/=2 own/skip/=1 sub/outputs/=1 wandb/=1 x.pyc=1"
	if got := strings.Join(skipped, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{"!not", "", "a//b", "[", "../x"} {
		if _, err := Select(context.Background(), Source{Root: root, Exclude: []string{bad}}); err == nil {
			t.Errorf("pattern %q is accepted", bad)
		}
	}
}

func TestSelectOnlyThePackedDirectories(t *testing.T) {
	repo := lab{"other/x": "", "lab/common/c.py": "", "lab/experiments/a/a.py": "", "lab/experiments/ab/b.py": "", "lab/tp.toml": ""}.repo(t)
	sel := selectAll(t, filepath.Join(repo, "lab"), "experiments/a/", "common", "tp.toml", "experiments/a")
	if got, want := paths(sel.Files), "common/c.py experiments/a/a.py tp.toml"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"../other", "/etc", "missing"} {
		_, err := Select(context.Background(), Source{Root: repo, Dirs: []string{bad}})
		wantFault(t, err, bad)
	}
}

func TestSelectOutsideOfGit(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	root := lab{"a.py": "", "d/b.py": "", "wandb/x": "", "not/packed": ""}.write(t, t.TempDir())
	sel := selectAll(t, root, "a.py", "d", "wandb")
	if got := paths(sel.Files); got != "a.py d/b.py" || sel.Git || len(sel.Skipped) != 1 {
		t.Errorf("%s %+v", got, sel)
	}
	run(t, filepath.Join(root, "d"), "git", "init", "-q")
	for range 10 { // repositories are visited in any order
		if sel := selectAll(t, root, "a.py", "d"); sel.Git || len(sel.Nested) > 0 || paths(sel.Files) != "a.py d/b.py" {
			t.Errorf("%+v", sel)
		}
	}
}

// P89: names that other packers ship with old content, or break on.
func TestSelectOddNames(t *testing.T) {
	names := []string{"#n.py", ";s.py", `a"b.py`, "a b.py", "a'b.py", "-rf", "$HOME", "ü.py", "\xff\xfe.py", "back\\slash", "Case.py", "case.py", ":(top)x", "*.py", strings.Repeat("n", 250)}
	l := lab{}
	for _, n := range names {
		l[n] = "old"
	}
	root := l.repo(t)
	commit(t, root)
	for _, n := range names {
		l[n] = "new " + n
	}
	l.write(t, root)
	sel := selectAll(t, root)
	if len(sel.Files) != len(names) {
		t.Errorf("%d of %d: %s", len(sel.Files), len(names), paths(sel.Files))
	}
	lab{"new\nline.py": "", "tab\there": ""}.write(t, root)
	_, err := Select(context.Background(), Source{Root: root})
	wantFault(t, err, `"new\nline.py"`, `"tab\there"`, "control characters")
}

// P72, by name.
func TestSelectRefusesCredentialNames(t *testing.T) {
	names := []string{".env", "a/.env.local", ".netrc", "id_ed25519", "keys/ID_RSA.pub", "credentials.json", "my_credentials.json", "x.PEM", "secrets.yaml", "hf_token", "token.txt", ".envrc", "b.secret"}
	l := lab{"ok.py": "", "tokenizer.json": "", "token_utils.py": "", "env.py": ""}
	for _, n := range names {
		l[n] = "value-of-secret"
	}
	root := l.repo(t)
	_, err := Select(context.Background(), Source{Root: root})
	wantFault(t, err, append(names, "tp secret set", ".gitignore")...)
	if strings.Contains(err.Error(), "value-of-secret") || strings.Contains(err.Error(), "token_utils") {
		t.Error(err)
	}
	commit(t, root) // tracked ones too
	_, err = Select(context.Background(), Source{Root: root})
	wantFault(t, err, names...)

	many := lab{}
	for i := range 30 {
		many[fmt.Sprintf("%02d.pem", i)] = ""
	}
	_, err = Select(context.Background(), Source{Root: many.repo(t)})
	wantFault(t, err, "19.pem", "and 10 more")
	if strings.Contains(err.Error(), "20.pem") {
		t.Error("the list is not bounded")
	}
}

// P71, P91: links.
func TestSelectLinks(t *testing.T) {
	root := lab{"d/f.py": "x", "in": "-> d/f.py", "d/up": "-> ..", "d/e/two": "-> ../../in", "dir": "-> d/../d", "through": "-> dir/f.py", "self": "-> ."}.repo(t)
	sel := selectAll(t, root)
	if len(sel.Files) != 7 {
		t.Errorf("%s", paths(sel.Files))
	}
	for name, c := range map[string]struct {
		lab  lab
		says []string
	}{
		"absolute":            {lab{"l": "-> /etc/passwd"}, []string{"l -> /etc/passwd", "lead out"}},
		"outside":             {lab{"d/l": "-> ../../secret"}, []string{"d/l -> ../../secret", "lead out"}},
		"outside by a detour": {lab{"d/e/x": "-> ../..", "d/e/l": "-> x/../.."}, []string{"d/e/l -> x/../..", "lead out"}},
		"dangling":            {lab{"l": "-> nothing"}, []string{"l -> nothing", "does not exist"}},
		"excluded":            {lab{"l": "-> outputs/x", "outputs/x": ""}, []string{"l -> outputs/x", "is not packed"}},
		"loop":                {lab{"a": "-> b", "b": "-> a", "f": ""}, []string{"a -> b", "ends nowhere"}},
		"through a file":      {lab{"f": "", "l": "-> f/x"}, []string{"l -> f/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Select(context.Background(), Source{Root: c.lab.repo(t)})
			wantFault(t, err, c.says...)
		})
	}
	// Out of the packed directories, but inside the lab.
	root = lab{"packed/l": "-> ../data/x", "data/x": ""}.repo(t)
	_, err := Select(context.Background(), Source{Root: root, Dirs: []string{"packed"}})
	wantFault(t, err, "packed/l -> ../data/x", "is not packed")
}

// A tracked directory that a link has replaced: nothing is read through it.
func TestSelectTrackedFilesBehindALink(t *testing.T) {
	root := lab{"d/f": "tracked", "real/f": "other"}.repo(t)
	commit(t, root)
	os.RemoveAll(filepath.Join(root, "d"))
	lab{"d": "-> real"}.write(t, root)
	sel := selectAll(t, root)
	if paths(sel.Files) != "d real/f" || !slices.Equal(sel.Deleted, []string{"d/f"}) {
		t.Errorf("%s %q", paths(sel.Files), sel.Deleted)
	}
	// and a file, or a directory for a file
	root = lab{"d/f": "", "g": "", "x": ""}.repo(t)
	commit(t, root)
	os.RemoveAll(filepath.Join(root, "d"))
	os.Remove(filepath.Join(root, "g"))
	lab{"d": "file", "g/h": "inside"}.write(t, root)
	sel = selectAll(t, root)
	if paths(sel.Files) != "d g/h x" {
		t.Errorf("%s %q", paths(sel.Files), sel.Deleted)
	}
}

func TestSelectRefusesSpecialFiles(t *testing.T) {
	root := lab{"pipe": "", "a": ""}.repo(t)
	commit(t, root)
	os.Remove(filepath.Join(root, "pipe"))
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	_, err := Select(context.Background(), Source{Root: root})
	wantFault(t, err, "pipe (named pipe)")

	os.RemoveAll(filepath.Join(root, ".git"))
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	_, err = Select(context.Background(), Source{Root: root})
	wantFault(t, err, "pipe (named pipe)")
}

func TestSelectNestedRepositories(t *testing.T) {
	root := lab{"a.py": "", "sub/.gitignore": "*.log\n", "sub/b.py": "", "sub/x.log": "", "sub/deep/c.py": "", "fresh/q.py": ""}.repo(t)
	for _, dir := range []string{"sub", "sub/deep", "fresh"} {
		run(t, filepath.Join(root, dir), "git", "init", "-q")
	}
	commit(t, filepath.Join(root, "sub", "deep"))
	sel := selectAll(t, root)
	if got, want := paths(sel.Files), "a.py fresh/q.py sub/.gitignore sub/b.py sub/deep/c.py"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !slices.Equal(sel.Nested, []string{"fresh", "sub", "sub/deep"}) {
		t.Errorf("%q", sel.Nested)
	}
	// a packed directory inside a nested repository
	if got := paths(selectAll(t, root, "sub/deep", "a.py").Files); got != "a.py sub/deep/c.py" {
		t.Error(got)
	}
}

func TestSelectSubmodules(t *testing.T) {
	other := lab{"m.py": "committed"}.repo(t)
	commit(t, other)
	root := lab{"a.py": ""}.repo(t)
	run(t, root, "git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "mod")
	commit(t, root)
	lab{"mod/m.py": "dirty", "mod/new.py": ""}.write(t, root)
	sel := selectAll(t, root)
	if got := paths(sel.Files); got != ".gitmodules a.py mod/m.py mod/new.py" || !slices.Equal(sel.Nested, []string{"mod"}) || sel.Files[2].Size != 5 {
		t.Errorf("%s %q", got, sel.Nested)
	}
	run(t, root, "git", "submodule", "--quiet", "deinit", "--force", "mod")
	_, err := Select(context.Background(), Source{Root: root})
	wantFault(t, err, "submodule mod is not initialised", "git submodule update --init -- mod")
}

// A lab is hostile: nothing its git configuration names is run.
func TestSelectRunsNothingOfTheLab(t *testing.T) {
	root := lab{"a.py": "x"}.repo(t)
	commit(t, root)
	ran := filepath.Join(t.TempDir(), "ran")
	trap := filepath.Join(t.TempDir(), "trap")
	os.WriteFile(trap, []byte("#!/bin/sh\necho $0 >>"+ran+"\n"), 0o755)
	hooks := t.TempDir()
	for _, h := range []string{"post-index-change", "fsmonitor-watchman"} {
		os.Symlink(trap, filepath.Join(hooks, h))
	}
	for key, value := range map[string]string{"core.fsmonitor": trap, "core.hooksPath": hooks, "core.pager": trap, "filter.x.clean": trap, "filter.x.process": trap, "core.editor": trap, "alias.ls-files": "!" + trap} {
		run(t, root, "git", "config", key, value)
	}
	os.WriteFile(filepath.Join(root, ".gitattributes"), []byte("* filter=x\n"), 0o644)
	os.WriteFile(filepath.Join(root, "a.py"), []byte("y"), 0o644)
	digest(t, selectAll(t, root), "")
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("the lab ran %s", text)
	}
}

func TestSelectLimits(t *testing.T) {
	l := lab{}
	for i := range 15 {
		l[fmt.Sprintf("d/f%02d", i)] = strings.Repeat("x", i)
	}
	root := l.repo(t)
	_, err := Select(context.Background(), Source{Root: root, MaxBytes: 100})
	wantFault(t, err, "d/f14", "d/f05", "more than")
	if strings.Contains(err.Error(), "d/f04") {
		t.Error("more than ten are named")
	}
	_, err = Select(context.Background(), Source{Root: root, MaxFiles: 14})
	wantFault(t, err, "15 files", "in d")
	if _, err := Select(context.Background(), Source{Root: root, MaxFiles: 15, MaxBytes: 105}); err != nil {
		t.Error(err)
	}
	_, err = Select(context.Background(), Source{Root: lab{".gitignore": "*\n", "a": ""}.repo(t)})
	wantFault(t, err, "nothing to pack")
	_, err = Select(context.Background(), Source{Root: lab{marker: "", "a": ""}.repo(t)})
	wantFault(t, err, marker)
}

func TestSelectSparseCheckout(t *testing.T) {
	root := lab{"keep/a": "", "drop/b": ""}.repo(t)
	commit(t, root)
	run(t, root, "git", "update-index", "--skip-worktree", "drop/b")
	os.RemoveAll(filepath.Join(root, "drop"))
	sel := selectAll(t, root)
	if paths(sel.Files) != "keep/a" || len(sel.Deleted) > 0 || len(sel.Skipped) != 1 || !strings.Contains(sel.Skipped[0].Why, "sparse") {
		t.Errorf("%+v", sel)
	}
}
