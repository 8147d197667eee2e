package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
)

// Source says what to pack.
type Source struct {
	Root     string   // the lab; may be a sub-directory of a work tree, or outside of git
	Dirs     []string // packed directories or files, relative to Root; empty is all of Root
	Exclude  []string // more patterns, in the syntax of .gitignore without negation
	MaxBytes int64    // 0: [DefaultMaxBytes]
	MaxFiles int      // 0: [DefaultMaxFiles]
}

// Selection is what would be packed, as the file system has it now.
type Selection struct {
	Files     []File   // sorted by path; SHA256 is filled by [Digest]
	Untracked []string // packed files git does not track
	Deleted   []string // tracked files that are gone from the working tree: not packed
	Skipped   []Skip   // what git lists and the exclude list leaves out
	Nested    []string // repositories and submodules inside, packed with their own git listing
	Git       bool     // false: Root is outside of git, and a plain walk found the files
	Bytes     int64    // sum of the sizes

	root  string
	dirs  []string
	stats []stat // of Files
	taken time.Time
}

// Skip is a directory (with a trailing slash) or file that is left out.
type Skip struct {
	Path  string
	Why   string
	Files int
}

// Select lists what would be packed and refuses what must not be: files that
// are named like credentials, control characters in names, links that lead to
// nothing packed, devices, sockets and pipes, and more than the limits. It reads
// metadata only; a refusal is a [fault.Error] that names up to 20 files.
func Select(ctx context.Context, src Source) (*Selection, error) {
	root, err := filepath.Abs(src.Root)
	if err != nil {
		return nil, err
	}
	sel := &Selection{root: root, taken: time.Now()}
	if sel.dirs, err = packedDirs(root, src.Dirs); err != nil {
		return nil, err
	}
	exclude, err := newExcluder(src.Exclude)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, sel, exclude)
	if err != nil {
		return nil, err
	}
	found = sel.exclude(found, exclude)
	if limit := orDefault(src.MaxFiles, DefaultMaxFiles); len(found) > limit {
		return nil, tooMany(found, limit)
	}
	if err := sel.lstat(ctx, found); err != nil {
		return nil, err
	}
	if len(sel.Files) == 0 {
		return nil, fault.New(fault.Usage, "nothing to pack in %s under %s", strings.Join(sel.dirs, ", "), root).
			WithHint("see what git ignores there: git -C %s status --ignored", shell.Quote(root))
	}
	if limit := orDefault(src.MaxBytes, DefaultMaxBytes); sel.Bytes > limit {
		return nil, sel.tooLarge(limit)
	}
	return sel, sel.checkLinks()
}

// packedDirs cleans the list: no directory outside, none inside another.
func packedDirs(root string, dirs []string) ([]string, error) {
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	var clean []string
	for _, dir := range dirs {
		if !filepath.IsLocal(dir) {
			return nil, fault.New(fault.Usage, "packed directory %q is not inside %s", dir, root)
		}
		dir = path.Clean(dir)
		if _, err := os.Lstat(filepath.Join(root, dir)); err != nil {
			return nil, fault.New(fault.Usage, "packed directory %s: %w", dir, err)
		}
		clean = append(clean, dir)
	}
	slices.Sort(clean)
	var outer []string
	for _, dir := range clean {
		if !slices.ContainsFunc(outer, func(o string) bool { return within(o, dir) }) {
			outer = append(outer, dir)
		}
	}
	return outer, nil
}

