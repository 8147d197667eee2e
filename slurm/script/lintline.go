package script

import (
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
)

// word is one argument of a directive.
type word struct {
	text   string // with its quotes
	column int
	hash   bool // a # without a blank before it ended it
}

// directive reads what follows #SBATCH.
func (l *linter) directive(rest string) {
	words, comment, open := words(rest, len("#SBATCH"))
	if open > 0 {
		l.add(open, "quote", "close the quote", "a quote is not closed, and sbatch refuses the script")
		return
	}
	if comment > 0 {
		l.add(comment, "hash", `put the value into double quotes, or a blank behind the # of a comment`, "from # on it is a comment")
	}
	if len(words) > 0 && (words[0].text == "hetjob" || words[0].text == "packjob") {
		l.separator(words[0])
		return
	}
	if len(words) == 0 {
		l.add(1, "empty", "remove it", "a directive without an option")
		return
	}
	last := ""     // option
	value := false // the former word may be an option that takes the next one
	for i, w := range words {
		if w.hash {
			l.add(w.column+utf8.RuneCountInString(w.text), "hash", "put the value into double quotes", "%q ends at its #: from there on it is a comment", w.text)
		}
		name, _, assigned := strings.Cut(w.text, "=")
		switch {
		case strings.HasPrefix(w.text, "--"):
			last = strings.TrimPrefix(name, "--")
			l.name(last, w)
			l.option(last, w)
			if value = !assigned; assigned {
				l.value(last, w.text[len(name)+1:], w.column)
			}
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1:
			last = w.text[1:2]
			l.name(last, w)
			l.option(last, w)
			if value = len(w.text) == 2; !value {
				l.value(last, w.text[2:], w.column)
			}
		case value && w.text != "=":
			value = false
			l.value(last, w.text, w.column)
		case i == 0 || w.text == "=":
			l.add(w.column, "blank", "--name=value without blanks", "%q is no option, and sbatch refuses the script", w.text)
			return
		default:
			l.add(w.column, "blank", "put the value into double quotes", "the value ends at the blank, and sbatch refuses the script for %q", w.text)
			return
		}
	}
}

// words splits as sbatch does: quotes hold blanks and # together, a backslash
// keeps the next character, and # begins a comment even inside a word. comment
// is the column of a # that may have been meant as a value, open of a quote
// that does not end; 0 for none.
func words(text string, offset int) (list []word, comment, open int) {
	var quote rune
	var b strings.Builder
	start, at, column, escaped := 0, 0, offset, false
	flush := func(hash bool) {
		if b.Len() > 0 {
			list = append(list, word{b.String(), start, hash})
			b.Reset()
		}
	}
	for i, r := range text {
		column++
		if b.Len() == 0 {
			start = column
		}
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if r == quote {
				quote = 0
			} else if r == '\\' && quote == '"' {
				escaped = true
			}
		case r == '"' || r == '\'':
			quote, at = r, column
		case r == '\\':
			escaped = true
		case r == ' ' || r == '\t':
			flush(false)
			continue
		case r == '#':
			next := text[i+1:]
			if b.Len() > 0 {
				flush(true)
			} else if next != "" && next[0] != ' ' && next[0] != '\t' && next[0] != '#' {
				comment = column
			}
			return list, comment, 0
		}
		b.WriteRune(r)
	}
	if quote != 0 {
		return nil, 0, at
	}
	flush(false)
	return list, 0, 0
}

func (l *linter) option(name string, w word) {
	if full, ok := long[name]; ok {
		name = full
	}
	before := l.options[name]
	l.options[name] = l.n
	switch {
	case name == "export" && before > 0:
		l.add(w.column, "export", "one --export with all names", "only the last --export counts: that of line %d is forgotten", before)
	case name == "array":
		l.array = l.n
	case name == "licenses" && l.component > 0:
		l.add(w.column, "licenses", "ask for them in the first component", "licences of component %d: only the first component may ask for them", l.component)
	}
}

// separator is the line between two components.
func (l *linter) separator(w word) {
	if w.text == "packjob" {
		l.add(w.column, "packjob", "#SBATCH hetjob", "packjob is the word of releases before 20.02")
	}
	if len(l.options) == 0 {
		l.add(w.column, "hetjob", "remove it", "component %d has no directive of its own", l.component)
	}
	l.het = append(l.het, l.n)
	l.component++
	l.options = map[string]int{}
}

// components looks at the job as a whole.
func (l *linter) components() {
	if l.component == 0 {
		return
	}
	if len(l.options) == 0 {
		l.n = l.het[len(l.het)-1]
		l.add(1, "hetjob", "remove it, or say what its component needs", "no directive follows: the last component repeats what it inherits")
	}
	if l.array > 0 {
		l.n = l.array
		l.add(1, "array", "a job for each task", "a heterogeneous job cannot be an array, and Slurm refuses it")
	}
	if l.component >= slurm.MaxComponents {
		l.n = l.het[slurm.MaxComponents-1]
		l.add(1, "components", "fewer pools", "a heterogeneous job has at most %d components, and this one has %d", slurm.MaxComponents, l.component+1)
	}
}
