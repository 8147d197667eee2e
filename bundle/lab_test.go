package bundle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/fault"
)

// lab is a virtual tree: paths to contents. A content that starts with "-> " is
// a link, one that starts with "#!" an executable file.
type lab map[string]string

func (l lab) write(t testing.TB, root string) string {
	t.Helper()
	for name, content := range l {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, file)
		} else {
			mode := os.FileMode(0o644)
			if strings.HasPrefix(content, "#!") {
				mode = 0o755
			}
			err = os.WriteFile(file, []byte(content), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// repo writes the tree into a fresh repository; nothing is added.
func (l lab) repo(t testing.TB) string {
	t.Helper()
	root := l.write(t, t.TempDir())
	run(t, root, "git", "init", "-q")
	return root
}

// commit adds and commits what is there.
func commit(t testing.TB, root string) {
	t.Helper()
	run(t, root, "git", "add", "-A")
	run(t, root, "git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "x")
}

func run(t testing.TB, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return string(out)
}

func selectAll(t testing.TB, root string, dirs ...string) *Selection {
	t.Helper()
	sel, err := Select(context.Background(), Source{Root: root, Dirs: dirs})
	if err != nil {
		t.Fatal(err)
	}
	return sel
}

func digest(t testing.TB, sel *Selection, cache string) *Manifest {
	t.Helper()
	man, err := Digest(context.Background(), sel, cache)
	if err != nil {
		t.Fatal(err)
	}
	return man
}

func paths(files []File) string {
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return strings.Join(names, " ")
}

// later makes what was just written old enough for the cache to trust its times.
func later(sel *Selection) *Selection {
	sel.taken = time.Now().Add(time.Minute)
	return sel
}

// wantFault checks that err is for the user and names everything in words.
func wantFault(t testing.TB, err error, words ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault with %q", err, words)
	}
	for _, w := range words {
		if !strings.Contains(f.Msg+"\n"+f.Hint, w) {
			t.Errorf("%q does not say %q", f.Msg+"\n"+f.Hint, w)
		}
	}
}

// readTree is the tree below root as a virtual one, with modes.
func readTree(t testing.TB, root string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			got[rel] = "-> " + target
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		got[rel] = info.Mode().String() + " " + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wantTree compares an unpacked bundle with the packed files, byte for byte.
func wantTree(t testing.TB, root string, files []File, unpacked string) {
	t.Helper()
	got := readTree(t, unpacked)
	delete(got, marker)
	if len(got) != len(files) {
		t.Errorf("%d files unpacked, %d packed", len(got), len(files))
	}
	for _, f := range files {
		want := "-> " + f.Link
		if f.Link == "" {
			content, err := os.ReadFile(filepath.Join(root, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			want = os.FileMode(f.Mode).String() + " " + string(content)
		}
		if !bytes.Equal([]byte(got[f.Path]), []byte(want)) {
			t.Errorf("%q: got %.80q, want %.80q", f.Path, got[f.Path], want)
		}
	}
}
