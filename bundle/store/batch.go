package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// syncWidth is how many objects are on their way to the disk at once. Those who
// ask together share a commit of the file system's journal; more than this only
// pile up in front of a slow disk.
const syncWidth = 16

// writeSize is how much is written at once. A write of many MiB makes Linux take
// huge pages for its cache, which are rarely at hand: 4 to 7 times the CPU time
// (ext4, Linux 6.18, in a virtual machine).
const writeSize = 512 << 10

// Batch writes many objects while the disk catches up behind: a Put waits for
// the page cache only, and Wait for everything.
//
// Each object is synced under a hidden name before it gets its own, so that
// neither a kill nor a crash leaves a visible one half-written. What a crash
// before the end of Wait can lose is names, whole ones: Wait syncs the
// directories last, each once.
type Batch struct {
	dir   *Dir
	group errgroup.Group

	mu   sync.Mutex
	dirs map[string]bool // fan-out directories with new names
	err  error           // of an object that did not get to the disk
}

// Batch begins a batch. Its methods may be called from several goroutines.
func (d *Dir) Batch() *Batch {
	b := &Batch{dir: d, dirs: map[string]bool{}}
	b.group.SetLimit(syncWidth)
	return b
}

// Put is [Store.Put], but the object is visible and durable after Wait only.
// The body may be used again at once.
func (b *Batch) Put(ctx context.Context, name string, body []byte) error {
	if err := errors.Join(checkName(name), ctx.Err(), b.failed()); err != nil {
		return err
	}
	if len(body) > MaxObject {
		return fmt.Errorf("object %s has %d bytes, more than %d", name, len(body), MaxObject)
	}
	target := b.dir.path(name)
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	if err := b.makeDir(filepath.Dir(target)); err != nil {
		return b.dir.errorf(err)
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".tmp-*") // mode 0600
	if err != nil {
		return b.dir.errorf(err)
	}
	for part := range slices.Chunk(body, writeSize) {
		if _, err := f.Write(part); err != nil {
			return b.dir.errorf(errors.Join(err, f.Close(), os.Remove(f.Name())))
		}
	}
	b.group.Go(func() error {
		err := publish(f, target)
		b.fail(err)
		return err
	})
	return nil
}

// makeDir makes a fan-out directory, once per batch.
func (b *Batch) makeDir(dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirs[dir] {
		return nil
	}
	b.dirs[dir] = true
	return os.MkdirAll(dir, 0o700)
}

func (b *Batch) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = b.dir.errorf(err)
	}
}

func (b *Batch) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Wait returns when all objects are durable, or else the first error: then the
// others are durable all the same.
func (b *Batch) Wait() error {
	_ = b.group.Wait() // b.err is the first of its errors
	if len(b.dirs) == 0 {
		return b.err
	}
	var group errgroup.Group
	group.SetLimit(statWidth)
	for dir := range b.dirs {
		group.Go(func() error { return syncDir(dir) })
	}
	group.Go(func() error { return syncDir(b.dir.root) }) // has the names of new fan-out directories
	return errors.Join(b.err, b.dir.errorf(group.Wait()))
}

// publish syncs and renames: two writers of one name leave one whole object,
// and both are right.
func publish(f *os.File, target string) error {
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
