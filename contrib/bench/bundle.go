package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/bundle/store"
)

// racy is how long files must have been left alone before their times are
// believed, see bundle/cache.go.
const racy = 2100 * time.Millisecond

// edits is how many files change between two submits of a busy day.
const edits = 20

// bundle packs both trees with everything there is.
func (b *bench) bundle(ctx context.Context) error {
	trees := []tree{usual, monorepo}
	if b.small {
		trees = []tree{small}
	}
	for _, t := range trees {
		root := filepath.Join(b.dir, "tree")
		if err := empty(root); err != nil {
			return err
		}
		fmt.Fprintf(b.out, "\nmaking a tree of %v ...\n", t)
		if err := t.write(ctx, root); err != nil {
			return err
		}
		if err := commit(ctx, root); err != nil {
			return err
		}
		if err := b.bundleTree(ctx, t, root); err != nil {
			return err
		}
	}
	return nil
}

// archive is where the pipes write; every run overwrites it.
const archive = "archive.tar.zst"

func (b *bench) bundleTree(ctx context.Context, t tree, root string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out := filepath.Join(b.dir, archive)
	size := func(r *row) func(string) error {
		return func(string) error {
			info, err := os.Stat(out)
			if err == nil {
				r.note = mb(info.Size())
			}
			return err
		}
	}
	rows := []*row{
		{name: "tar | zstd -T0", dir: root, argv: bash(`tar -cf - --exclude=./.git . | zstd -T0 -qf -o "$1"`, out), missing: need("tar", "zstd")},
		{name: "tar | zstd -T0, then sync of the file", dir: root, argv: bash(`tar -cf - --exclude=./.git . | zstd -T0 -qf -o "$1" && sync "$1"`, out), missing: need("tar", "zstd")},
		{name: "git archive | zstd -T0", dir: root, argv: bash(`git archive HEAD | zstd -T0 -qf -o "$1"`, out), missing: need("zstd")},
	}
	for _, r := range rows {
		r.before, r.after = b.settled, size(r)
	}
	rows = append(rows, b.restic(t, root)...)
	rows = append(rows, b.segments(t, root, self)...)
	return b.measure(ctx, &table{title: "bundle, " + t.String(), rows: rows})
}

// settled waits until what the last command wrote is on disk, which would slow
// down the next one. That waits for everybody who writes to the file system.
func (b *bench) settled(context.Context, int) error {
	if b.small {
		return nil
	}
	out, err := os.Open(b.dir)
	if err != nil {
		return err
	}
	defer out.Close()
	return syncfs(out)
}

// segments are tp's rows: the library in a process of its own, from git ls-files
// to durable objects in a directory.
func (b *bench) segments(t tree, root, self string) []*row {
	cold, warm := filepath.Join(b.dir, "cold"), filepath.Join(b.dir, "warm")
	argv := func(what, dir string) []string { return []string{self, stepArg, what, root, dir} }
	settle := func(ctx context.Context, run int) error { // what the last edits left is stored, and old
		time.Sleep(racy)
		if err := (&row{argv: argv(stepPut, warm)}).once(ctx, 0); err != nil {
			return err
		}
		return b.settled(ctx, run)
	}
	all := &row{name: "tp bundle, cold", argv: argv(stepPut, cold)}
	all.before = b.settled
	all.after = func(string) error {
		n, err := stored(cold)
		all.note = mb(n)
		// now, for ext4 is slow to give out inodes that were freed just before
		return errors.Join(err, os.RemoveAll(cold))
	}
	edited := &row{name: fmt.Sprintf("tp bundle, %d edits", edits), argv: argv(stepPut, warm)}
	var had int64
	edited.before = func(ctx context.Context, run int) (err error) {
		if had, err = stored(warm); err != nil {
			return err
		}
		return t.edit(root, edits, run)
	}
	edited.after = func(string) error {
		n, err := stored(warm)
		edited.note = mb(n-had) + " to send"
		return err
	}
	return []*row{all,
		{name: "tp bundle, unchanged", argv: argv(stepPut, warm), before: settle},
		{name: "tp bundle, unchanged, nothing stored (tp plan)", argv: argv(stepPlan, warm)},
		{name: "git ls-files (contained in these)", argv: []string{"git", "-C", root, "ls-files", "-tsz", "--cached", "--others", "--exclude-standard"}},
		edited,
	}
}

// restic is the tool that comes nearest: chunks, content-addressed.
func (b *bench) restic(t tree, root string) []*row {
	missing := need("restic")
	repo := func(name string) string { return filepath.Join(b.dir, "restic-"+name) }
	script := `RESTIC_PASSWORD=bench RESTIC_CACHE_DIR="$1-cache" restic -q -r "$1" `
	backup := script + `backup --exclude .git .`
	fresh := func(dir string) func(context.Context, int) error {
		return func(ctx context.Context, run int) error {
			if err := empty(dir + "-cache"); err != nil {
				return err
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			if err := (&row{argv: bash(script+"init", dir)}).once(ctx, 0); err != nil {
				return err
			}
			return b.settled(ctx, run)
		}
	}
	again := func(ctx context.Context, run int) error {
		if run == 0 {
			if err := fresh(repo("warm"))(ctx, run); err != nil {
				return err
			}
		}
		return (&row{dir: root, argv: bash(backup, repo("warm"))}).once(ctx, 0)
	}
	return []*row{
		{name: "restic, cold", dir: root, argv: bash(backup, repo("cold")), before: fresh(repo("cold")), missing: missing},
		{name: "restic, unchanged", dir: root, argv: bash(backup, repo("warm")), before: again, missing: missing},
		{name: fmt.Sprintf("restic, %d edits", edits), dir: root, argv: bash(backup, repo("warm")), missing: missing,
			before: func(_ context.Context, run int) error { return t.edit(root, edits, 100+run) }},
	}
}

// stored is the sum of the objects in a step's store, in bytes.
func stored(dir string) (sum int64, err error) {
	st, err := store.NewDir(filepath.Join(dir, "objects"))
	if err != nil {
		return 0, err
	}
	objects, err := st.List(context.Background(), "")
	for _, o := range objects {
		sum += o.Size
	}
	return sum, err
}

func mb(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }

// stepArg as the first argument makes this program do one step of tp, alone in
// its process, so that its CPU time can be had.
const (
	stepArg  = "step"
	stepPut  = "put"  // all of it
	stepPlan = "plan" // what is free of side effects
)

func step(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: bench %s put|plan ROOT DIR", stepArg)
	}
	ctx, root, dir := context.Background(), args[1], args[2]
	st, err := store.NewDir(filepath.Join(dir, "objects"))
	if err != nil {
		return err
	}
	cache := filepath.Join(dir, "cache")
	sel, err := bundle.Select(ctx, bundle.Source{Root: root})
	if err != nil {
		return err
	}
	man, err := bundle.Digest(ctx, sel, cache)
	if err != nil {
		return err
	}
	if _, err := bundle.Plan(ctx, man, st, cache); err != nil || args[0] == stepPlan {
		return err
	}
	_, err = bundle.Put(ctx, man, root, st, cache, nil)
	return err
}
