package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const whenForms = "expected now+2h, 20:00 or 2026-12-01T20:00"

var (
	sbatchSpan = regexp.MustCompile(`^(\d{1,9})(minute|hour|day|week)s?$`)
	clockTime  = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::(\d{2}))?$`)
)

// ParseWhen reads a moment, seen from now and in now's zone:
//
//	now  now+2h  now+1d12h  now+3days   a span, as in [ParseTime] or sbatch(1)
//	20:00  08:30:15                     the next time that the clock shows it
//	2026-12-01T20:00[:05]               with Z or +01:00 for another zone
//
// Refused are a span without a unit, which sbatch reads as seconds; a day
// without a time; and a moment that has passed.
func ParseWhen(text string, now time.Time) (time.Time, error) {
	bad := func(format string, args ...any) (time.Time, error) {
		return time.Time{}, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	var at time.Time
	switch {
	case text == "now":
		return now.Truncate(time.Second), nil
	case strings.HasPrefix(text, "now+"):
		span := text[len("now+"):]
		if isCount(span) {
			return bad("the unit is missing: write now+%ss for seconds, which is what sbatch reads, or now+%sm", span, span)
		}
		sec, ok := spanSeconds(span)
		if !ok || sec == 0 || sec > maxMinutes*60 {
			return bad("%s", whenForms)
		}
		at = now.Add(time.Duration(sec) * time.Second)
	case clockTime.MatchString(text):
		part := clockTime.FindStringSubmatch(text)
		h, _ := strconv.Atoi(part[1])
		m, _ := strconv.Atoi(part[2])
		s, _ := strconv.Atoi(part[3])
		if h > 23 || m > 59 || s > 59 {
			return bad("%s", whenForms)
		}
		at = time.Date(now.Year(), now.Month(), now.Day(), h, m, s, 0, now.Location())
		if at.Before(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, h, m, s, 0, now.Location())
		}
	default:
		var err error
		if at, err = date(text, now.Location()); err != nil {
			return bad("%v", err)
		}
		if at.Before(now) {
			return bad("that was %s ago", Span(now.Sub(at)))
		}
	}
	return at.Truncate(time.Second), nil
}

// Span is a length of time as people say it, in its two largest units, cut down.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-d)
	}
	units := []struct {
		name string
		d    time.Duration
	}{{"year", 365 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	for i, u := range units {
		n := d / u.d
		if n == 0 && u.d > time.Second {
			continue
		}
		text := plural(int(n), u.name)
		if i+1 < len(units) {
			if rest := (d - n*u.d) / units[i+1].d; rest > 0 {
				text += " " + plural(int(rest), units[i+1].name)
			}
		}
		return text
	}
	return ""
}

func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// spanSeconds reads 2h30m and sbatch's "3days".
func spanSeconds(text string) (int, bool) {
	part := sbatchSpan.FindStringSubmatch(text)
	if part == nil {
		return unitSeconds(text)
	}
	n, ok := count(part[1])
	return n * map[string]int{"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}[part[2]], ok
}

func date(text string, zone *time.Location) (time.Time, error) {
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return time.Time{}, fmt.Errorf("at what time? write %sT00:00 for its first moment", text)
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.In(zone), nil
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s", whenForms)
}
