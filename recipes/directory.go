package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/tuneplane/tp/internal/fault"
)

// What a directory of recipes may hold, so that no lab makes tp read for
// minutes: the built-in catalogue has 75 files, of 40 kB at most.
const (
	maxRecipeFile  = 1 << 20
	maxRecipeFiles = 2000
)

// With is the catalogue and the recipes of a directory beside it, in
// <framework>/<method>/recipe.toml. All of them are read and checked at once. A
// directory that is not there adds none. Its files may come from anybody: links
// and whatever is no regular file are refused, and so is a name that is taken.
// The origin says whose recipes they are.
func (c *Catalog) With(dir, origin string) (*Catalog, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular():
		return c, nil
	case err == nil && !info.IsDir():
		return nil, fault.New(fault.Usage, "%s is no directory of its own; recipes are not read through links", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	tree := root.FS() // root stays open: templates are read later
	names, err := survey(tree)
	if err != nil {
		return nil, fault.New(fault.Usage, "%s: %w", dir, err)
	}
	more := &Catalog{names: slices.Clone(c.names), places: maps.Clone(c.places), recipes: map[string]*Recipe{}}
	for _, name := range names {
		if old, taken := more.places[name]; taken {
			return nil, fault.New(fault.Usage, "%s: the name %s is taken (%s)", path.Join(dir, name), name, old.origin).
				WithHint("rename the directory, and name in its recipe.toml")
		}
		more.names = append(more.names, name)
		more.places[name] = place{tree, ".", origin}
		if _, err := more.read(name); err != nil {
			return nil, fault.New(fault.Usage, "%s: %w", dir, err)
		}
	}
	return more, nil
}

// survey lists the recipes of a tree. Only directories of a recipe, and the
// schemas and presets beside them, are looked at: what else lies there is
// nobody's business.
func survey(tree fs.FS) (names []string, err error) {
	frameworks, err := fs.ReadDir(tree, ".")
	if err != nil {
		return nil, err
	}
	left := maxRecipeFiles
	for _, framework := range frameworks {
		if framework.Type()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a symbolic link; recipes are directories", framework.Name())
		}
		if !framework.IsDir() {
			continue
		}
		entries, err := fs.ReadDir(tree, framework.Name())
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			dir := path.Join(framework.Name(), e.Name())
			_, err := fs.Stat(tree, dir+"/recipe.toml")
			isRecipe := !errors.Is(err, fs.ErrNotExist)
			if !isRecipe && e.Name() != "schema" && e.Name() != "presets" {
				continue
			}
			if err := plainFiles(tree, dir, &left); err != nil {
				return nil, err
			}
			if isRecipe {
				names = append(names, dir)
			}
		}
	}
	return names, nil
}

func plainFiles(tree fs.FS, dir string, left *int) error {
	return fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		switch *left--; {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		case info.Size() > maxRecipeFile:
			return fmt.Errorf("%s has %d bytes; a file of a recipe has %d at most", name, info.Size(), maxRecipeFile)
		case *left < 0:
			return fmt.Errorf("there are more than %d files of recipes", maxRecipeFiles)
		}
		return nil
	})
}
