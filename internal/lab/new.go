package lab

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// NewOptions of New: the new experiment holds the files of From, then those of
// Templates in order, then Files; later ones replace earlier ones.
type NewOptions struct {
	From      *Experiment       // fork: copied without what its runs left behind
	Templates []fs.FS           // the recipe's
	Files     map[string][]byte // the lock file
}

// leftBehind are names that a fork does not take along.
var leftBehind = map[string]bool{"outputs": true, "hf_export": true, "__pycache__": true, ".git": true, ".ipynb_checkpoints": true}

// New makes experiments/<name>. It is prepared aside and appears in one step; a
// name that is taken is refused.
func (l *Lab) New(name string, o NewOptions) (*Experiment, error) {
	if err := CheckName(name); err != nil {
		return nil, fault.New(fault.Usage, "experiment %q: %w", name, err)
	}
	e := l.at("experiments", name)
	for _, root := range roots {
		if exists(l.at(root, name).Dir) {
			return nil, fault.New(fault.Usage, "%s/%s exists", root, name).WithHint("choose another name; tp ls shows those taken")
		}
	}
	parent := filepath.Dir(e.Dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp(parent, ".tp-new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(stage)
	if err := os.Chmod(stage, 0o755); err != nil { // MkdirTemp is private; an experiment is shared like the lab
		return nil, err
	}
	if o.From != nil {
		if err := copyTree(stage, os.DirFS(o.From.Dir)); err != nil {
			return nil, err
		}
	}
	for _, template := range o.Templates {
		if err := copyTree(stage, template); err != nil {
			return nil, err
		}
	}
	for file, data := range o.Files {
		if err := os.WriteFile(filepath.Join(stage, file), data, 0o644); err != nil {
			return nil, err
		}
	}
	if err := moveNew(stage, e.Dir); err != nil {
		return nil, err
	}
	return l.Experiment(e.Rel)
}

// copyTree copies regular files and directories; links and devices are left
// out, for they may point anywhere.
func copyTree(to string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(path))
		switch {
		case entry.IsDir() && leftBehind[entry.Name()]:
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular() || strings.HasSuffix(path, ".pyc"):
			return nil
		}
		return copyFile(target, from, path)
	})
}

func copyFile(target string, from fs.FS, path string) error {
	in, err := from.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644|info.Mode().Perm()&0o111)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
