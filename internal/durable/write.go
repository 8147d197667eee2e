package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// WriteFile replaces path with data: temporary file in the same directory,
// fsync, rename, fsync of the directory. Of several writers the last one
// stands, whole. A symbolic link at path is replaced, not followed.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(path)
	tmp, err := writeTemp(dir, data, perm)
	if err != nil {
		return naming(path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return SyncDir(dir)
}

// naming makes an error about the unfinished file one about the file that was
// wanted: nobody knows the other name.
func naming(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: path, Err: at.Err}
	}
	return err
}

// link is link(2); a test takes it away.
var link = os.Link

// Create makes path with data if nobody has made it yet, else the error is
// ErrExist. Whoever can see the file sees all of it: it is written under
// another name and linked into place. Where the file system has no hard links
// (some FUSE mounts, exFAT) it falls back to O_EXCL: still exactly one winner,
// but a reader may see a short file for a moment.
func Create(path string, data []byte, perm fs.FileMode) error {
	dir := filepath.Dir(path)
	tmp, err := writeTemp(dir, data, perm)
	if err != nil {
		return naming(path, err)
	}
	defer os.Remove(tmp)
	err = link(tmp, path)
	switch {
	case err == nil, sameFile(tmp, path):
		// An NFS server may have carried out a request whose answer was lost;
		// the repeated request then says EEXIST about our own link.
		return SyncDir(dir)
	case errors.Is(err, fs.ErrExist):
		return err
	case noLinks(err):
		if err := writeNew(path, data, perm); err != nil {
			return err
		}
		return SyncDir(dir)
	}
	return err
}

// noLinks: link(2) gives EPERM where the file system has no hard links.
func noLinks(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS, syscall.EXDEV, syscall.EMLINK} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Append adds line and a newline to the end of path in one write(2) with
// O_APPEND, then syncs. The file is made with mode 0600 if it is missing. A
// torn line that a killed writer left is closed off first, so it never swallows
// ours. On one host appends never mix; two hosts must not append to one file
// on NFS, which places O_APPEND writes by the client's idea of the length.
func Append(path string, line []byte) error {
	for _, b := range line {
		if b == '\n' {
			return &fs.PathError{Op: "append", Path: path, Err: errors.New("a line holds a newline")}
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	buf := make([]byte, 0, len(line)+2)
	if torn(f, info.Size()) {
		buf = append(buf, '\n')
	}
	buf = append(append(buf, line...), '\n')
	_, err = f.Write(buf)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && info.Size() == 0 {
		err = SyncDir(filepath.Dir(path))
	}
	return err
}

// torn reports whether the last line has no end.
func torn(f *os.File, size int64) bool {
	if size == 0 {
		return false
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n'
}

// Sweep removes the unfinished files that killed processes left in dir, if
// they are older than age by the clock of the file's own host. An age of a day
// is far above any write.
func Sweep(dir string, age time.Duration) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), TempPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > age {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return nil
}
