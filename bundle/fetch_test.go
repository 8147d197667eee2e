package bundle

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/bundle/store/storetest"
)

// node is a run directory with a fetch fragment, as the batch script has it.
type node struct {
	t     testing.TB
	run   string // $TP_RUN_DIR
	local string // the node's own disk
	fetch Fetch
	env   []string
}

func newNode(t testing.TB, man *Manifest, st store.Store, stored []Stored) *node {
	t.Helper()
	fetch, err := NewFetch(context.Background(), man, st, stored, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, run: filepath.Join(t.TempDir(), "run dir's"), local: t.TempDir(), fetch: fetch}
	os.Mkdir(n.run, 0o700)
	n.place()
	return n
}

func (n *node) place() {
	for name, body := range n.fetch.Files {
		if err := os.WriteFile(filepath.Join(n.run, name), body, 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
}

// start runs the fragment in a strict script and returns its status and output.
func (n *node) start() (int, string) {
	cmd := exec.Command("bash", "-c", "set -euo pipefail\numask 077\n"+n.fetch.Script+"\necho went on\n")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TP_RUN_DIR=" + n.run, "TMPDIR=" + n.local, "SLURM_JOB_ID=7"}, n.env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// good wants success, and that nothing is left but the code.
func (n *node) good() {
	n.t.Helper()
	if status, out := n.start(); status != 0 || out != "went on\n" {
		n.t.Fatalf("status %d: %s", status, out)
	}
	n.clean()
}

// bad wants a status and words, no code and nothing left.
func (n *node) bad(want int, words ...string) {
	n.t.Helper()
	status, out := n.start()
	if status != want {
		n.t.Errorf("status %d, want %d: %s", status, want, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			n.t.Errorf("%q does not say %q", out, w)
		}
	}
	if strings.Contains(out, "X-Amz") || strings.Contains(out, "went on") {
		n.t.Errorf("%s", out)
	}
	if _, err := os.Stat(filepath.Join(n.run, "code")); err == nil {
		n.t.Error("there is code")
	}
	n.clean()
}

func (n *node) clean() {
	n.t.Helper()
	if left, _ := os.ReadDir(n.local); len(left) > 0 {
		n.t.Errorf("left on the node: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(n.run, "*.tmp")); len(left) > 0 {
		n.t.Errorf("left in the run directory: %v", left)
	}
}

func stores(t *testing.T, test func(t *testing.T, st store.Store)) {
	t.Run("dir", func(t *testing.T) { test(t, dirStore(t)) })
	t.Run("s3", func(t *testing.T) { test(t, storetest.S3(t)) })
	t.Run("s3 server", func(t *testing.T) { test(t, storetest.Server(t)) })
}

func TestFetchGivesTheTree(t *testing.T) {
	root := huge(t)
	man := digest(t, selectAll(t, root), "")
	stores(t, func(t *testing.T, st store.Store) {
		n := newNode(t, man, st, put(t, man, root, st, ""))
		n.env = []string{"TAR_OPTIONS=--bogus", "LC_ALL=C.UTF-8", "SLURM_RESTART_COUNT=1"}
		n.good()
		wantTree(t, root, man.Files, filepath.Join(n.run, "code"))

		// The same bundle again: not touched, and the store not needed.
		os.WriteFile(filepath.Join(n.run, "code", "own"), nil, 0o600)
		os.Remove(filepath.Join(n.run, "bundle.sha256"))
		n.good()
		if _, err := os.Stat(filepath.Join(n.run, "code", "own")); err != nil {
			t.Error("unpacked again")
		}
	})
}

// P90: code of an earlier bundle in the same run directory.
func TestFetchReplacesOtherCode(t *testing.T) {
	root, st := lab{"a": "1", "gone": "x"}.repo(t), dirStore(t)
	man := digest(t, selectAll(t, root), "")
	n := newNode(t, man, st, put(t, man, root, st, ""))
	n.good()
	os.WriteFile(root+"/a", []byte("2"), 0o644)
	os.Remove(root + "/gone")
	man = digest(t, selectAll(t, root), "")
	fetch, err := NewFetch(context.Background(), man, st, put(t, man, root, st, ""), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	n.fetch = fetch
	n.place()
	n.good()
	wantTree(t, root, man.Files, filepath.Join(n.run, "code"))
}

func TestFetchByManyTasksAtOnce(t *testing.T) {
	root, st := lab{"a": "1", "d/b": "2"}.repo(t), dirStore(t)
	man := digest(t, selectAll(t, root), "")
	n := newNode(t, man, st, put(t, man, root, st, ""))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			task := *n
			task.env = []string{"SLURM_JOB_ID=" + string(rune('1'+i))}
			if status, out := task.start(); status != 0 {
				t.Errorf("status %d: %s", status, out)
			}
		})
	}
	group.Wait()
	n.clean()
	wantTree(t, root, man.Files, filepath.Join(n.run, "code"))
}

func TestFetchFaults(t *testing.T) {
	root := lab{"a": "1", "b/c": "2"}.repo(t)
	man := digest(t, selectAll(t, root), "")
	ctx := context.Background()
	stores(t, func(t *testing.T, st store.Store) {
		stored := put(t, man, root, st, "")
		t.Run("corrupt", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			sums := string(n.fetch.Files["bundle.sha256"])
			os.WriteFile(filepath.Join(n.run, "bundle.sha256"), []byte(strings.Repeat("0", 64)+sums[64:]), 0o600)
			n.bad(65, "digest", stored[0].Name())
		})
		t.Run("no list", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			os.Remove(filepath.Join(n.run, "bundle.sha256"))
			n.bad(69, "bundle.sha256 is not there")
		})
		t.Run("no run directory", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			n.run += "/missing"
			n.bad(69, "is it mounted")
		})
		t.Run("no zstd", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			bin := t.TempDir()
			for _, tool := range []string{"bash", "cat", "cp", "mktemp", "mv", "rm", "sed", "sha256sum", "tar", "xargs", "uname", "curl"} {
				if at, err := exec.LookPath(tool); err == nil {
					os.Symlink(at, filepath.Join(bin, tool))
				}
			}
			n.env = []string{"PATH=" + bin}
			n.bad(127, "no zstd")
		})
		t.Run("no local disk", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			n.env = []string{"SLURM_TMPDIR=/nowhere"}
			n.bad(73, "/nowhere")
		})
		t.Run("gone object", func(t *testing.T) {
			n := newNode(t, man, st, stored)
			if err := st.Delete(ctx, stored[1].Name()); err != nil {
				t.Fatal(err)
			}
			n.bad(69)
		})
	})
	t.Run("links are of another key", func(t *testing.T) {
		st := storetest.S3(t)
		n := newNode(t, man, st, put(t, man, root, st, ""))
		config := strings.ReplaceAll(string(n.fetch.Files["bundle.curl"]), "X-Amz-Signature=", "X-Amz-Signature=0")
		os.WriteFile(filepath.Join(n.run, "bundle.curl"), []byte(config), 0o600)
		n.bad(69, "refused")
	})
	t.Run("links have expired", func(t *testing.T) {
		st := storetest.S3(t)
		n := newNode(t, man, st, put(t, man, root, st, ""))
		config := strings.ReplaceAll(string(n.fetch.Files["bundle.curl"]), "X-Amz-Date=2", "X-Amz-Date=1")
		_, rest, _ := strings.Cut(config, "\n")
		os.WriteFile(filepath.Join(n.run, "bundle.curl"), []byte("# expires 1700000000\n"+rest), 0o600)
		n.bad(69, "expired", "2023")
	})
	t.Run("store not mounted", func(t *testing.T) {
		st := dirStore(t)
		n := newNode(t, man, st, put(t, man, root, st, ""))
		os.RemoveAll(strings.TrimPrefix(st.Identity(), "dir:"))
		n.bad(69, "is it mounted")
	})
}

