package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// roots are the directories whose children are experiments. smoke/ holds the
// short ones of TunePlane labs.
var roots = []string{"experiments", "smoke"}

// LockName is the file that says which recipe an experiment uses.
const LockName = "recipe.lock.json"

// Experiment is one directory that can become a job.
type Experiment struct {
	Name string
	Rel  string   // "experiments/<name>", relative to the lab, with slashes
	Dir  string   // absolute
	Job  *JobFile // job.toml; nil when there is none
}

// Path is a file of the experiment.
func (e *Experiment) Path(name string) string { return filepath.Join(e.Dir, name) }

// Experiments lists all experiments by name, experiments/ before smoke/. Their
// job.toml is not read: a broken one must not hide the others.
func (l *Lab) Experiments() ([]Experiment, error) {
	var all []Experiment
	for _, root := range roots {
		entries, err := os.ReadDir(filepath.Join(l.Root, root))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if CheckName(entry.Name()) != nil {
				continue
			}
			e := l.at(root, entry.Name())
			if info, err := os.Stat(e.Dir); err == nil && info.IsDir() {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

func (l *Lab) at(root, name string) Experiment {
	return Experiment{Name: name, Rel: root + "/" + name, Dir: filepath.Join(l.Root, root, name)}
}

// Experiment opens one by its name, or by its path in the lab
// ("experiments/x", as the shell completes it), and reads its job.toml.
func (l *Lab) Experiment(name string) (*Experiment, error) {
	root, leaf := "", strings.TrimRight(name, "/")
	if before, after, ok := strings.Cut(strings.TrimPrefix(leaf, "./"), "/"); ok && slices.Contains(roots, before) {
		root, leaf = before, after
	}
	if err := CheckName(leaf); err != nil {
		return nil, fault.New(fault.Usage, "experiment %q: %w", name, err)
	}
	for _, r := range roots {
		if root != "" && r != root {
			continue
		}
		e := l.at(r, leaf)
		info, err := os.Stat(e.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fault.New(fault.Usage, "%s is no directory", e.Rel)
		}
		e.Job, err = ReadJobFile(e.Path("job.toml"), "job.toml")
		return &e, err
	}
	return nil, l.noExperiment(leaf)
}

func (l *Lab) noExperiment(name string) error {
	all, _ := l.Experiments()
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.Name
	}
	err := fault.New(fault.Usage, "no experiment %q in %s", name, l.Root)
	if near := fault.Nearest(name, names); near != "" {
		return err.WithHint("did you mean %q? tp ls shows all", near)
	}
	return err.WithHint("tp ls shows all experiments, tp new makes one")
}

// PackedDirs are the directories whose files travel with the experiment:
// its own, common/ and configs/, as far as they exist.
func (l *Lab) PackedDirs(e *Experiment) []string {
	dirs := []string{e.Rel}
	for _, shared := range []string{"common", "configs"} {
		if info, err := os.Stat(filepath.Join(l.Root, shared)); err == nil && info.IsDir() {
			dirs = append(dirs, shared)
		}
	}
	return dirs
}
