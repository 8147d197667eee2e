package spec

import (
	"strings"
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	zone := time.FixedZone("here", 3600)
	now := time.Date(2026, 11, 30, 19, 30, 15, 500, zone)
	for text, want := range map[string]string{
		"now": "2026-11-30T19:30:15+01:00", "now+2h": "2026-11-30T21:30:15+01:00", "now+1d12h": "2026-12-02T07:30:15+01:00",
		"now+90s": "2026-11-30T19:31:45+01:00", "now+3days": "2026-12-03T19:30:15+01:00", "now+1hour": "2026-11-30T20:30:15+01:00",
		"20:00": "2026-11-30T20:00:00+01:00", "19:30": "2026-12-01T19:30:00+01:00", "8:05": "2026-12-01T08:05:00+01:00", "23:59:59": "2026-11-30T23:59:59+01:00",
		"2026-12-01T20:00": "2026-12-01T20:00:00+01:00", "2026-12-01T20:00:05": "2026-12-01T20:00:05+01:00",
		"2026-12-01T20:00Z": "2026-12-01T21:00:00+01:00", "2026-12-01T20:00:00-05:00": "2026-12-02T02:00:00+01:00",
	} {
		if got, err := ParseWhen(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("ParseWhen(%q) = %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for text, want := range map[string]string{
		"": whenForms, "now+": whenForms, "now+0h": whenForms, "now-1h": whenForms, "now+60": "write now+60s", "now+5y": whenForms,
		"24:00": whenForms, "12:60": whenForms, "7": whenForms, "tea": whenForms, "2026-12-01": "write 2026-12-01T00:00",
		"2026-11-30T19:00": "30 minutes 15 seconds ago", "2026-13-01T00:00": whenForms, "now+99999999d": whenForms, "now+1:30": whenForms,
	} {
		if got, err := ParseWhen(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseWhen(%q) = %s, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseWhen(f *testing.F) {
	for _, s := range []string{"now+2h", "20:00", "2026-12-01T20:00", "now+9999999999h", "2026-12-01T20:00:00+99:99"} {
		f.Add(s)
	}
	now := time.Unix(1800000000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := ParseWhen(text, now); err == nil && at.Before(now) {
			t.Errorf("ParseWhen(%q) is %s, before now", text, at)
		}
	})
}

func TestParseSwitches(t *testing.T) {
	for text, want := range map[string]struct {
		n    int
		wait time.Duration
	}{"1": {1, 0}, "2@30m": {2, 30 * time.Minute}, "3@1-00:00:00": {3, 24 * time.Hour}} {
		if n, wait, err := ParseSwitches(text); err != nil || n != want.n || wait != want.wait {
			t.Errorf("ParseSwitches(%q) = %d, %s, %v", text, n, wait, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1@", "1@1:30", "1@0", "1@UNLIMITED", "99999999"} {
		if n, wait, err := ParseSwitches(text); err == nil {
			t.Errorf("ParseSwitches(%q) = %d, %s", text, n, wait)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]string{"USR1@300": "USR1 5m0s", "SIGUSR2@5m": "USR2 5m0s", "10@1": "USR1 1s"} {
		if name, before, err := ParseSignal(text); err != nil || name+" "+before.String() != want {
			t.Errorf("ParseSignal(%q) = %s %s, %v", text, name, before, err)
		}
	}
	for text, want := range map[string]string{
		"B:USR1@300": "goes to the roles", "TERM@300": "expected USR1 or USR2", "KILL": "expected USR1 or USR2", "USR1": "USR1@300",
		"USR1@0": "1 to 65535", "USR1@99999": "1 to 65535", "USR1@": "1 to 65535", "": "expected USR1",
	} {
		if _, _, err := ParseSignal(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSignal(%q): %v, want %q", text, err, want)
		}
	}
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]string{"true": "exclusive", "yes": "exclusive", "exclusive": "exclusive", "user": "user", "topo": "topo"} {
		if got, err := ParseShare(text); err != nil || got != want {
			t.Errorf("ParseShare(%q) = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "false", "maybe", "USER"} {
		if got, err := ParseShare(text); err == nil {
			t.Errorf("ParseShare(%q) = %q", text, got)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 seconds", time.Second: "1 second", 90 * time.Second: "1 minute 30 seconds", time.Hour: "1 hour",
		49 * time.Hour: "2 days 1 hour", 800 * 24 * time.Hour: "2 years 70 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
