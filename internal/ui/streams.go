// Package ui is how commands talk to people: streams with what is known about
// them, text made safe and measured, a table, one line of progress, a question.
// It writes nothing by itself; importing it has no effect.
//
//	s := ui.Standard()
//	fmt.Fprintln(s.Out, result)      // stdout is the result
//	s.Progress().Set("staging 3/7")  // stderr is talk
//	ok, err := s.Confirm("submit?")
package ui

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// Streams are a process's streams. Core packages never see them.
type Streams struct {
	In       io.Reader
	Out      io.Writer
	Err      io.Writer
	InTTY    bool
	OutTTY   bool
	ErrTTY   bool
	Color    bool // whether Out may carry colour
	ErrColor bool // whether Err may
	Dumb     bool // TERM=dumb or unset: no cursor movement, though it is a terminal
	Width    int  // columns of the terminal; 0 when Out is none: nothing is cut
	ErrWidth int  // columns where Err is a terminal, likewise
	Now      func() time.Time

	lines *bufio.Reader // over In; keeps what was read ahead between questions
}

// Standard are the streams of this process.
func Standard() *Streams {
	s := &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now}
	s.InTTY, s.OutTTY, s.ErrTTY = isTTY(os.Stdin), isTTY(os.Stdout), isTTY(os.Stderr)
	s.settle(os.Getenv)
	if s.OutTTY {
		s.Width = width(os.Stdout, os.Getenv)
	}
	if s.ErrTTY {
		s.ErrWidth = width(os.Stderr, os.Getenv)
	}
	return s
}

// Test gives streams without a terminal, and what was written to them.
func Test(in string) (s *Streams, out, err *bytes.Buffer) {
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	return &Streams{In: strings.NewReader(in), Out: out, Err: err, Now: time.Now}, out, err
}

func isTTY(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// settle decides on colour: NO_COLOR (no-color.org) beats CLICOLOR_FORCE, which
// beats everything else; then it takes a terminal that is not dumb, and
// CLICOLOR=0 says no (bixense.com/clicolors).
func (s *Streams) settle(getenv func(string) string) {
	t := getenv("TERM")
	s.Dumb = t == "dumb" || t == ""
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		s.Color, s.ErrColor = false, false
	case force != "" && force != "0":
		s.Color, s.ErrColor = true, true
	case s.Dumb || getenv("CLICOLOR") == "0":
		s.Color, s.ErrColor = false, false
	default:
		s.Color, s.ErrColor = s.OutTTY, s.ErrTTY
	}
}

// width of the terminal; COLUMNS where it does not tell, 80 where nobody does.
func width(f *os.File, getenv func(string) string) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	if w, err := strconv.Atoi(getenv("COLUMNS")); err == nil && w > 0 && w < 10000 {
		return w
	}
	return 80
}

// Style is an SGR attribute (ECMA-48); only the eight basic colours, which
// follow the user's own palette.
type Style string

// Styles.
const (
	Bold   Style = "1"
	Faint  Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
)

// Paint styles a text for Out; without colour the text stays as it is.
func (s *Streams) Paint(style Style, text string) string { return paint(s.Color, style, text) }

// PaintErr is Paint for Err.
func (s *Streams) PaintErr(style Style, text string) string { return paint(s.ErrColor, style, text) }

func paint(on bool, style Style, text string) string {
	if !on || style == "" || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
