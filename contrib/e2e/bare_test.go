package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bare is a second devcluster beside the tests' own, for clusters as they exist:
// without accounting, without slurmrestd. It has the same packages and ports of
// its own, and comes up in two seconds.
type bare struct {
	dir, folder string
	env         []string
}

func newBare(t *testing.T) *bare {
	t.Helper()
	b := &bare{dir: devclusterDir() + "-bare"}
	port := 26000
	if text := os.Getenv("TP_DEVCLUSTER_PORT"); text != "" {
		port, _ = strconv.Atoi(text)
	}
	if port -= 6000; port < 1024 {
		port += 10000
	}
	b.env = []string{"TP_DEVCLUSTER_DIR=" + b.dir, fmt.Sprintf("TP_DEVCLUSTER_PORT=%d", port), "TP_DEVCLUSTER_BASE=" + devclusterDir()}
	t.Cleanup(func() { b.run(t, "down", "--all", "--purge") })
	return b
}

func (b *bare) run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(os.Getenv("TP_DEVCLUSTER"), args...)
	cmd.Env = append(os.Environ(), b.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("devcluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// world brings the release up with these options.
func (b *bare) world(t *testing.T, release string, options ...string) *world {
	t.Helper()
	b.run(t, append([]string{"up", release, "--user", "alice"}, options...)...)
	if b.folder == "" {
		b.folder = filepath.Join(b.dir, "shared", "e2e")
		if err := os.MkdirAll(b.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		tp, err := os.ReadFile(filepath.Join(folder, "tp"))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.folder, "tp"), tp, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w := worldIn(t, release, b.dir, b.folder, b.env...)
	w.experiment("short", map[string]string{"train": "echo said something"})
	w.experiment("long", map[string]string{"train": "sleep 100"})
	w.commit()
	return w
}

// TestBareClusters: submit, status, logs and cancel on clusters without
// accounting, by every way that is left.
func TestBareClusters(t *testing.T) {
	if reason := unset(); reason != "" {
		t.Skip(reason)
	}
	t.Parallel()
	b := newBare(t)
	for _, release := range strings.Fields(os.Getenv("TP_E2E_RELEASES")) {
		t.Run(release, func(t *testing.T) {
			t.Run("NoAccounting", func(t *testing.T) {
				w := b.world(t, release, "--no-dbd")
				w.lives("a private slurmrestd", "--transport", "child")
				w.lives("slurmrestd v0.0.", "--fleet", "devlab", "--transport", "url")
			})
			t.Run("NoAccountingNoSlurmrestd", func(t *testing.T) {
				w := b.world(t, release, "--no-dbd", "--no-rest")
				w.edit(`(?m)^kind = "slurm"$`, "kind = \"slurm\"\nslurmrestd = \"/nonexistent/slurmrestd\"")
				w.lives("(sbatch)")
			})
		})
	}
}

// lives walks a run's life by one way, which the preview must name.
func (w *world) lives(way string, flags ...string) {
	w.Helper()
	s := w.submit(append([]string{"short", "--profile", "cpu:1"}, flags...)...)
	if !strings.Contains(s.preview, way) {
		w.Errorf("the preview does not name %q:\n%s", way, s.preview)
	}
	if !strings.Contains(s.preview, "unknown: admission.accounting: ") {
		w.Errorf("the preview does not say that accounting is not known:\n%s", s.preview)
	}
	if len(s.Differences) > 0 {
		w.Errorf("shown and queued differ: %q", s.Differences)
	}
	id := filepath.Base(s.RunDir)
	logs := w.tp(append([]string{"job", "logs", id}, flags...)...) // follows to the end
	if logs.code != 0 || !strings.Contains(logs.out, "said something") {
		w.Errorf("tp job logs: exit code %d\n%s%s", logs.code, logs.out, logs.err)
	}
	var r run
	w.waitFor(time.Minute, "the run to succeed", func() bool {
		out := w.tp(append([]string{"job", "status", "--json", id}, flags...)...)
		w.decode(out.out, &r)
		return r.ended()
	})
	if r.State != "SUCCEEDED" {
		w.Errorf("the run is %s (%s)", r.State, r.Reason)
	}
	s = w.submit(append([]string{"long", "--profile", "cpu:1"}, flags...)...)
	if all := w.tp(append([]string{"status"}, flags...)...); all.code != 0 || !strings.Contains(all.out, filepath.Base(s.RunDir)) || strings.Contains(all.err, "last known") {
		w.Errorf("tp status: exit code %d\n%s%s", all.code, all.out, all.err)
	}
	if c := w.tp(append([]string{"job", "cancel", filepath.Base(s.RunDir)}, flags...)...); c.code != 0 {
		w.Errorf("tp job cancel: exit code %d\n%s%s", c.code, c.out, c.err)
	}
	w.waitFor(time.Minute, "Slurm to cancel the job", func() bool {
		return strings.HasPrefix(w.scontrol(s.job())[0]["JobState"], "CANCELLED")
	})
}
