package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/spec"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func repoWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := tree(t, files)
	git(t, root, "init", "-q", "-b", "main")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-qm", "x")
	return root
}

var packed = []string{"experiments/a", "common", "configs"}

func TestGitState(t *testing.T) {
	ctx := context.Background()
	root := repoWith(t, map[string]string{"tp.toml": "", "experiments/a/train.py": "1\n", "common/c d.py": "1\n", "docs/x": "1\n", "experiments/b/y": "1\n"})
	git(t, root, "remote", "add", "origin", "https://me:hunter2@host.example/o/r.git?token=1")
	clean, err := Git(ctx, root, packed)
	if err != nil || clean.Dirty || len(clean.Commit) != 40 || clean.Branch != "main" || clean.PatchHash != "" || clean.Remote != "https://host.example/o/r.git" {
		t.Fatalf("clean: %+v, %v", clean, err)
	}
	write(t, filepath.Join(root, "docs/x"), "2\n")
	write(t, filepath.Join(root, "experiments/b/new"), "2\n")
	if p, err := Git(ctx, root, packed); err != nil || p.Dirty || len(p.Untracked) > 0 {
		t.Errorf("what is not packed counted: %+v, %v", p, err)
	}
	write(t, filepath.Join(root, "common/c d.py"), "2\n")
	write(t, filepath.Join(root, "experiments/a/ne w\n.py"), "2\n")
	dirty, err := Git(ctx, root, packed)
	if err != nil || !dirty.Dirty || !slices.Equal(dirty.Changed, []string{"common/c d.py"}) || !slices.Equal(dirty.Untracked, []string{"experiments/a/ne w\n.py"}) || len(dirty.PatchHash) != 64 {
		t.Fatalf("dirty: %+v, %v", dirty, err)
	}
	write(t, filepath.Join(root, "common/c d.py"), "3\n")
	if again, _ := Git(ctx, root, packed); again.PatchHash == dirty.PatchHash {
		t.Error("another change has the same hash")
	}
}

func TestChangesInSubmodulesAreSeen(t *testing.T) {
	ctx := context.Background()
	sub := repoWith(t, map[string]string{"f": "1\n"})
	root := repoWith(t, map[string]string{"tp.toml": "", "experiments/a/train.py": "1\n"})
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "experiments/a/sub")
	git(t, root, "commit", "-qm", "sub")
	git(t, root, "init", "-q", "experiments/a/own")
	write(t, filepath.Join(root, "experiments/a/own/x"), "1\n")
	nested := []string{"experiments/a/own", "experiments/a/sub"}
	state := func() spec.Provenance {
		p, err := Git(ctx, root, packed[:1])
		if err == nil {
			err = Nested(ctx, root, nested, &p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := state(); p.Dirty || p.PatchHash != "" {
		t.Errorf("clean: %+v", p)
	}
	write(t, filepath.Join(root, "experiments/a/sub/f"), "2\n")
	one := state()
	if !one.Dirty || !slices.Equal(one.Changed, []string{"experiments/a/sub/f"}) || len(one.PatchHash) != 64 {
		t.Errorf("changed: %+v", one)
	}
	write(t, filepath.Join(root, "experiments/a/sub/f"), "3\n")
	if two := state(); two.PatchHash == one.PatchHash {
		t.Error("another change has the same hash")
	}
}

func TestGitOutsideAndEmpty(t *testing.T) {
	ctx := context.Background()
	if p, err := Git(ctx, t.TempDir(), packed); err != nil || p.Commit != "" {
		t.Errorf("outside git: %+v, %v", p, err)
	}
	root := tree(t, map[string]string{"experiments/a/x": ""})
	git(t, root, "init", "-q")
	if p, err := Git(ctx, root, packed); err != nil || p.Commit != "" || len(p.Untracked) != 1 {
		t.Errorf("no commit yet: %+v, %v", p, err)
	}
}

func TestGitListsAreBounded(t *testing.T) {
	root := repoWith(t, map[string]string{"tp.toml": ""})
	for i := range MaxListed + 50 {
		write(t, filepath.Join(root, "common", "f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26)), "")
	}
	p, err := Git(context.Background(), root, packed)
	if err != nil || len(p.Untracked) != MaxListed || len(p.Commit) != 40 {
		t.Errorf("%d untracked, %v", len(p.Untracked), err)
	}
}

// A downloaded lab may bring its own .git/config. Whatever it names, reading
// the state must not run it.
func TestGitRunsNothingOfTheRepository(t *testing.T) {
	root := repoWith(t, map[string]string{"tp.toml": "", "experiments/a/x.py": "1\n"})
	mark := filepath.Join(t.TempDir(), "ran")
	trap := "sh -c 'touch " + mark + "; cat'"
	git(t, root, "config", "core.fsmonitor", "touch "+mark+"; true")
	git(t, root, "config", "diff.external", trap)
	git(t, root, "config", "filter.evil.clean", trap)
	git(t, root, "config", "filter.evil.required", "true")
	git(t, root, "config", "filter.e=v.process", trap)
	git(t, root, "config", "diff.evil.textconv", trap)
	git(t, root, "config", "diff.evil.command", trap)
	git(t, root, "config", "core.pager", trap)
	write(t, filepath.Join(root, ".git/info/attributes"), "*.py filter=evil diff=evil\n*.md filter=e=v\n")
	hooks := filepath.Join(root, ".git/hooks")
	for _, hook := range []string{"post-index-change", "pre-commit", "reference-transaction"} {
		write(t, filepath.Join(hooks, hook), "#!/bin/sh\ntouch "+mark+"\n")
		if err := os.Chmod(filepath.Join(hooks, hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "experiments/a/x.py"), "2\n")
	write(t, filepath.Join(root, "experiments/a/y.md"), "2\n")
	p, err := Git(context.Background(), root, packed)
	if err != nil || !p.Dirty || p.PatchHash == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if exists(mark) {
		t.Error("something of the repository was run")
	}
	git(t, root, "status")
	if !exists(mark) {
		t.Error("plain git was not trapped either, so this test shows nothing")
	}
}

func TestGitIgnoresTheCallersRepository(t *testing.T) {
	root := repoWith(t, map[string]string{"tp.toml": "", "experiments/a/x": ""})
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_INDEX_FILE", "/nonexistent")
	if p, err := Git(context.Background(), root, packed); err != nil || p.Dirty || p.Commit == "" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestCleanRemote(t *testing.T) {
	for in, want := range map[string]string{
		"https://u:p@h/o/r":        "https://h/o/r",
		"https://token@h/o/r":      "https://h/o/r",
		"ssh://git:pw@h:22/o/r":    "ssh://git@h:22/o/r",
		"git@h:o/r.git":            "git@h:o/r.git",
		"/srv/git/r":               "/srv/git/r",
		"https://u:p%zz@h/o?tok=1": "https://h/o",
		"":                         "",
	} {
		if got := cleanRemote(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func BenchmarkGit(b *testing.B) {
	root := b.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, out)
		}
	}
	for b.Loop() {
		if _, err := Git(context.Background(), root, packed); err != nil {
			b.Fatal(err)
		}
	}
}
