// Package house holds the tests about the house itself: who may import whom,
// and that the words of the documents match the code.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/tuneplane/tp/"

// levels is the table of docs/design.md §3: a package imports lower levels only.
var levels = map[string]int{
	"internal/spec": 0, "internal/fault": 0, "internal/ui": 0, "internal/durable": 0, "internal/shell": 0, "slurm": 0, "bundle/store": 0, "internal/tomlfile": 0, "internal/version": 0,
	"slurm/rest": 1, "slurm/cli": 1, "slurm/script": 1, "bundle": 1, "recipes": 1, "internal/site": 1, "internal/lab": 1, "internal/secret": 1, "internal/ledger": 1,
	"slurm/connect": 2, "gates": 2,
	"internal/plan": 3,
	"internal/run":  4, "internal/track": 4,
	"internal/view": 6,
	"cmd/tp":        8,
}

// standardOnly must not need anything but the standard library and this module.
var standardOnly = []string{"slurm", "slurm/rest", "slurm/cli", "slurm/script", "slurm/connect", "gates", "internal/durable", "internal/spec", "internal/fault", "internal/shell"}

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
	for path, p := range list(t) {
		name := strings.TrimPrefix(path, module)
		if strings.HasPrefix(name, "contrib/") || strings.HasSuffix(name, "test") || name == "internal/house" {
			continue // tools and suites may use everything
		}
		level, known := levels[name]
		if !known {
			t.Errorf("package %s has no level: add it to docs/design.md §3 and to this table", name)
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
