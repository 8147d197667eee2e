package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/recipes"
)

// launch is a run of a recipe that the test writes: its launcher is what is
// tested, not the catalogue, so that it is composed, planned and rendered here
// and given to sbatch.
type launch struct {
	recipe   string            // manifest without its name, driver and entry point, which are train and train.py
	files    map[string]string // of the experiment
	profiles []string
	set      []string
	env      []string
	path     string // in front of the job's PATH
	image    string
	mounts   []string
	software site.Software
}

// registry knows the devcluster's nodes.
type registry struct{}

func (registry) Resolve(p spec.Profile) (nodes, perNode int, s site.Series, err error) {
	s = site.Series{Name: p.Series, Partitions: []string{p.Series}, CPUs: 64, Memory: 4000, Nodes: 1}
	if p.Series != "cpu" {
		s.GRES, s.Devices = "gpu:"+p.Series, 8
		if p.Nodes > 0 {
			return p.Nodes, p.PerNode, s, nil
		}
		return 1, p.Devices, s, nil
	}
	return max(1, p.Devices), 0, s, nil
}

// start queues a launch; the answer is its run directory.
func (w *world) start(l launch) (runDir, job string) {
	w.Helper()
	name := fmt.Sprintf("x%d", time.Now().UnixNano())
	dir := "experiments/" + name + "/"
	head, tables, _ := strings.Cut(l.recipe, "\n[")
	if tables != "" {
		tables = "[" + tables
	}
	manifest := "name = \"test/launch\"\nversion = \"1\"\ntitle = \"t\"\nsummary = \"s\"\ndriver = \"train\"\n" + head +
		"\n[framework]\nkind = \"test\"\nversions = [\"1\"]\ndefault = \"1\"\n[entrypoint]\nkind = \"experiment\"\nvalue = \"train.py\"\n" + tables
	catalog, err := recipes.Load(fstest.MapFS{
		"catalog/test/launch/recipe.toml":       {Data: []byte(manifest)},
		"catalog/test/launch/template/train.py": {Data: []byte("#\n")},
	})
	w.ok(err)
	recipe, err := catalog.Get("test/launch")
	w.ok(err)
	lock, err := recipes.NewLock(recipe, "")
	w.ok(err)
	w.write(dir+"recipe.lock.json", string(lock.Encode("test")))
	w.write(dir+"job.toml", "time = \"5m\"\ncpus_per_node = 2\nmem = \"2G\"\n")
	for file, text := range l.files {
		w.write(dir+file, text)
	}
	where, err := lab.Find(w.lab, lab.Options{Trust: []string{w.lab}})
	w.ok(err)
	exp, err := where.Experiment(name)
	w.ok(err)
	want, how, err := recipes.Compose(where, exp, recipes.Options{Catalog: catalog, Profiles: l.profiles, Set: l.set, Env: l.env, Image: l.image, Mounts: l.mounts})
	w.ok(err)
	for _, warning := range how.Warnings {
		w.Log(warning)
	}
	in := plan.Input{
		Spec: want, Registry: registry{}, RunID: "run-" + fmt.Sprintf("%012x", time.Now().UnixNano()&(1<<48-1)), RunDir: filepath.Join(w.dir, "runs", name), User: "alice",
		StageIn: fmt.Sprintf("mkdir -p \"$TP_CODE_DIR/experiments\"\ncp -r '%s/%s' \"$TP_CODE_DIR/experiments/\"\n", w.lab, dir[:len(dir)-1]),
		Now:     time.Now(), PathFirst: l.path, Software: l.software,
	}
	for line := range strings.SplitSeq(w.must("env", "-0"), "\x00") {
		if name, value, ok := strings.Cut(line, "="); ok && slices.Contains([]string{"PATH", "HOME", "USER", "SLURM_CONF"}, name) {
			in.Env = append(in.Env, spec.EnvVar{Name: name, Value: value, Origin: "caller"})
		}
	}
	p, err := plan.Resolve(in)
	w.ok(err)
	w.lint(p.Fixed.Request.Script)
	w.mkdir(filepath.Join(in.RunDir, "logs"))
	return in.RunDir, w.sbatch(p.Fixed.Request.Script)
}

// lint holds a whole batch script against bash -n and shellcheck.
func (w *world) lint(script string) {
	w.Helper()
	for _, linter := range [][]string{{"bash", "-n"}, {"shellcheck", "-s", "bash", "-e", "SC2016,SC2034,SC2154,SC2317", "-"}} {
		if _, err := exec.LookPath(linter[0]); err != nil {
			w.Logf("%s is not here", linter[0])
			continue
		}
		cmd := exec.Command(linter[0], linter[1:]...)
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			w.Errorf("%q: %v\n%s", linter, err, out)
		}
	}
}

// end is how a run says that it ended.
type end struct {
	Exit                       int
	State, Role, Node, Message string
}

// ended waits for the run's end marker.
func (w *world) ended(runDir, job string) end {
	w.Helper()
	var e end
	began, nudged := time.Now(), time.Now()
	for {
		if text := w.read(runDir, "ends", "1.0.json"); text != "" {
			w.decode(text, &e)
			return e
		}
		if time.Since(began) > busy {
			w.Fatalf("job %s has not ended after %s: %s\n%s", job, busy, w.slurm("squeue", "-h", "-j", job, "-o", "%T %r").out, w.logs(runDir))
		}
		if time.Since(nudged) > 5*time.Second {
			nudged = time.Now()
			w.slurm("sbatch", "-Q", "-p", "cpu", "-n1", "--mem=1", "-t1", "-J", "nudge", "-o", "/dev/null", "-D", "/tmp", "--wrap", "true")
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// must end: the run has to end like this, with these texts in its message.
func (w *world) mustEnd(runDir, job, state string, texts ...string) end {
	w.Helper()
	e := w.ended(runDir, job)
	for _, text := range texts {
		if !strings.Contains(e.Message, text) {
			w.Errorf("the message %q does not say %q", e.Message, text)
		}
	}
	if e.State != state {
		w.Errorf("the run is %s (%s), wanted %s", e.State, e.Message, state)
	}
	if w.Failed() {
		w.Log(w.logs(runDir))
	}
	return e
}

func (w *world) logs(runDir string) string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(runDir, "logs", "*.log"))
	for _, file := range files {
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(file), w.read(file))
	}
	return b.String()
}

// soon waits for a file that the run writes.
func (w *world) soon(runDir, job, name string) string {
	w.Helper()
	began := time.Now()
	for {
		if text := w.read(runDir, name); text != "" {
			return text
		}
		if end := w.read(runDir, "ends", "1.0.json"); end != "" || time.Since(began) > busy {
			w.Fatalf("job %s gave no %s: %s\n%s", job, name, end, w.logs(runDir))
		}
		if time.Since(began) > 5*time.Second {
			w.slurm("sbatch", "-Q", "-p", "cpu", "-n1", "--mem=1", "-t1", "-J", "nudge", "-o", "/dev/null", "-D", "/tmp", "--wrap", "true")
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (w *world) touch(runDir, name string) {
	w.Helper()
	w.ok(os.WriteFile(filepath.Join(runDir, "out", name), nil, 0o644))
}

// into decodes a JSON file of the run once it is there.
func into[T any](w *world, runDir, job, name string) T {
	w.Helper()
	var v T
	if err := json.Unmarshal([]byte(w.soon(runDir, job, name)), &v); err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	return v
}
