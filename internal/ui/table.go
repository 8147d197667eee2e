package ui

import (
	"fmt"
	"io"
	"strings"
)

// Table prints rows in columns aligned by display width. Cells are foreign
// text and are made safe.
type Table struct {
	Head  []string
	Rows  [][]string
	Right []bool // columns aligned to the right
	// Style may give a cell a style; row -1 is the head.
	Style func(row, col int, text string) Style
}

// Add appends a row; values are printed with %v.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.Rows = append(t.Rows, row)
}

const (
	gap       = 2 // blanks between columns
	minColumn = 6 // a column is not cut below this as long as another is wider
)

// Print writes the table to s.Out. On a terminal the widest columns are cut
// until a row fits; elsewhere nothing is cut, so that grep finds everything.
func (t *Table) Print(s *Streams) error {
	_, err := io.WriteString(s.Out, t.text("", s.Width, s.Paint))
	return err
}

// Text is the table without colour, every line indented; nothing is cut.
func (t *Table) Text(indent string) string {
	return t.text(indent, 0, func(_ Style, text string) string { return text })
}

func (t *Table) text(indent string, width int, paint func(Style, string) string) string {
	rows := make([][]string, 0, len(t.Rows)+1)
	first := 0
	if len(t.Head) > 0 {
		rows, first = append(rows, cleanAll(t.Head)), -1
	}
	for _, r := range t.Rows {
		rows = append(rows, cleanAll(r))
	}
	widths := fit(rows, width)
	var b strings.Builder
	for i, row := range rows {
		var line strings.Builder
		for col, text := range row {
			cell := Pad(text, widths[col])
			if col < len(t.Right) && t.Right[col] {
				cell = PadLeft(text, widths[col])
			}
			if col == len(row)-1 {
				cell = strings.TrimRight(cell, " ")
			}
			if t.Style != nil {
				cell = paint(t.Style(i+first, col, text), cell)
			}
			if col > 0 {
				line.WriteString(strings.Repeat(" ", gap))
			}
			line.WriteString(cell)
		}
		text := strings.TrimRight(line.String(), " ")
		if width > 0 {
			text = Cut(text, width)
		}
		b.WriteString(indent + text + "\n")
	}
	return b.String()
}

func cleanAll(row []string) []string {
	out := make([]string, len(row))
	for i, c := range row {
		out[i] = Clean(c)
	}
	return out
}

// fit measures the columns and takes from the widest until they fit.
func fit(rows [][]string, width int) []int {
	var w []int
	for _, row := range rows {
		for col, text := range row {
			if col == len(w) {
				w = append(w, 0)
			}
			w[col] = max(w[col], Width(text))
		}
	}
	total := gap * (len(w) - 1)
	for _, n := range w {
		total += n
	}
	for width > 0 && total > width {
		widest := 0
		for i := range w {
			if w[i] > w[widest] {
				widest = i
			}
		}
		if w[widest] <= minColumn {
			break
		}
		w[widest]--
		total--
	}
	return w
}
