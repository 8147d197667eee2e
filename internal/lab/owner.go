package lab

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tuneplane/tp/internal/fault"
)

// checkOwner refuses a marker, or a lab directory, of a third person. The walk
// upwards would otherwise pick up /tmp/tp.toml for everything under /tmp. A
// symbolic link must pass for itself and for what it points to: a stranger may
// link to a file of the caller's own.
func checkOwner(root, marker string, o Options) error {
	if slices.ContainsFunc(o.Trust, func(dir string) bool { return samePath(dir, root) }) {
		return nil
	}
	caller := os.Getuid()
	if o.UID != nil {
		caller = *o.UID
	}
	path := filepath.Join(root, marker)
	for _, look := range []struct {
		path string
		stat func(string) (os.FileInfo, error)
	}{{path, os.Lstat}, {path, os.Stat}, {root, os.Stat}} {
		info, err := look.stat(look.path)
		if err != nil {
			return err
		}
		sys, ok := info.Sys().(*syscall.Stat_t)
		if ok && sys.Uid != 0 && int(sys.Uid) != caller {
			return fault.New(fault.Usage, "%s belongs to uid %d, neither to you (uid %d) nor to root, so this lab is not read", look.path, sys.Uid, caller).
				WithHint("look at it, then --trust-lab %s", root)
		}
	}
	return nil
}

func samePath(a, b string) bool {
	return canonical(a) == canonical(b)
}

func canonical(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