func TestFetchScriptHasNoSecret(t *testing.T) {
	root, st := lab{"a": "1"}.repo(t), storetest.S3(t)
	man := digest(t, selectAll(t, root), "")
	n := newNode(t, man, st, put(t, man, root, st, ""))
	if !strings.Contains(string(n.fetch.Files["bundle.curl"]), "X-Amz-Signature") {
		t.Error("the links are not where they belong")
	}
	for _, secret := range []string{"X-Amz", "http:", "testing-secret", "tester"} {
		if strings.Contains(n.fetch.Script, secret) || strings.Contains(string(n.fetch.Files["bundle.sha256"]), secret) {
			t.Errorf("%q is in the script", secret)
		}
	}
	// What a preview shows before the upload is what runs after it.
	access, err := st.Fetch(context.Background(), nil, time.Hour)
	if err != nil || FetchScript(man.Digest, access) != n.fetch.Script {
		t.Error("the script depends on the upload")
	}
}

func TestFetchScriptIsCleanBash(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip(err)
	}
	for _, access := range []store.Access{{Kind: store.KindDir, Dir: "/scratch/ann's objects"}, {Kind: store.KindS3}} {
		cmd := exec.Command(shellcheck, "-s", "bash", "-")
		cmd.Stdin = strings.NewReader(FetchScript(Sum{1}, access))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
