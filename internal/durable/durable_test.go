package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The test binary starts itself again as another process; the first argument
// after "child" says what that process does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

func child(what string, args []string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
	}
	path := args[0]
	switch what {
	case "create": // one attempt; prints who won
		err := Create(path, []byte(args[1]), 0o600)
		if errors.Is(err, ErrExist) {
			fmt.Println("second")
			return
		}
		fail(err)
		fmt.Println("first")
	case "rewrite": // replaces the file until it is killed
		fmt.Println("ready")
		for i := 0; ; i++ {
			fail(WriteFile(path, bytes.Repeat([]byte{'a' + byte(i%26)}, 1<<20), 0o600))
		}
	case "append": // adds 200 lines
		for i := range 200 {
			fail(Append(path, fmt.Appendf(nil, "%s %d", args[1], i)))
		}
	case "publish": // publishes directories until it is killed
		fmt.Println("ready")
		for i := 0; ; i++ {
			tmp, err := TempDir(path)
			fail(err)
			for j := range 8 {
				fail(os.WriteFile(filepath.Join(tmp, fmt.Sprint(j)), []byte("whole"), 0o600))
			}
			fail(PublishDir(tmp, filepath.Join(path, fmt.Sprint("done-", i))))
		}
	case "hold": // takes a lease and keeps it until it is killed
		_, err := (&Keeper{Owner: "child"}).Try(path)
		fail(err)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
}

// start runs a child and waits until it is ready.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"child"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 64)
	n, _ := out.Read(buf)
	if !strings.HasPrefix(string(buf[:n]), "ready") {
		t.Fatalf("child said %q", buf[:n])
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}

func TestWriteFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("x", 255)) // the longest legal name
	defer syscall.Umask(syscall.Umask(0o077))
	for _, text := range []string{"one", "", "three"} {
		if err := WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, 100); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v; the umask must not change what was asked for", info.Mode())
	}
	onlyFiles(t, dir, 1)

	if err := WriteFile(dir, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if err := WriteFile(filepath.Join(dir, "no", "x"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
	onlyFiles(t, dir, 1)
	onlyFiles(t, filepath.Dir(dir), 1)
}

func onlyFiles(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("%s holds %v, want %d entries", dir, entries, want)
	}
}

func TestWriteFileKilled(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "f")
		cmd := start(t, "rewrite", path)
		time.Sleep(20 * time.Millisecond)
		kill(t, cmd)
		data, err := Read(path, 2<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || len(data) != 1<<20 || bytes.Count(data, data[:1]) != 1<<20 {
			t.Fatalf("a mixture of %d bytes: %v", len(data), err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a file system of 64 KiB can only be mounted by root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("tmpfs cannot be mounted here: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })

	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 128<<10)
	if err := WriteFile(path, big, 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("WriteFile: %v", err)
	}
	if err := Create(filepath.Join(dir, "g"), big, 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create: %v", err)
	}
	link = func(string, string) error { return syscall.EPERM }
	err := Create(filepath.Join(dir, "g"), big, 0o600)
	link = os.Link
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create without links: %v", err)
	}
	onlyFiles(t, dir, 1)
	if got, _ := Read(path, 10); string(got) != "old" {
		t.Errorf("the old content became %q", got)
	}
	if err := Append(path, big); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Append: %v", err)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() == 0 { // root is not stopped by modes, a read-only mount stops everybody
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=64k"); err != nil {
			t.Skip("tmpfs cannot be mounted here: ", err)
		}
		t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	for name, err := range map[string]error{
		"WriteFile": WriteFile(path, nil, 0o600),
		"Create":    Create(path, nil, 0o600),
		"Append":    Append(path, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; want an error that names the path", name, err)
		}
	}
	if _, err := new(Keeper).Try(filepath.Join(dir, "lease")); err == nil {
		t.Error("a lease in a read-only directory")
	}
}

func TestCreateRace(t *testing.T) {
	for name, l := range map[string]func(string, string) error{
		"link":    os.Link,
		"no link": func(string, string) error { return syscall.EPERM },
	} {
		t.Run(name, func(t *testing.T) {
			link = l
			defer func() { link = os.Link }()
			dir := t.TempDir()
			var wins atomic.Int32
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					err := Create(filepath.Join(dir, "f"), fmt.Append(nil, i), 0o600)
					if err == nil {
						wins.Add(1)
					} else if !errors.Is(err, ErrExist) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if wins.Load() != 1 {
				t.Errorf("%d winners", wins.Load())
			}
			onlyFiles(t, dir, 1)
		})
	}
}

func TestCreateRaceOfProcesses(t *testing.T) {
	dir := t.TempDir()
	var out [16]string
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			b, err := exec.Command(os.Args[0], "child", "create", filepath.Join(dir, "f"), fmt.Sprint(i)).Output()
			if err != nil {
				t.Error(err)
			}
			out[i] = strings.TrimSpace(string(b))
		})
	}
	wg.Wait()
	content, _ := Read(filepath.Join(dir, "f"), 10)
	wins := 0
	for i, o := range out {
		if o == "first" {
			wins++
			if string(content) != fmt.Sprint(i) {
				t.Errorf("%d won, the file is from %s", i, content)
			}
		}
	}
	if wins != 1 {
		t.Errorf("%d winners in %v", wins, out)
	}
	onlyFiles(t, dir, 1)
}

