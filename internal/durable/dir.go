package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// TempDir makes a directory of mode 0700 in parent, to be filled and given to
// [PublishDir].
func TempDir(parent string) (string, error) {
	name := tempName(parent)
	return name, os.Mkdir(name, 0o700)
}

// PublishDir gives a fully written directory its final name on the same file
// system. It first syncs every file and directory below tmp, so they may have
// been written in any way; the cost is one fsync per file. If final exists and
// is not an empty directory the error is ErrExist and tmp is left as it was.
// An empty directory is a reservation and is replaced.
func PublishDir(tmp, final string) error {
	before, err := os.Lstat(tmp)
	if err != nil {
		return err
	}
	if err := syncTree(tmp); err != nil {
		return err
	}
	// os.Rename looks first and refuses every directory; rename(2) decides.
	if err := syscall.Rename(tmp, final); err != nil && !arrived(before, final) {
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTDIR) {
			return &fs.PathError{Op: "publish", Path: final, Err: ErrExist}
		}
		return &os.LinkError{Op: "publish", Old: tmp, New: final, Err: err}
	}
	if err := SyncDir(filepath.Dir(final)); err != nil {
		return err
	}
	if from := filepath.Dir(tmp); from != filepath.Dir(final) {
		return SyncDir(from)
	}
	return nil
}

// arrived tells whether a rename that reported an error has happened all the
// same: an NFS client that repeats a request gets ENOENT for its own success.
func arrived(before fs.FileInfo, final string) bool {
	after, err := os.Lstat(final)
	return err == nil && os.SameFile(before, after)
}

// syncTree syncs the files of a tree and then its directories.
func syncTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
		case d.Type().IsRegular():
			return syncFile(path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := SyncDir(dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
