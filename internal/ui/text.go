package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// MaxClean bounds one foreign text on the screen, in bytes.
const MaxClean = 4096

// Clean makes foreign text safe to print on one line: blanks for tabs and line
// breaks, a visible \x1b for control characters, and for characters that
// reorder or hide text (bidirectional controls, tags) a visible \u202e. Text
// over [MaxClean] bytes is cut and ends in "…". The joiner U+200D stays, for
// emoji need it.
func Clean(s string) string { return clean(s, false) }

// CleanLines is Clean for text of several lines.
func CleanLines(s string) string { return clean(s, true) }

func clean(s string, keepLines bool) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if b.Len() >= MaxClean {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' && keepLines:
			b.WriteByte('\n')
		case r == '\n', r == '\t', r == '\u2028', r == '\u2029':
			b.WriteByte(' ')
		case r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == utf8.RuneError:
			b.WriteRune(r)
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case hides(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isPlain spares the common case a copy.
func isPlain(s string) bool {
	if len(s) > MaxClean {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hides: format characters change how other characters look. Joiners belong to
// scripts and emoji.
func hides(r rune) bool {
	return unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c' && r != '\u00ad'
}

// Width is the number of terminal columns, by grapheme clusters; escape
// sequences of our own count nothing.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut shortens s to at most width columns at the border of a grapheme cluster
// and shows with "…" that something is missing.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// Pad fills s with blanks to width columns; longer text is cut.
func Pad(s string, width int) string {
	s = Cut(s, width)
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// PadLeft is Pad for numbers.
func PadLeft(s string, width int) string {
	s = Cut(s, width)
	return strings.Repeat(" ", max(0, width-Width(s))) + s
}
