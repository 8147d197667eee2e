// Package shell quotes text for bash. Every foreign string that enters a
// script goes through [Quote]; a fuzz test runs its output through a real bash.
package shell

import (
	"fmt"
	"strings"
)

// Quote makes one bash word that expands to exactly s. Words of plain
// characters stay as they are; the rest is put in single quotes, in which bash
// changes nothing at all. NUL cannot be a word and is refused by [Check].
//
// A newline is written \n, so that a word is one line: Slurm 22.05 drops the
// empty lines of a heterogeneous job's script, also inside quotes (measured,
// by sbatch and by slurmrestd).
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	if strings.Contains(s, "\n") {
		return "$'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(s) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_-./:,+@%", r)
}

// Join quotes words and puts blanks between them.
func Join(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Check refuses control characters, which have no place in a name: they break
// terminals, log lines and #SBATCH directives. What names the text's origin.
func Check(what, s string) error {
	for i, r := range s {
		if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return fmt.Errorf("%s has the control character %#U at byte %d; control characters are refused in names", what, r, i)
		}
	}
	return nil
}

// Directive quotes a value for an #SBATCH line. sbatch's own parser is no
// shell: it drops a backslash even inside single quotes, 22.05 splits at a
// backslash-blank outside quotes, and an unquoted word "hetjob" starts a new
// component. Double quotes with \" and \\ mean the same on 22.05, 24.11 and
// 26.05 (tried with the conformance names on all three).
func Directive(s string) string {
	if s != "" && strings.IndexFunc(s, special) < 0 && s != "hetjob" && s != "packjob" {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
