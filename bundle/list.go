package bundle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// entry is one path of a listing; tag is the letter of git ls-files -t.
type entry struct {
	path string
	tag  byte
}

const (
	tagTracked = 'H'
	tagSparse  = 'S' // skip-worktree: sparse checkout leaves it out
	tagOther   = '?'
)

// list finds the paths below the packed directories, sorted, each once.
func list(ctx context.Context, sel *Selection, exclude *excluder) ([]entry, error) {
	var found []entry
	sel.Git = true
	for repo, specs := range byRepository(sel.root, sel.dirs) {
		part, err := gitList(ctx, sel, repo, specs)
		if errors.Is(err, errNotGit) && repo == "." {
			sel.Git, sel.Nested, sel.Deleted = false, nil, nil // whatever was found in repositories inside
			return walk(ctx, sel, exclude)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	found = slices.CompactFunc(found, func(a, b entry) bool { return a.path == b.path }) // unmerged paths have three stages
	slices.Sort(sel.Nested)
	return found, nil
}

// byRepository groups the packed directories by the repository they are in,
// which is Root's or a nested one: git lists nothing beyond such a border.
func byRepository(root string, dirs []string) map[string][]string {
	groups := map[string][]string{}
	for _, dir := range dirs {
		repo := "."
		for i := 0; i <= len(dir); i++ {
			if i < len(dir) && dir[i] != '/' {
				continue
			}
			if _, err := os.Lstat(filepath.Join(root, dir[:i], ".git")); err == nil && i > 0 && dir != "." {
				repo = dir[:i]
			}
		}
		groups[repo] = append(groups[repo], relative(repo, dir))
	}
	return groups
}

func relative(dir, p string) string {
	if dir == "." {
		return p
	}
	if p == dir {
		return "."
	}
	return p[len(dir)+1:]
}

var errNotGit = errors.New("not a git repository")

// gitList lists one repository, and those nested in it by their own rules.
func gitList(ctx context.Context, sel *Selection, repo string, specs []string) ([]entry, error) {
	out, err := git(ctx, filepath.Join(sel.root, repo), append([]string{
		"ls-files", "-t", "-s", "-z", "--cached", "--others", "--exclude-standard", "--"}, specs...)...)
	if err != nil {
		return nil, err
	}
	if repo != "." {
		sel.Nested = append(sel.Nested, repo)
	}
	found := make([]entry, 0, bytes.Count(out, []byte{0}))
	for rest := string(out); rest != ""; {
		var line string
		line, rest, _ = strings.Cut(rest, "\x00")
		if len(line) < 3 {
			return nil, fault.New(fault.Internal, "git ls-files: cannot read its output in %s", repo)
		}
		tag, name, mode := line[0], line[2:], ""
		if tag != tagOther { // "H 100644 <object> <stage>\t<path>"
			var ok bool
			var facts string
			if facts, name, ok = strings.Cut(name, "\t"); !ok {
				return nil, fault.New(fault.Internal, "git ls-files: cannot read %q", line)
			}
			mode, _, _ = strings.Cut(facts, " ")
		}
		nested := mode == "160000" || strings.HasSuffix(name, "/")
		if name = strings.TrimSuffix(name, "/"); repo != "." {
			name = repo + "/" + name
		}
		if !localPath(name) {
			return nil, fault.New(fault.Internal, "git ls-files: %q leads out of %s", name, repo)
		}
		if !nested {
			found = append(found, entry{name, tag})
			continue
		}
		inside, err := gitListNested(ctx, sel, name, mode == "160000")
		if err != nil {
			return nil, err
		}
		found = append(found, inside...)
	}
	return found, nil
}

func gitListNested(ctx context.Context, sel *Selection, name string, submodule bool) ([]entry, error) {
	if slices.Contains(sel.Nested, name) { // unmerged submodules are listed thrice
		return nil, nil
	}
	if _, err := os.Lstat(filepath.Join(sel.root, name)); errors.Is(err, fs.ErrNotExist) {
		sel.Deleted = append(sel.Deleted, name)
		return nil, nil
	}
	if _, err := os.Lstat(filepath.Join(sel.root, name, ".git")); err != nil {
		if !submodule {
			return nil, fault.New(fault.Usage, "%s: git takes it for a repository, but it has no .git", name)
		}
		return nil, fault.New(fault.Usage, "submodule %s is not initialised, and its files would be missing", name).
			WithHint("git submodule update --init -- %s", name)
	}
	return gitList(ctx, sel, name, []string{"."})
}

// git runs git in a repository that may be hostile: nothing its configuration
// names is executed, no network is used, no lock taken.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager", "--literal-pathspecs"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}
	for _, name := range []string{"PATH", "HOME", "USER", "XDG_CONFIG_HOME", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	text := strings.TrimSpace(stderr.String())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		if !insideGit(dir) {
			return nil, errNotGit
		}
		return nil, fault.New(fault.Usage, "%s is in git, but there is no git in PATH", dir)
	case err != nil && strings.Contains(text, "not a git repository"):
		return nil, errNotGit
	case err != nil:
		return nil, fault.New(fault.Usage, "git %s in %s: %s", args[0], dir, orText(text, err.Error()))
	case strings.Contains(text, "could not open directory"):
		// a warning for git, a hole in the bundle for us
		return nil, fault.New(fault.Usage, "git %s in %s: %s", args[0], dir, text)
	}
	return stdout.Bytes(), nil
}

func orText(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

func insideGit(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// walk lists every file outside of git, except below excluded directories.
func walk(ctx context.Context, sel *Selection, exclude *excluder) ([]entry, error) {
	var found []entry
	for _, dir := range sel.dirs {
		err := filepath.WalkDir(filepath.Join(sel.root, dir), func(name string, d fs.DirEntry, err error) error {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			rel, err := filepath.Rel(sel.root, name)
			if err != nil || rel == "." {
				return err
			}
			if !d.IsDir() {
				found = append(found, entry{rel, tagTracked})
				return nil
			}
			if v := exclude.dir(rel); v.at != "" {
				sel.Skipped = append(sel.Skipped, Skip{Path: v.at, Why: v.why})
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, fault.New(fault.Usage, "%w", err)
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// Ignored lists what git ignores below the packed directories, directories with
// a trailing slash: the answer to "why is my file not there". Nested
// repositories are not asked.
func Ignored(ctx context.Context, src Source) ([]string, error) {
	dirs, err := packedDirs(src.Root, src.Dirs)
	if err != nil {
		return nil, err
	}
	out, err := git(ctx, src.Root, append([]string{
		"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--"}, dirs...)...)
	if errors.Is(err, errNotGit) {
		return nil, nil
	}
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}
