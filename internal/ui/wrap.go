package ui

import (
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Wrap breaks lines at blanks so that they fit into width columns, and indents
// what follows to hang; with a hang of 0 to the text behind a line's label, or a
// little more than the line itself. A width of 0, which is no terminal, changes
// nothing: grep wants whole lines. A word that does not fit stays whole. Only
// complete lines are written.
func Wrap(w io.Writer, width, hang int) io.Writer {
	if width <= 0 {
		return w
	}
	return &wrapper{w: w, width: width, hang: hang}
}

type wrapper struct {
	w           io.Writer
	width, hang int
	line        []byte // that has no end yet
}

func (w *wrapper) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		text := wrap(string(line), w.width, w.hang) + "\n"
		w.line = append([]byte{}, rest...)
		if _, err := io.WriteString(w.w, text); err != nil {
			return 0, err
		}
	}
}

// label is an indented word with two or more blanks behind it.
var label = regexp.MustCompile(`^ *(\S+ {2,})?`)

func wrap(line string, width, hang int) string {
	if Width(line) <= width {
		return line
	}
	if hang == 0 {
		if head := label.FindString(line); strings.TrimSpace(head) != "" {
			hang = Width(head)
		} else {
			hang = len(head) + 2
		}
	}
	if hang > width/2 {
		hang = 4
	}
	indent := strings.Repeat(" ", hang)
	var out []string
	// The head keeps its blanks: they are the layout.
	at := len(label.FindString(line))
	head, used := line[:at], Width(line[:at])
	begun := false
	for word := range strings.SplitSeq(line[at:], " ") {
		n := Width(word)
		switch {
		case !begun:
			head, used, begun = head+word, used+n, true
		case used+1+n <= width:
			head, used = head+" "+word, used+1+n
		default:
			out = append(out, strings.TrimRight(head, " "))
			head, used = indent+word, hang+n
		}
	}
	return strings.Join(append(out, head), "\n")
}
