package ui

import (
	"fmt"
	"io"
	"strings"
)

// Table writes rows in columns aligned by display width, each line after
// indent. Nothing is cut. Cells are foreign text and are made safe.
func Table(w io.Writer, indent string, rows [][]string) {
	rows = cleanRows(rows)
	widths := measure(rows)
	for _, row := range rows {
		var line strings.Builder
		for col, text := range row {
			line.WriteString(Pad(text, widths[col]+gap))
		}
		fmt.Fprintln(w, strings.TrimRight(indent+line.String(), " "))
	}
}

// Grid is a table for a terminal: with a head, right-aligned and styled
// columns, and cut to the terminal's width. Cells are foreign text and are
// made safe.
type Grid struct {
	Head  []string
	Rows  [][]string
	Right []bool // columns aligned to the right
	// Style may give a cell a style; row -1 is the head.
	Style func(row, col int, text string) Style
}

// Add appends a row; values are printed with %v.
func (g *Grid) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	g.Rows = append(g.Rows, row)
}

const (
	gap       = 2 // blanks between columns
	minColumn = 6 // a column is not cut below this as long as another is wider
)

// Print writes the grid to s.Out. On a terminal the widest columns are cut
// until a row fits; elsewhere nothing is cut, so that grep finds everything.
func (g *Grid) Print(s *Streams) error {
	rows, first := g.Rows, 0
	if len(g.Head) > 0 {
		rows, first = append([][]string{g.Head}, rows...), -1
	}
	rows = cleanRows(rows)
	widths := squeeze(measure(rows), s.Width)
	var b strings.Builder
	for i, row := range rows {
		line := g.line(s, i+first, row, widths)
		if s.Width > 0 {
			line = Cut(line, s.Width)
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(s.Out, b.String())
	return err
}

func (g *Grid) line(s *Streams, row int, cells []string, widths []int) string {
	var line strings.Builder
	for col, text := range cells {
		cell := Pad(text, widths[col])
		if col < len(g.Right) && g.Right[col] {
			cell = PadLeft(text, widths[col])
		}
		if col == len(cells)-1 {
			cell = strings.TrimRight(cell, " ")
		}
		if g.Style != nil {
			cell = s.Paint(g.Style(row, col, text), cell)
		}
		if col > 0 {
			line.WriteString(strings.Repeat(" ", gap))
		}
		line.WriteString(cell)
	}
	return strings.TrimRight(line.String(), " ")
}

func cleanRows(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = make([]string, len(row))
		for col, text := range row {
			out[i][col] = Clean(text)
		}
	}
	return out
}

// measure is the width of each column.
func measure(rows [][]string) []int {
	var w []int
	for _, row := range rows {
		for col, text := range row {
			if col == len(w) {
				w = append(w, 0)
			}
			w[col] = max(w[col], Width(text))
		}
	}
	return w
}

// squeeze takes from the widest column until all fit into width, 0 for any.
func squeeze(w []int, width int) []int {
	total := gap * (len(w) - 1)
	for _, n := range w {
		total += n
	}
	for ; width > 0 && total > width; total-- {
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
	}
	return w
}
