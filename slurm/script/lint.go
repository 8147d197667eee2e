package script

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
)

// Finding is one thing about a batch script that is not as it looks. Line and
// Column count from 1, columns in characters.
type Finding struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Code   string `json:"code"`  // "late"
	Found  string `json:"found"` // what is there and what Slurm does with it
	Fix    string `json:"fix"`
	// Note: sbatch takes it as it is, and it may not be what was meant.
	Note bool `json:"note,omitempty"`
}

// Lint reads a batch script as sbatch does, and finds what sbatch ignores, cuts
// short or refuses. How it reads was measured on 22.05, 24.11 and 26.05.
func Lint(text []byte) []Finding {
	l := &linter{}
	l.file(text)
	if len(text) > slurm.MaxScript {
		return l.found // nobody will read more
	}
	for n, line := range strings.Split(string(text), "\n") {
		l.n = n + 1
		if n == 0 && strings.HasPrefix(strings.TrimPrefix(line, "\ufeff"), "#!") {
			l.trace(line)
			continue
		}
		l.line(strings.TrimSuffix(line, "\r"))
	}
	l.components()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return l.found
}

type linter struct {
	found   []Finding
	n       int    // of the line
	began   int    // line of the first command, after which sbatch reads no directive
	heredoc string // the word that ends the text between
	tabs    bool   // whose leading tabs do not count
	tracing int    // line that switched set -x on, 0 when it is off
	told    bool   // of the first value it prints

	component int
	options   map[string]int // of this component: line of the last one by name
	array     int            // line of --array
	het       []int          // lines of the separators
}

func (l *linter) add(column int, code, fix, format string, args ...any) {
	l.found = append(l.found, Finding{Line: l.n, Column: column, Code: code, Found: fmt.Sprintf(format, args...), Fix: fix})
}

func (l *linter) note(column int, code, fix, format string, args ...any) {
	l.add(column, code, fix, format, args...)
	l.found[len(l.found)-1].Note = true
}

// file looks at the text as a whole.
func (l *linter) file(text []byte) {
	l.n, l.options = 1, map[string]int{}
	if len(text) > slurm.MaxScript {
		l.add(1, "size", "keep data in files beside the script", "the script has %d bytes, and slurmctld takes %d", len(text), slurm.MaxScript)
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")), bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		l.add(1, "bom", "save it as UTF-8 without a byte order mark", "a byte order mark stands before the first line, so sbatch sees no #!")
	case !bytes.HasPrefix(text, []byte("#!")):
		l.add(1, "shebang", "#!/bin/bash as the first line", "the first line does not begin with #!, and sbatch refuses the script")
	}
	if at := bytes.Index(text, []byte("\r\n")); at >= 0 {
		l.n = 1 + bytes.Count(text[:at], []byte("\n"))
		l.add(1+utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at]), "crlf", "sed -i 's/\\r$//' FILE",
			"%d lines end in \\r\\n, as on DOS, and sbatch refuses the script", bytes.Count(text, []byte("\r\n")))
	}
	if at := bytes.IndexByte(text, 0); at >= 0 {
		l.n = 1 + bytes.Count(text[:at], []byte("\n"))
		l.add(1+utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at]), "nul", "remove it", "a NUL byte, with which slurmctld refuses the script")
	}
}

// almost are lines that look like a directive and are none.
var almost = regexp.MustCompile(`(?i)^(\s*)#+\s*(SBATCH|SBTACH|SBACTH|SBATH|SBATHC|SABTCH)(\s+-|\s+hetjob|--)`)

func (l *linter) line(line string) {
	if l.heredoc != "" {
		end := line
		if l.tabs {
			end = strings.TrimLeft(end, "\t")
		}
		if end == l.heredoc {
			l.heredoc = ""
		}
		return
	}
	rest, isDirective := strings.CutPrefix(line, "#SBATCH")
	trimmed := strings.TrimSpace(line)
	switch {
	case isDirective && l.began > 0:
		l.add(1, "late", fmt.Sprintf("move it above line %d", l.began), "sbatch reads no directive after the first command, which is in line %d", l.began)
	case isDirective:
		l.directive(rest)
	case strings.HasPrefix(trimmed, "#"):
		l.foreign(line)
		// ## is the custom for a directive that is switched off.
		if m := almost.FindStringSubmatch(line); m != nil && !strings.HasPrefix(trimmed, "##") {
			l.add(1+utf8.RuneCountInString(m[1]), "typo", "#SBATCH at the beginning of the line, in capitals", "to sbatch %q is a comment like any other", strings.TrimSpace(m[0]))
		}
	case trimmed != "":
		if l.began == 0 {
			l.began = l.n
		}
		l.command(line)
	}
}

var (
	heredoc = regexp.MustCompile(`(?:^|[^<])<<(-?)\s*(?:'([^']+)'|"([^"]+)"|\\?([A-Za-z_][A-Za-z0-9_]*))`)
	traceOn = regexp.MustCompile(`(?:^|[\s;&|({])set\s+(?:-[a-wyzA-Z]*x|-o\s+xtrace)|^#!.*\s-[a-z]*x`)
	traceNo = regexp.MustCompile(`(?:^|[\s;&|({])set\s+(?:\+[a-wyzA-Z]*x|\+o\s+xtrace)`)
	// A value that is written or read under a name by which people keep secrets.
	secret = regexp.MustCompile(`(?i)(\b|\$\{?)([A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?|SLURM_JWT)[A-Z0-9_]*)(=|\b)`)
)

// command looks for what set -x would print, and skips texts for other programs.
func (l *linter) command(line string) {
	l.trace(line)
	if l.tracing > 0 && !l.told {
		for _, at := range secret.FindAllStringSubmatchIndex(line, -1) {
			if line[at[6]:at[7]] == "=" || strings.HasPrefix(line[at[2]:at[3]], "$") {
				l.told = true
				l.add(1+utf8.RuneCountInString(line[:at[4]]), "trace", "set +x before it", "set -x, on since line %d, prints the value of %s into the log", l.tracing, line[at[4]:at[5]])
				break
			}
		}
	}
	if m := heredoc.FindStringSubmatch(line); m != nil {
		l.heredoc, l.tabs = m[2]+m[3]+m[4], m[1] == "-"
	}
}

func (l *linter) trace(line string) {
	switch {
	case traceNo.MatchString(line):
		l.tracing = 0
	case traceOn.MatchString(line) && l.tracing == 0:
		l.tracing = l.n
	}
}
