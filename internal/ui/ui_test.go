package ui

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "silent" {
		Standard() // init and look at the streams: no byte may come out
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestColor(t *testing.T) {
	for _, c := range []struct {
		env      string
		tty      bool
		out, err bool
	}{
		{"TERM=xterm", true, true, true},
		{"TERM=xterm", false, false, false},
		{"TERM=dumb", true, false, false},
		{"", true, false, false},
		{"TERM=xterm NO_COLOR=1", true, false, false},
		{"TERM=xterm NO_COLOR=", true, true, true},
		{"TERM=dumb CLICOLOR_FORCE=1", false, true, true},
		{"TERM=xterm CLICOLOR_FORCE=0", false, false, false},
		{"TERM=xterm CLICOLOR=0", true, false, false},
		{"TERM=xterm CLICOLOR_FORCE=1 NO_COLOR=1", true, false, false},
	} {
		s := &Streams{OutTTY: c.tty, ErrTTY: c.tty}
		s.settle(func(k string) string {
			for _, kv := range strings.Fields(c.env) {
				if name, v, _ := strings.Cut(kv, "="); name == k {
					return v
				}
			}
			return ""
		})
		if s.Color != c.out || s.ErrColor != c.err {
			t.Errorf("%q on a terminal=%v: %v %v", c.env, c.tty, s.Color, s.ErrColor)
		}
		if got := s.Paint(Red, "x"); (got == "x") == c.out {
			t.Errorf("%q: painted %q", c.env, got)
		}
	}
}

func TestNothingIsWrittenAtStart(t *testing.T) {
	out, err := exec.Command(os.Args[0], "silent").CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("%q, %v", out, err)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                       "plain",
		"训练-7b 👩‍💻 e\u0301":           "训练-7b 👩‍💻 e\u0301",
		"\x1b]0;title\x07":            `\x1b]0;title\x07`,
		"\x1b[31mred":                 `\x1b[31mred`,
		"a\tb\nc\r\nd\re":             `a b c d\x0de`,
		"gpl.\u202egnp.exe":           `gpl.\u202egnp.exe`,
		"\u2066x\u2069\ufeff\u200ey":  `\u2066x\u2069\ufeff\u200ey`,
		"\x9b31m \u009b31m":           "\ufffd31m " + `\x9b31m`,
		"\U000e0041hidden":            `\ue0041hidden`,
		strings.Repeat("x", MaxClean): strings.Repeat("x", MaxClean),
		strings.Repeat("x", 1<<20):    strings.Repeat("x", MaxClean) + "…",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%.40q) = %.60q, want %.60q", in, got, want)
		}
	}
	if got := CleanLines("a\r\nb\x07"); got != "a\nb\\x07" {
		t.Errorf("CleanLines: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J\u202e\x9b", 5)
	f.Add("训练👩‍👩‍👧", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		c := Clean(s)
		if !utf8.ValidString(c) || len(c) > MaxClean+16 || strings.ContainsAny(c, "\x1b\n\r\t\x07\x7f\u202e\u009b") {
			t.Errorf("Clean(%q) = %q", s, c)
		}
		n &= 127
		if cut := Cut(c, n); Width(cut) > n {
			t.Errorf("Cut(%q, %d) has %d columns", c, n, Width(cut))
		}
		if p := Pad(c, n); Width(p) != n {
			t.Errorf("Pad(%q, %d) = %q has %d columns", c, n, p, Width(p))
		}
	})
}

func TestWidths(t *testing.T) {
	for s, want := range map[string]int{"训练-7b": 7, "👩‍💻": 2, "e\u0301": 1, "": 0, "\x1b[1mx\x1b[0m": 1, "🇩🇪": 2} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"训练-7b", 4, "训…"}, {"训练", 4, "训练"}, {"a👩‍💻b", 3, "a…"}, {"abc", 0, ""}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		if got := Cut(c.in, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Grid{Head: []string{"RUN", "NAME", "GPUS"}, Right: []bool{false, false, true}}
	table.Add("run-1", "训练-7b\x1b[31m", 8)
	table.Add("run-22", "a", 16)
	s, out, _ := Test("")
	if err := table.Print(s); err != nil {
		t.Fatal(err)
	}
	want := "RUN     NAME         GPUS\nrun-1   训练-7b\\x1b[31m     8\nrun-22  a              16\n"
	if got := out.String(); !sameColumns(got) {
		t.Errorf("got\n%s\nwant about\n%s", got, want)
	}
	for _, w := range []int{40, 20, 10, 1} {
		out.Reset()
		s.Width = w
		table.Print(s)
		for line := range strings.Lines(out.String()) {
			if n := Width(strings.TrimSuffix(line, "\n")); n > w {
				t.Errorf("width %d: %q has %d columns", w, line, n)
			}
		}
	}
	out.Reset()
	new(Grid).Print(s)
	if out.Len() != 0 {
		t.Errorf("an empty table: %q", out)
	}
}

func TestPlainTable(t *testing.T) {
	var b strings.Builder
	Table(&b, "  ", [][]string{{"A", "B", ""}, {"训练", "x\x1b", "y"}, {"short"}})
	if got, want := b.String(), "  A      B\n  训练   x\\x1b  y\n  short\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// sameColumns: the last column is right-aligned, so all lines end together.
func sameColumns(text string) bool {
	width := -1
	for line := range strings.Lines(text) {
		w := Width(strings.TrimSuffix(line, "\n"))
		if width >= 0 && w != width {
			return false
		}
		width = w
	}
	return true
}

func TestProgress(t *testing.T) {
	s, out, errs := Test("")
	p := s.Progress()
	p.Set("x")
	p.Done()
	if errs.Len() != 0 || out.Len() != 0 {
		t.Errorf("off a terminal: %q", errs)
	}
	now := time.Unix(0, 0)
	s.ErrTTY, s.Width, s.Now = true, 10, func() time.Time { return now }
	p = s.Progress()
	p.Done()
	p.Set("a long text with \x1b[31m")
	p.Set("dropped")
	now = now.Add(time.Second)
	p.Set("b")
	p.Done()
	if got := errs.String(); got != "\ra long t…\x1b[K\rb\x1b[K\r\x1b[K" {
		t.Errorf("got %q", got)
	}
	errs.Reset()
	s.Dumb = true
	s.Progress().Set("x")
	if errs.Len() != 0 {
		t.Errorf("on a dumb terminal: %q", errs)
	}
}

func TestConfirm(t *testing.T) {
	for in, want := range map[string]bool{"y\n": true, "YES\r\n": true, " y \n": true, "\n": false, "": false, "y": false, "n\n": false,
		"yes please\n": false, strings.Repeat("y", 1<<20) + "\n": false} {
		s, out, errs := Test(in)
		got, err := s.Confirm("submit?")
		if got != want || err != nil || out.Len() != 0 || !bytes.HasPrefix(errs.Bytes(), []byte("submit? [y/N] ")) {
			t.Errorf("%.20q: %v, %v, %q", in, got, err, errs)
		}
	}
	s, _, _ := Test("y\nn\ny\n") // nothing read ahead is lost
	for i, want := range []bool{true, false, true, false} {
		if got, _ := s.Confirm("?"); got != want {
			t.Errorf("question %d: %v", i, got)
		}
	}
}
