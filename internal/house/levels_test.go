// Package house holds the tests about the house itself: who may import whom,
// and that the words of the documents match the code.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tuneplane/tp/"

// levels reads the table of docs/design.md §3: a package imports lower levels
// only. A name like slurm/{rest,cli} stands for several.
func levels(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	note := regexp.MustCompile(`\([^)]*\)`)
	for _, m := range regexp.MustCompile(`(?m)^\| (\d) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1) {
		level, _ := strconv.Atoi(m[1])
		list, below, _ := strings.Cut(note.ReplaceAllString(m[2], ""), "; below them ")
		for name := range strings.SplitSeq(below, ", ") {
			if name != "" {
				out[name] = level - 1
			}
		}
		list = regexp.MustCompile(`(\S+)\{([^}]*)\}`).ReplaceAllStringFunc(list, func(group string) string {
			base, names, _ := strings.Cut(strings.TrimSuffix(group, "}"), "{")
			var all []string
			for _, n := range strings.Split(names, ",") {
				all = append(all, base+n)
			}
			return strings.Join(all, ", ")
		})
		for _, name := range strings.Split(list, ",") {
			out[strings.TrimSpace(name)] = level
		}
	}
	if len(out) < 20 {
		t.Fatalf("only %d packages in the table of docs/design.md", len(out))
	}
	return out
}

// standardOnly must not need anything but the standard library and this module.
var standardOnly = []string{"slurm", "slurm/wire", "slurm/rest", "slurm/cli", "slurm/script", "slurm/local", "slurm/connect", "gates", "internal/durable", "internal/spec", "internal/fault", "internal/shell"}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,Standard", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

func TestImportsGoDown(t *testing.T) {
	levels := levels(t)
	for path, p := range list(t) {
		name := strings.TrimPrefix(path, module)
		if strings.HasPrefix(name, "contrib/") || strings.HasSuffix(name, "test") || name == "internal/house" {
			continue // tools and suites may use everything
		}
		level, known := levels[name]
		if !known {
			t.Errorf("package %s has no level: add it to the table of docs/design.md §3", name)
			continue
		}
		for _, imp := range p.Imports {
			other, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if l, ok := levels[other]; ok && l >= level {
				t.Errorf("%s (level %d) imports %s (level %d): only lower levels may be imported", name, level, other, l)
			}
		}
	}
}

func TestCoreIsStandardLibraryOnly(t *testing.T) {
	all := list(t)
	for _, name := range standardOnly {
		p, ok := all[module+name]
		if !ok {
			t.Errorf("package %s is gone", name)
			continue
		}
		for _, dep := range p.Deps {
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") && !strings.HasPrefix(dep, module) {
				t.Errorf("%s depends on %s", name, dep)
			}
		}
	}
}
