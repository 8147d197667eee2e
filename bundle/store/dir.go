package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// statWidth is how many metadata calls are under way at once: on a network
// file system each one is a round trip.
const statWidth = 32

// Dir is a store in a directory that all nodes see. Directories have mode 0700
// and files 0600.
type Dir struct {
	root string
}

// NewDir makes a store in the absolute path root, which [Dir.Put] creates.
func NewDir(root string) (*Dir, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("object store: %q is not an absolute path", root)
	}
	return &Dir{root: filepath.Clean(root)}, nil
}

// Path is where an object lies below the root of a directory store: in one of
// the directories named by the first two characters, for some file systems are
// slow with 100,000 entries in one. bundle/fetch.sh knows this rule too.
func Path(name string) string { return name[:2] + "/" + name }

func (d *Dir) Identity() string { return "dir:" + d.root }
func (d *Dir) String() string   { return d.root }

func (d *Dir) path(name string) string { return d.root + "/" + Path(name) }

// Put is a [Batch] of one.
func (d *Dir) Put(ctx context.Context, name string, body []byte) error {
	b := d.Batch()
	return errors.Join(b.Put(ctx, name, body), b.Wait())
}

func (d *Dir) Get(_ context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, d.errorf(err)
	}
	return f, nil
}

func (d *Dir) Has(ctx context.Context, names []string) ([]bool, error) {
	return hasEach(ctx, names, func(_ context.Context, name string) (bool, error) {
		_, err := os.Lstat(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, d.errorf(err)
	})
}

// hasEach asks about every name, [statWidth] at a time.
func hasEach(ctx context.Context, names []string, has func(context.Context, string) (bool, error)) ([]bool, error) {
	found := make([]bool, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statWidth)
	for i, name := range names {
		if err := checkName(name); err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			found[i], err = has(ctx, name)
			return err
		})
	}
	return found, group.Wait()
}

func (d *Dir) List(ctx context.Context, prefix string) ([]Object, error) {
	entries, err := os.ReadDir(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.errorf(err)
	}
	var mu sync.Mutex
	var objects []Object
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statWidth)
	for _, e := range entries {
		fan := e.Name()
		if !e.IsDir() || len(fan) != 2 || !(strings.HasPrefix(fan, prefix) || strings.HasPrefix(prefix, fan)) {
			continue
		}
		group.Go(func() error {
			found, err := d.listFan(ctx, fan, prefix)
			mu.Lock()
			defer mu.Unlock()
			objects = append(objects, found...)
			return err
		})
	}
	err = group.Wait()
	return objects, err
}

func (d *Dir) listFan(ctx context.Context, fan, prefix string) ([]Object, error) {
	entries, err := os.ReadDir(filepath.Join(d.root, fan))
	if err != nil {
		return nil, d.errorf(err)
	}
	var objects []Object
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := e.Name()
		if !e.Type().IsRegular() || !strings.HasPrefix(name, prefix) || !strings.HasPrefix(name, fan) || checkName(name) != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			return nil, d.errorf(err)
		}
		objects = append(objects, Object{Name: name, Size: info.Size(), ModTime: info.ModTime()})
	}
	return objects, nil
}

func (d *Dir) Delete(_ context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.errorf(err)
}

// Fetch needs no permit: the nodes mount the directory.
func (d *Dir) Fetch(_ context.Context, names []string, _ time.Duration) (Access, error) {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return Access{}, err
		}
	}
	return Access{Kind: KindDir, Dir: d.root}, nil
}

func (d *Dir) errorf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("object store %s: %w: %w", d.root, ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("object store %s: %w: %w", d.root, ErrDenied, err)
	}
	return fmt.Errorf("object store %s: %w", d.root, err)
}
