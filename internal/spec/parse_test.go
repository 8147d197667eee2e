package spec

import (
	"strings"
	"testing"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]int{
		"4h": 240, "90m": 90, "1h30m": 90, "90s": 2, "60s": 1, "1d12h": 2160, "90": 90, "29": 29,
		"2-12": 2*1440 + 720, "1-00:00": 1440, "1-00:00:00": 1440, "0-00:00:01": 1, "04:00:00": 240,
		"48:00:00": 2880, "UNLIMITED": Unlimited, "unlimited": Unlimited,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1:30":       "write 1h30m for hours and minutes, or 1m30s for minutes and seconds",
		"0":          "write UNLIMITED",
		"0h":         "write UNLIMITED",
		"0-00:00:00": "write UNLIMITED",
		"-1":         "not negative",
		"INFINITE":   "written UNLIMITED",
		"":           "expected 4h",
		"4 h":        "expected 4h",
		"30m1h":      "expected 4h",
		"1-24:00":    "expected 4h",
		"01:60:00":   "expected 4h",
		"4hours":     "expected 4h",
		"1.5h":       "expected 4h",
		"9999999999": "expected 4h",
		"999999999d": "ten years",
	} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTime(%q) = %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "200G": 204800, "200GB": 204800, "200GiB": 204800, "1000000M": 1000000, "2T": 2 << 20, "1K": 1, "2048K": 2,
	} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("ParseMemory(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"200": "write 200M (what sbatch reads) or 200G", "0G": "write 0 without", "": "expected", "1.5T": "expected",
		"-1G": "expected", "200g": "expected", "999999999T": "more than",
	} {
		if got, err := ParseMemory(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMemory(%q) = %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"4h", "1:30", "2-12", "1-00:00:00", "0", "UNLIMITED", "-1", "90s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseTime(text)
		if err == nil && n != Unlimited && (n < 1 || n > maxMinutes) {
			t.Fatalf("ParseTime(%q) = %d", text, n)
		}
		if err == nil && n == Unlimited && !strings.EqualFold(text, "UNLIMITED") {
			t.Fatalf("%q became unlimited", text)
		}
	})
}

func FuzzParseMemory(f *testing.F) {
	for _, s := range []string{"200G", "0", "1000000M", "1.5T", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseMemory(text)
		if err == nil && (n < 0 || n > maxMiB || (n == 0) != (text == "0")) {
			t.Fatalf("ParseMemory(%q) = %d", text, n)
		}
	})
}

func FuzzParseProfile(f *testing.F) {
	for _, s := range []string{"h200", "h200:8", "train=h200:8", "actor,rollout=h200:8", "h200:4x2", "=", "a=b=c", "cpu:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProfile(text)
		if err != nil {
			return
		}
		again, err := ParseProfile(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q reads as %q, which reads as %q, %v", text, p, again, err)
		}
		if p.Devices > MaxDevices {
			t.Fatalf("%q asks for %d devices", text, p.Devices)
		}
	})
}
