package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/recipes"
)

//go:generate go test -run TestReference -update .

// TestReference writes docs/reference.md from the command line's own model, or
// says that it is out of date.
func TestReference(t *testing.T) {
	const path = "../../docs/reference.md"
	streams, _, _ := ui.Test("")
	var c cli
	root := newParser(&c, streams, func(int) {}).Model.Node
	var b bytes.Buffer
	b.WriteString("# Reference\n\nWritten from the code by `go generate ./cmd/tp`; a test keeps it current. `tp COMMAND --help` says the same.\n\n" +
		"stdout is the result and stderr is talk; `--json` makes stdout one document. Without a terminal nothing is ever asked.\n\n## For every command\n\n")
	flags(&b, root.Flags)
	job := jobFlagsOf(root)
	b.WriteString("\n## Flags of a job\n\nFor `tp submit`, `plan`, `render`, `validate` and `config show`. Where `[ROLE=]` stands, a value may be for one role: `--time train=8h`.\n\n")
	flags(&b, job)
	b.WriteString("\n## Commands\n\n| command | |\n|---|---|\n")
	leaves(root, func(n *kong.Node) {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", n.FullPath(), strings.ReplaceAll(n.FullPath(), " ", "-"), cell(n.Help))
	})
	leaves(root, func(n *kong.Node) {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n    %s\n", n.FullPath(), n.Help, synopsis(n))
		if len(n.Positional) > 0 {
			b.WriteString("\n| argument | |\n|---|---|\n")
			for _, p := range n.Positional {
				fmt.Fprintf(&b, "| `%s` | %s |\n", p.Summary(), cell(p.Help+byDefault(p)))
			}
		}
		own := slices.DeleteFunc(slices.Clone(n.Flags), func(f *kong.Flag) bool {
			return slices.ContainsFunc(job, func(j *kong.Flag) bool { return j.Name == f.Name && j.Help == f.Help })
		})
		if len(own) < len(n.Flags) {
			b.WriteString("\nTakes the [flags of a job](#flags-of-a-job).\n")
		}
		if len(own) > 0 {
			b.WriteString("\n")
			flags(&b, own)
		}
	})
	exitCodes(t, &b)
	documents(&b)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("docs/reference.md is not what the code says (%v): go generate ./cmd/tp", err)
	}
}

// leaves visits every command that runs, in the order of the struct.
func leaves(n *kong.Node, visit func(*kong.Node)) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		if child.Leaf() {
			visit(child)
		} else {
			leaves(child, visit)
		}
	}
}

// jobFlagsOf are those of render, which has no others.
func jobFlagsOf(root *kong.Node) (out []*kong.Flag) {
	leaves(root, func(n *kong.Node) {
		if n.Name == "render" {
			out = n.Flags
		}
	})
	return out
}

func synopsis(n *kong.Node) string {
	s := n.FullPath()
	for _, p := range n.Positional {
		s += " " + p.Summary()
	}
	if len(n.Flags) > 0 {
		s += " [flags]"
	}
	return s
}

func flags(b *bytes.Buffer, list []*kong.Flag) {
	b.WriteString("| flag | |\n|---|---|\n")
	for _, f := range list {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		switch {
		case f.IsBool() && f.Tag.Negatable != "":
			name = "--[no-]" + f.Name
		case !f.IsBool():
			name += "=" + strings.TrimSuffix(f.FormatPlaceHolder(), ",...")
		}
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(name, "|", `\|`), cell(f.Help+byDefault(f.Value)))
	}
}

func byDefault(v *kong.Value) string {
	if !v.HasDefault || v.IsBool() {
		return ""
	}
	return fmt.Sprintf(" (default `%s`)", v.Default)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// exitCodes prints the constants of internal/fault with their comments.
func exitCodes(t *testing.T, b *bytes.Buffer) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/fault/fault.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## Exit codes\n\n| code | name | meaning |\n|---|---|---|\n")
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		meaning := strings.TrimSpace(spec.Comment.Text())
		if meaning == "" {
			meaning = "done"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", spec.Values[0].(*ast.BasicLit).Value, spec.Names[0].Name, meaning)
		return true
	})
}

// documents lists what --json prints. Where a Go type is the document, its own
// tags are read.
func documents(b *bytes.Buffer) {
	b.WriteString("\n## JSON documents\n\nAn error, where the command printed no document before it: `error`, `exit_code`, and where there is one `gate` and `hint`.\n\n| command | document |\n|---|---|\n")
	for _, d := range []struct {
		command, shape string
		of             any
	}{
		{"tp submit", "", submission{}},
		{"tp plan", "", plan.Plan{}},
		{"tp plan, `fixed`", "", plan.Fixed{}},
		{"tp plan, `observed`", "", plan.Observed{}},
		{"tp status, tp job ls", "list of runs", ledger.Run{}},
		{"tp job status, tp job cancel", "", ledger.Run{}},
		{"a run's `attempts`", "list", ledger.Attempt{}},
		{"tp job why", "`run_id`, `state`, `gate`, `sentence`, `reason`", nil},
		{"tp methods", "list of recipes", recipes.Manifest{}},
		{"tp methods NAME", "", recipes.Manifest{}},
		{"tp recipe status", "list", lockRow{}},
		{"tp recipe upgrade", "`dry_run`, `locks`", nil},
		{"tp config show", "list of settings", plan.Setting{}},
		{"tp site check, tp doctor", "list of checks", finding{}},
		{"tp validate", "`experiment`, `valid`, `warnings`, `spec`", nil},
		{"tp init", "`root`, `name`", nil},
		{"tp new", "`experiment`, `dir`", nil},
		{"tp ls", "list: `experiment`, `recipe`, `lock`, `description`", nil},
		{"tp fleet ls", "list: `name`, `kind`, `url`, `reachable`, `transport`, `release`, `error`", nil},
		{"tp fleet show", "`fleet`, `info`, `series`, `partitions`, `nodes`, `reservations`", nil},
		{"tp tick", "`runs`, `open`, `settled`, `adopted`", nil},
		{"tp reindex", "`runs`", nil},
		{"tp version", "`version`", nil},
	} {
		shape := d.shape
		if d.of != nil {
			if shape != "" {
				shape += ": "
			}
			shape += "`" + strings.Join(jsonKeys(reflect.TypeOf(d.of)), "`, `") + "`"
		}
		fmt.Fprintf(b, "| %s | %s |\n", d.command, shape)
	}
	b.WriteString("\nTimes are RFC 3339. Fields may be added; none changes its meaning.\n")
}

func jsonKeys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			keys = append(keys, jsonKeys(f.Type)...)
		case name != "-" && f.IsExported():
			if name == "" {
				name = f.Name
			}
			keys = append(keys, name)
		}
	}
	return keys
}
