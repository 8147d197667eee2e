package site

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// basic is a TOML basic string. Go's ASCII quoting differs in \x, \a and \v,
// none of which a name of Slurm holds; they are replaced.
func basic(s string) string {
	return strconv.QuoteToASCII(line(s))
}

// quoted is the inside of a TOML list.
func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = basic(s)
	}
	return strings.Join(out, ", ")
}

// line keeps foreign text on one line and printable.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd {
			return '?'
		}
		return r
	}, s)
}

// nearest is a fix that names what was probably meant, else everything there is.
func nearest(what, name string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return fmt.Sprintf("%s %s, in this case of its letters", what, k)
		}
	}
	if near := fault.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "known: " + strings.Join(known[:min(len(known), 20)], ", ")
}

func filter[T any](list []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !keep(v) })
}
