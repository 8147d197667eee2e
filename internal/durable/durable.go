// Package durable holds the only primitives by which tp changes files that
// other processes, on this host or another, read at the same time. After a nil
// error the content survives a crash of the machine; after an error, and after
// kill -9 at any instruction, a reader finds the old content or the new one
// and never a mixture.
//
//	durable.WriteFile(p, data, 0o600)        // replace
//	durable.Create(p, data, 0o600)           // exactly one of many creators wins
//	durable.PublishDir(tmp, final)           // a directory appears whole
//	durable.Append(p, line)                  // one more line of a log
//	lease, err := keeper.Try(dir)            // one owner at a time, see [Keeper]
//
// Everything rests on rename(2), link(2) and mkdir(2), which a server of NFS or
// Lustre carries out atomically. flock(2) is not used: where a file system is
// mounted nolock or localflock it excludes nobody on another host.
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrExist says that somebody else was first. It is fs.ErrExist.
var ErrExist = fs.ErrExist

// ErrTooLarge says that a file is longer than its reader allows.
var ErrTooLarge = errors.New("file is too large")

// TempPrefix begins the name of every unfinished file. A kill -9 leaves one
// behind; nothing ever reads it, and [Sweep] removes old ones.
const TempPrefix = ".tp-tmp-"

// Read returns the whole file if it is a regular file of at most max bytes,
// else ErrTooLarge. A FIFO or device in a file's place is an error, not a hang.
func Read(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)}
	}
	return data, nil
}

// tempName is a name in dir that nobody else has, short whatever the target's
// length is: a target of 255 bytes is legal, a longer name is not.
func tempName(dir string) string {
	var r [12]byte
	rand.Read(r[:])
	return filepath.Join(dir, TempPrefix+hex.EncodeToString(r[:]))
}

// writeTemp writes and syncs a new file beside its target. Errors that show
// only at close (a quota on NFS) count; the file is gone after any error.
func writeTemp(dir string, data []byte, perm fs.FileMode) (name string, err error) {
	name = tempName(dir)
	if err := writeNew(name, data, perm); err != nil {
		return "", err
	}
	return name, nil
}

// writeNew creates name, which must not exist, with exactly perm whatever the
// umask says.
func writeNew(name string, data []byte, perm fs.FileMode) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(name)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = chmod(f, perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// chmod asks only when there is something to change: a squashed root on NFS
// may not chmod, and need not.
func chmod(f *os.File, perm fs.FileMode) error {
	info, err := f.Stat()
	if err != nil || info.Mode().Perm() == perm.Perm() {
		return err
	}
	return f.Chmod(perm)
}

// SyncDir makes the names in a directory survive a crash. File systems that
// cannot sync a directory (EINVAL, ENOTSUP) write names through by themselves.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// sameFile reports whether two names lead to one file.
func sameFile(a, b string) bool {
	ia, err1 := os.Lstat(a)
	ib, err2 := os.Lstat(b)
	return err1 == nil && err2 == nil && os.SameFile(ia, ib)
}
