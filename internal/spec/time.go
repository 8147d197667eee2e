package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Unlimited is the time limit without end; slurm.Unlimited has the same value.
const Unlimited = -1

// maxMinutes bounds a time limit at ten years. Slurm keeps minutes in 32 bits
// and gives the top values other meanings; nobody means a decade.
const maxMinutes = 10 * 366 * 24 * 60

var timeUnits = regexp.MustCompile(`^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$`)

// ParseTime reads a time limit and returns whole minutes, rounded up, for
// Slurm counts in minutes; [Unlimited] for UNLIMITED.
//
//	4h  90m  1h30m  90s  1d12h     units, largest first
//	D-HH  D-HH:MM  D-HH:MM:SS     as in sbatch(1)
//	HH:MM:SS                      as in sbatch(1)
//	90                            minutes, as in sbatch(1)
//
// Two forms of sbatch are refused. H:MM, because sbatch reads 1:30 as a minute
// and a half while people mean an hour and a half; and 0, which Slurm takes as
// no limit at all: that has to be spelled out.
func ParseTime(text string) (int, error) {
	bad := func(format string, args ...any) (int, error) {
		return 0, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	const forms = "expected 4h, 90m, 1h30m, D-HH:MM:SS, HH:MM:SS or UNLIMITED"
	switch strings.ToUpper(text) {
	case "UNLIMITED":
		return Unlimited, nil
	case "INFINITE", "NONE":
		return bad("no limit is written UNLIMITED")
	case "":
		return bad(forms)
	}
	if strings.HasPrefix(text, "-") {
		return bad("a time limit is not negative; no limit is written UNLIMITED")
	}
	sec, ok := unitSeconds(text)
	if !ok {
		if h, m, two := strings.Cut(text, ":"); two && isCount(h) && isCount(m) {
			return bad("ambiguous: write %sh%sm for hours and minutes, or %sm%ss for minutes and seconds, which is what sbatch reads", h, m, h, m)
		}
		sec, ok = clockSeconds(text)
	}
	switch {
	case !ok:
		return bad(forms)
	case sec == 0:
		return bad("0 would mean no limit to Slurm; write UNLIMITED if that is meant")
	case sec > maxMinutes*60:
		return bad("more than ten years; write UNLIMITED if no limit is meant")
	}
	return (sec + 59) / 60, nil
}

// unitSeconds reads 1d2h3m4s and bare minutes.
func unitSeconds(text string) (sec int, ok bool) {
	if isCount(text) {
		text += "m"
	}
	part := timeUnits.FindStringSubmatch(text)
	if part == nil {
		return 0, false
	}
	for i, unit := range []int{86400, 3600, 60, 1} {
		n, ok := count(part[i+1])
		if !ok {
			return 0, false
		}
		sec += n * unit
	}
	return sec, true
}

// clockSeconds reads [D-]HH[:MM[:SS]]; without days all three fields are needed.
func clockSeconds(text string) (sec int, ok bool) {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	field := strings.Split(clock, ":")
	if len(field) > 3 || (!hasDays && len(field) != 3) {
		return 0, false
	}
	d, ok := count(days)
	if !ok || days == "" {
		return 0, false
	}
	sec = d * 86400
	for i, unit := range []int{3600, 60, 1} {
		if i >= len(field) {
			break
		}
		n, ok := count(field[i])
		if !ok || field[i] == "" || (i > 0 && n > 59) || (i == 0 && hasDays && n > 23) {
			return 0, false
		}
		sec += n * unit
	}
	return sec, true
}

func isCount(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// count reads digits; the empty text is 0, and nine digits are enough for any
// field without an overflow after multiplication.
func count(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	if !isCount(s) || len(s) > 9 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
