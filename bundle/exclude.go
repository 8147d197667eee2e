package bundle

import (
	"path"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// sharedExclude is never packed: results, caches, environments and raw data
// that a lab keeps beside its code, in the syntax of .gitignore.
var sharedExclude = []string{
	".git", "outputs/", "hf_export/", "wandb/", "/datasets/*/raw/", "/datasets/*/data/",
	"__pycache__/", "*.pyc", ".ipynb_checkpoints/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/",
	".venv/", "venv/", ".env/", // a directory .env is a virtual environment, a file .env a credential
	"*.pdf",
}

// excluder matches paths against patterns of .gitignore, without negation: a
// name matches at every depth, a pattern with a slash from the root, a trailing
// slash only directories, ** any number of directories.
type excluder struct {
	patterns []pattern
	dirs     map[string]verdict // of directories asked about before
}

type pattern struct {
	text     string
	parts    []string
	dirOnly  bool
	anchored bool
}

// verdict says which directory or file a path is excluded with, and why.
type verdict struct{ at, why string }

func newExcluder(own []string) (*excluder, error) {
	x := &excluder{dirs: map[string]verdict{".": {}}}
	for _, text := range append(append([]string{}, sharedExclude...), own...) {
		p := pattern{text: text}
		text, p.dirOnly = strings.CutSuffix(text, "/")
		text, p.anchored = strings.CutPrefix(text, "/")
		p.parts = strings.Split(text, "/")
		p.anchored = p.anchored || len(p.parts) > 1
		for _, part := range p.parts {
			if _, err := path.Match(part, ""); err != nil || part == "" || part[0] == '!' || part == "." || part == ".." {
				return nil, fault.New(fault.Usage, "exclude pattern %q: want a name, a path or a glob without negation", p.text)
			}
		}
		x.patterns = append(x.patterns, p)
	}
	return x, nil
}

// file is the verdict about a file; at is "" if it is packed.
func (x *excluder) file(p string) verdict {
	if v := x.dir(path.Dir(p)); v.at != "" {
		return v
	}
	return x.match(p, false)
}

func (x *excluder) dir(p string) verdict {
	if v, ok := x.dirs[p]; ok {
		return v
	}
	v := x.dir(path.Dir(p))
	if v.at == "" {
		v = x.match(p, true)
	}
	x.dirs[p] = v
	return v
}

func (x *excluder) match(p string, isDir bool) verdict {
	base := path.Base(p)
	for i := range x.patterns {
		pat := &x.patterns[i]
		if pat.dirOnly && !isDir {
			continue
		}
		if !pat.anchored && globMatch(pat.parts[0], base) || pat.anchored && matchParts(pat.parts, strings.Split(p, "/")) {
			if isDir {
				p += "/"
			}
			return verdict{p, "excluded by " + pat.text}
		}
	}
	return verdict{}
}

// globMatch is path.Match with a shortcut for plain names and *.ext.
func globMatch(glob, name string) bool {
	if !strings.ContainsAny(glob, `*?[\`) {
		return glob == name
	}
	if rest := glob[1:]; glob[0] == '*' && !strings.ContainsAny(rest, `*?[\`) {
		return strings.HasSuffix(name, rest)
	}
	ok, _ := path.Match(glob, name)
	return ok
}

func matchParts(parts, names []string) bool {
	for len(parts) > 0 {
		if parts[0] == "**" {
			for i := range len(names) + 1 {
				if matchParts(parts[1:], names[i:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 || !globMatch(parts[0], names[0]) {
			return false
		}
		parts, names = parts[1:], names[1:]
	}
	return len(names) == 0
}
