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
	parts    []glob
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
		for part := range strings.SplitSeq(text, "/") {
			if _, err := path.Match(part, ""); err != nil || part == "" || part[0] == '!' || part == "." || part == ".." {
				return nil, fault.New(fault.Usage, "exclude pattern %q: want a name, a path or a glob without negation", p.text)
			}
			p.parts = append(p.parts, newGlob(part))
		}
		p.anchored = p.anchored || len(p.parts) > 1
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
		if !pat.anchored && pat.parts[0].match(base) || pat.anchored && matchParts(pat.parts, strings.Split(p, "/")) {
			if isDir {
				p += "/"
			}
			return verdict{p, "excluded by " + pat.text}
		}
	}
	return verdict{}
}

// glob is a pattern for one name. Nearly all are a plain name or have one * at
// an end, and they are asked about every file: those kinds are told beforehand.
type glob struct {
	text string // what is compared, without the * of prefix and suffix
	kind globKind
}

type globKind int

const (
	globName globKind = iota
	globPrefix
	globSuffix
	globAny
)

func newGlob(text string) glob {
	const special = `*?[\`
	switch {
	case !strings.ContainsAny(text, special):
		return glob{text, globName}
	case text[0] == '*' && !strings.ContainsAny(text[1:], special):
		return glob{text[1:], globSuffix}
	case !strings.ContainsAny(text[:len(text)-1], special) && text[len(text)-1] == '*':
		return glob{text[:len(text)-1], globPrefix}
	}
	return glob{text, globAny}
}

func (g *glob) match(name string) bool {
	switch g.kind {
	case globName:
		return name == g.text
	case globPrefix:
		return strings.HasPrefix(name, g.text)
	case globSuffix:
		return strings.HasSuffix(name, g.text)
	}
	ok, _ := path.Match(g.text, name)
	return ok
}

func matchParts(parts []glob, names []string) bool {
	for len(parts) > 0 {
		if parts[0].text == "*" && parts[0].kind == globSuffix { // "**"
			for i := range len(names) + 1 {
				if matchParts(parts[1:], names[i:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 || !parts[0].match(names[0]) {
			return false
		}
		parts, names = parts[1:], names[1:]
	}
	return len(names) == 0
}