// exclude drops what the patterns name and counts it per excluded directory.
// A directory with a pyvenv.cfg is a virtual environment whatever its name.
func (s *Selection) exclude(found []entry, exclude *excluder) []entry {
	for _, e := range found {
		if path.Base(e.path) == "pyvenv.cfg" && path.Dir(e.path) != "." {
			exclude.dirs[path.Dir(e.path)] = verdict{path.Dir(e.path) + "/", "virtual environment (pyvenv.cfg)"}
		}
	}
	at := map[string]int{}
	kept := found[:0]
	for _, e := range found {
		v := exclude.file(e.path)
		if v.at == "" && e.tag == tagSparse {
			if _, err := os.Lstat(s.root + "/" + e.path); errors.Is(err, fs.ErrNotExist) {
				v = verdict{e.path, "left out by sparse checkout"}
			}
		}
		if v.at == "" {
			kept = append(kept, e)
			continue
		}
		i, ok := at[v.at]
		if !ok {
			i = len(s.Skipped)
			at[v.at] = i
			s.Skipped = append(s.Skipped, Skip{Path: v.at, Why: v.why})
		}
		s.Skipped[i].Files++
	}
	return kept
}

// lstat asks for the metadata of all entries at once: on a network file system
// each question is a round trip.
func (s *Selection) lstat(ctx context.Context, found []entry) error {
	const width, chunk = 32, 64
	stats := make([]stat, len(found))
	errs := make([]error, len(found))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for from := 0; from < len(found); from += chunk {
		group.Go(func() error {
			for i := from; i < min(from+chunk, len(found)); i++ {
				stats[i], errs[i] = lstat(s.root + "/" + found[i].path)
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.Files = make([]File, 0, len(found))
	s.stats = make([]stat, 0, len(found))
	var credentials, special, control []string
	links := map[string]bool{}
	for i, e := range found {
		st, err := stats[i], errs[i]
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || behindLink(links, e.path) {
			s.Deleted = append(s.Deleted, e.path)
			continue
		}
		if err != nil {
			return fault.New(fault.Usage, "%w", &fs.PathError{Op: "lstat", Path: e.path, Err: err})
		}
		f := File{Path: e.path, Mode: modeFile, Size: st.size}
		switch st.mode & syscall.S_IFMT {
		case syscall.S_IFREG:
			if st.mode&0o100 != 0 {
				f.Mode = modeExec
			}
		case syscall.S_IFLNK:
			if f.Link, err = os.Readlink(s.root + "/" + e.path); err != nil {
				return fault.New(fault.Usage, "%w", err)
			}
			f.Mode, f.Size = modeLink, int64(len(f.Link))
			links[e.path] = true
		case syscall.S_IFDIR:
			// a tracked file whose place a directory has taken; git lists
			// what is in it
			s.Deleted = append(s.Deleted, e.path)
			continue
		default:
			special = append(special, fmt.Sprintf("%s (%s)", e.path, kind(st.mode)))
			continue
		}
		if shell.Check("name", e.path) != nil || shell.Check("link", f.Link) != nil {
			control = append(control, fmt.Sprintf("%q", e.path))
		}
		if credentialName(e.path) {
			credentials = append(credentials, e.path)
		}
		if e.tag == tagOther {
			s.Untracked = append(s.Untracked, e.path)
		}
		s.Files = append(s.Files, f)
		s.stats = append(s.stats, st)
		s.Bytes += f.Size
	}
	switch {
	case len(credentials) > 0:
		return refuse("files that look like credentials would be packed", credentials, credentialHint)
	case len(special) > 0:
		return refuse("only files and links can be packed", special, "remove them or list them in .gitignore")
	case len(control) > 0:
		return refuse("control characters in file names would be packed", control, "rename the files")
	}
	if i, ok := slices.BinarySearchFunc(s.Files, marker, func(f File, p string) int { return strings.Compare(f.Path, p) }); ok {
		return refuse("a name that tp uses itself would be packed", []string{s.Files[i].Path}, "remove the file")
	}
	return nil
}

// behindLink says whether a link has taken the place of a directory above p:
// git still lists the tracked files that were there.
func behindLink(links map[string]bool, p string) bool {
	if len(links) == 0 {
		return false
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if links[dir] {
			return true
		}
	}
	return false
}

func kind(mode uint32) string {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFIFO:
		return "named pipe"
	case syscall.S_IFSOCK:
		return "socket"
	}
	return "device"
}
