package shell

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// throughBash lets a real bash print the words, and the same values exported
// and printed by a child, each ended by NUL.
func throughBash(t *testing.T, values []string) []string {
	t.Helper()
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, v := range values {
		script.WriteString(`printf '%s\0' ` + Quote(v) + "\n")
		script.WriteString("export TP_fuzz_v=" + Quote(v) + "\n")
		script.WriteString(`printf '%s\0' "$TP_fuzz_v"` + "\n")
	}
	script.WriteString("env -0 | LC_ALL=C grep -az '^TP_fuzz_v='\n")
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("bash: %v\n%s\n%s", err, script.String(), out)
	}
	words := strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
	last := len(words) - 1
	words[last] = strings.TrimPrefix(words[last], "TP_fuzz_v=")
	return words
}

func check(t *testing.T, values []string) {
	t.Helper()
	got := throughBash(t, values)
	if len(got) != 2*len(values)+1 {
		t.Fatalf("%d words came back for %q", len(got), values)
	}
	for i, v := range values {
		if got[2*i] != v || got[2*i+1] != v {
			t.Errorf("%q came back as the word %q and the variable %q", v, got[2*i], got[2*i+1])
		}
	}
	if last := values[len(values)-1]; got[len(got)-1] != last {
		t.Errorf("%q came to a child process as %q", last, got[len(got)-1])
	}
}

func TestQuote(t *testing.T) {
	check(t, []string{
		"", "plain", "a b", " leading", "trailing ", "l1\nl2", "l1\n\n\\n'l2\\", "\n", "tab\there", `a"b'c,$HOME ` + "`id`", "'", "''", `\`, `\'`,
		"#no comment", "a#b", "$(id)", "${HOME}", "!history", "~", "~root", "*", "?[a]", "{a,b}", "a;b", "a&b", "a|b", "a>b", "<(id)",
		"-n", "--", "=", "a=b", "實驗", "🙂 é", "\xff\xfe not utf-8", "\r\n", "\x1b[31m", "%s%d", "@(a)", "^a^b", strings.Repeat("x'", 5000), "last $x",
	})
}

// Fuzz input is cut at NUL into many values, so that one bash tries them all.
func FuzzQuote(f *testing.F) {
	f.Add("a b\x00$HOME\x00`id`\x00'\x00\\\x00\n")
	f.Add("~\x00!x\x00{a,b}\x00*\x00#\x00=")
	f.Add("\xff\x00實驗\x00\r")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		check(t, strings.Split(text, "\x00"))
	})
}

func TestCheckNamesTheCharacter(t *testing.T) {
	if err := Check("the name", "a b'$#實驗🙂"); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"a\nb", "\x1b", "\x7f", "\u0085", "\x00"} {
		if err := Check("the name", s); err == nil {
			t.Errorf("%q was let through", s)
		}
	}
}

// TestEmptyLinesOfAHetJob: Slurm 22.05 drops them from the script.
func TestEmptyLinesOfAHetJob(t *testing.T) {
	if q := Quote("a\n\nb'c"); strings.Contains(q, "\n") {
		t.Errorf("%q spans lines", q)
	}
}
