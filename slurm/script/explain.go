package script

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
)

// Explain is a rendered script whose directives say where they come from, in a
// comment behind them or, where a line would be longer than 100 columns, above
// them. sbatch of 22.05, 24.11 and 26.05 ends a directive at a # after a blank,
// so that it is the same job. origin gives "" for nothing to say; component -1
// is what tp itself adds.
func Explain(text string, r *slurm.Request, origin func(component int, o slurm.Option) string) (string, error) {
	var plain, explained strings.Builder
	directives(&plain, r)
	each(r, func(component int, o slurm.Option, line string) {
		why := strings.Join(strings.Fields(strings.Map(printable, origin(component, o))), " ")
		switch {
		case why == "":
			explained.WriteString(line + "\n")
		case utf8.RuneCountInString(line) <= column-2 && column+2+utf8.RuneCountInString(why) <= width:
			fmt.Fprintf(&explained, "%-*s# %s\n", column, line, why)
		case utf8.RuneCountInString(line+why)+4 <= width:
			explained.WriteString(line + "  # " + why + "\n")
		default:
			explained.WriteString("# " + why + ":\n" + line + "\n")
		}
	})
	before, after, ok := strings.Cut(text, plain.String())
	if !ok {
		return "", fmt.Errorf("the script does not have the directives of its request")
	}
	return before + explained.String() + after, nil
}

func printable(r rune) rune {
	if r == '\\' || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
		return '?'
	}
	return r
}

const (
	column = 50  // where comments begin, behind most directives
	width  = 100 // of a terminal that people read scripts in
)
