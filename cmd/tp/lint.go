package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/script"
)

type lintCmd struct {
	Files []string `arg:"" name:"FILE" help:"Batch scripts; - for standard input."`
}

// linted is one file of what tp lint --json prints.
type linted struct {
	File     string           `json:"file"`
	Findings []script.Finding `json:"findings"`
}

// Run looks at anybody's batch script: it asks no cluster and needs no lab.
func (c *lintCmd) Run(ctx context.Context, a *app) error {
	var out []linted
	total := 0
	for _, name := range c.Files {
		text, err := readScript(name, a.In)
		if err != nil {
			return err
		}
		found := script.Lint(text)
		if found == nil {
			found = []script.Finding{}
		}
		for i, f := range found {
			if name != "-" {
				found[i].Fix = strings.ReplaceAll(f.Fix, "FILE", shell.Quote(name))
			}
			if !f.Note {
				total++
			}
		}
		if len(found) == 0 {
			a.talk("%s: nothing found", name)
		}
		out = append(out, linted{name, found})
	}
	if a.cli.JSON {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		for _, l := range out {
			for _, f := range l.Findings {
				fmt.Fprintf(a.Out, "%s:%d:%d: %s: %s\n  → %s\n", ui.Clean(l.File), f.Line, f.Column, code(f), ui.Clean(f.Found), ui.Clean(f.Fix))
			}
		}
	}
	switch total {
	case 0:
		return nil
	case 1:
		return fault.New(fault.Usage, "1 finding")
	}
	return fault.New(fault.Usage, "%d findings", total)
}

// code says of a note that it is one: notes make nothing fail.
func code(f script.Finding) string {
	if f.Note {
		return "note: " + f.Code
	}
	return f.Code
}

// readScript reads a little more than Slurm takes, so that Lint can say so.
func readScript(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, fault.New(fault.Usage, "%w", err)
		}
		if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			f.Close()
			return nil, fault.New(fault.Usage, "%s is no regular file", name).WithHint("tp lint - <%s", name)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, slurm.MaxScript+1))
	var path *os.PathError
	if errors.As(err, &path) { // a directory
		return nil, fault.New(fault.Usage, "%w", err)
	}
	return text, err
}
