package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/ui"
)

// finding is one line of a check; ok is false where something does not work.
type finding struct {
	OK bool `json:"ok"`
	site.Finding
}

func found(level site.Level, topic, fix, format string, args ...any) site.Finding {
	return site.Finding{Level: level, Topic: topic, What: fmt.Sprintf(format, args...), Fix: fix}
}

var marks = map[site.Level]struct {
	text  string
	style ui.Style
}{
	site.Good: {"ok  ", ui.Green}, site.Note: {"note", ui.Faint}, site.Warn: {"warn", ui.Yellow}, site.Bad: {"FAIL", ui.Red},
}

// findings prints a check as one table; one that is not ok makes the command
// fail.
func (a *app) findings(list []site.Finding) error {
	bad, width := 0, 0
	var document []finding
	for i, f := range list {
		if f.Level == site.Bad {
			bad++
		}
		document = append(document, finding{f.Level != site.Bad, f})
		list[i].Topic = ui.Clean(f.Topic)
		width = max(width, ui.Width(list[i].Topic))
	}
	if a.cli.JSON {
		if err := a.printJSON(document); err != nil {
			return err
		}
	} else {
		for _, f := range list {
			a.printFinding(f, width)
		}
	}
	if bad > 0 {
		return fault.New(fault.Usage, "%d of %d checks failed", bad, len(list))
	}
	return nil
}

func (a *app) printFinding(f site.Finding, width int) {
	mark := marks[f.Level]
	what := f.What
	if f.Where != "" {
		what = f.Where + ": " + what
	}
	lines := strings.Split(ui.CleanLines(what), "\n")
	if f.Fix != "" {
		lines = append(lines, "→ "+ui.Clean(f.Fix))
	}
	out := ui.Wrap(a.Out, a.Width, 8+width)
	for i, line := range lines {
		if i == 0 {
			fmt.Fprintf(out, "%s  %s  %s\n", a.Paint(mark.style, mark.text), ui.Pad(f.Topic, width), line)
		} else {
			fmt.Fprintln(out, strings.Repeat(" ", 8+width)+strings.TrimSpace(line))
		}
	}
}

// troubles leaves out what is well.
func troubles(list []site.Finding) []site.Finding {
	return slices.DeleteFunc(list, func(f site.Finding) bool { return f.Level == site.Good })
}