// An NFS server carries a link out, the answer is lost, the repeat says EEXIST.
func TestCreateSurvivesRepeatedLink(t *testing.T) {
	link = func(a, b string) error { os.Link(a, b); return os.Link(a, b) }
	defer func() { link = os.Link }()
	if err := Create(filepath.Join(t.TempDir(), "f"), nil, 0o600); err != nil {
		t.Error(err)
	}
}

func TestPublishDir(t *testing.T) {
	dir := t.TempDir()
	final := filepath.Join(dir, "run")
	if err := os.Mkdir(final, 0o700); err != nil { // reserved
		t.Fatal(err)
	}
	var wins atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			tmp, err := TempDir(dir)
			if err != nil {
				t.Error(err)
				return
			}
			os.WriteFile(filepath.Join(tmp, "plan.json"), []byte("{}"), 0o600)
			err = PublishDir(tmp, final)
			if err == nil {
				wins.Add(1)
				return
			}
			if !errors.Is(err, ErrExist) {
				t.Error(err)
			}
			os.RemoveAll(tmp)
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d winners", wins.Load())
	}
	onlyFiles(t, dir, 1)

	tmp, _ := TempDir(dir)
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	if err := PublishDir(tmp, file); !errors.Is(err, ErrExist) {
		t.Errorf("onto a file: %v", err)
	}
}

func TestPublishDirKilled(t *testing.T) {
	dir := t.TempDir()
	cmd := start(t, "publish", dir)
	time.Sleep(100 * time.Millisecond)
	kill(t, cmd)
	done, _ := filepath.Glob(filepath.Join(dir, "done-*"))
	for _, d := range done {
		for j := range 8 {
			if b, err := Read(filepath.Join(d, fmt.Sprint(j)), 10); string(b) != "whole" {
				t.Fatalf("%s is not whole: %q, %v", d, b, err)
			}
		}
	}
	if err := Sweep(dir, -time.Hour); err != nil {
		t.Fatal(err)
	}
	onlyFiles(t, dir, len(done))
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var wg sync.WaitGroup
	for _, name := range []string{"p", "q"} {
		wg.Go(func() {
			if out, err := exec.Command(os.Args[0], "child", "append", path, name).Output(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	data, _ := Read(path, 1<<20)
	next := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var name string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d\n", &name, &n); err != nil || n != next[name] {
			t.Fatalf("line %q: %v, want number %d", line, err, next[name])
		}
		next[name]++
	}
	if next["p"] != 200 || next["q"] != 200 {
		t.Errorf("lines: %v", next)
	}
}

func TestAppendClosesTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	os.WriteFile(path, []byte("one\n{\"torn"), 0o600)
	if err := Append(path, []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got, _ := Read(path, 100); string(got) != "one\n{\"torn\ntwo\n" {
		t.Errorf("got %q", got)
	}
	if err := Append(path, []byte("a\nb")); err == nil {
		t.Error("a line with a newline was taken")
	}
}

func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	os.WriteFile(path, []byte("12345"), 0o600)
	if _, err := Read(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if b, err := Read(path, 5); err != nil || len(b) != 5 {
		t.Errorf("exactly: %q, %v", b, err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fifo, 5); err == nil {
		t.Error("a FIFO was read")
	}
}

// The name of the unfinished file is nobody's business.
func TestErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nosuch", "file")
	for what, err := range map[string]error{"Create": Create(path, nil, 0o600), "WriteFile": WriteFile(path, nil, 0o600)} {
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), TempPrefix) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
