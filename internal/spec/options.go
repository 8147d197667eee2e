package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Shares are the words of exclusive, with what sbatch calls them.
var Shares = []string{"exclusive", "user", "mcs", "topo", "oversubscribe"}

// ParseShare reads who else may use the nodes. "true" and "yes" are
// "exclusive", as a flag or key without more means.
func ParseShare(text string) (string, error) {
	switch {
	case text == "true" || text == "yes":
		return "exclusive", nil
	case slices.Contains(Shares, text):
		return text, nil
	}
	return "", fmt.Errorf("%q: expected %s", text, strings.Join(Shares, ", "))
}

// ParseSwitches reads N[@TIME] of sbatch --switches; TIME as in [ParseTime],
// 0 when it is left to the site.
func ParseSwitches(text string) (switches int, wait time.Duration, err error) {
	n, limit, timed := strings.Cut(text, "@")
	switches, ok := count(n)
	if !ok || switches == 0 || switches > 1<<16 {
		return 0, 0, fmt.Errorf("%q: expected a number of switches, N or N@TIME such as 1@30m", text)
	}
	if !timed {
		return switches, 0, nil
	}
	minutes, err := ParseTime(limit)
	if err != nil {
		return 0, 0, err
	}
	if minutes == Unlimited {
		return 0, 0, fmt.Errorf("%q: there is no waiting for switches without end", text)
	}
	return switches, time.Duration(minutes) * time.Minute, nil
}

// ParseSignal reads SIGNAL@SECONDS of sbatch --signal. Only USR1 and USR2 are
// taken, and only to the steps, where the roles run: the batch script is tp's
// own and does not wait for a warning, and other signals end a role.
func ParseSignal(text string) (name string, before time.Duration, err error) {
	bad := func(format string, args ...any) (string, time.Duration, error) {
		return "", 0, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	if strings.HasPrefix(text, "B:") || strings.HasPrefix(text, "R:") || strings.HasPrefix(text, "BR:") || strings.HasPrefix(text, "RB:") {
		return bad("the signal goes to the roles; the batch script is tp's and needs none: write it without the letters and the colon")
	}
	name, span, timed := strings.Cut(text, "@")
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	switch name {
	case "10":
		name = "USR1"
	case "12":
		name = "USR2"
	}
	if name != "USR1" && name != "USR2" {
		return bad("expected USR1 or USR2; others would end the role, and TERM comes at the end by itself")
	}
	if !timed {
		return bad("how long before the time limit? write %s@300 for seconds, or %s@5m", name, name)
	}
	sec, ok := count(span)
	if !ok {
		sec, ok = unitSeconds(span)
	}
	if !ok || sec < 1 || sec > 65535 {
		return bad("expected 1 to 65535 seconds before the time limit")
	}
	return name, time.Duration(sec) * time.Second, nil
}

// ParseNumber reads a whole number in a range.
func ParseNumber(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: expected a whole number from %d to %d", text, least, most)
	}
	return n, nil
}
