package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// answering are the options that change what sbatch does rather than what the
// job is: as #SBATCH lines they would keep tp from learning the job's id, send
// it elsewhere or make it another job.
var answering = []string{"clusters", "export-file", "gid", "help", "parsable", "quiet", "test-only", "uid", "usage", "version", "wait", "wrap"}

// shortOptions are the letters of sbatch for the options that matter here.
var shortOptions = map[string]string{
	"A": "account", "a": "array", "b": "begin", "C": "constraint", "c": "cpus-per-task", "D": "chdir", "d": "dependency", "e": "error",
	"H": "hold", "h": "help", "J": "job-name", "L": "licenses", "M": "clusters", "N": "nodes", "n": "ntasks", "o": "output",
	"p": "partition", "Q": "quiet", "q": "qos", "s": "oversubscribe", "t": "time", "u": "usage", "V": "version", "W": "wait",
	"w": "nodelist", "x": "exclude",
}

// foreignDirectives compares the #SBATCH lines of the script with what sbatch is
// told on its command line. The command line wins; an option that only the
// script has holds as well and is warned of, because slurmrestd would not read
// it. Refused are lines that make more components than the request has, and
// those of answering.
func foreignDirectives(script string, components [][]slurm.Option) (warnings []string, err error) {
	at := 0 // component
	for number, line := range header(script) {
		words, isDirective := strings.CutPrefix(line, "#SBATCH")
		if !isDirective {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(words), " ")
		if strings.EqualFold(first, "hetjob") || strings.EqualFold(first, "packjob") {
			if at++; at >= len(components) {
				return nil, fmt.Errorf("line %d of the script begins component %d, the request has %d", number+1, at, len(components))
			}
		}
		for _, name := range optionNames(words) {
			switch {
			case name == "export", slices.ContainsFunc(components[at], func(o slurm.Option) bool { return o.Name == name }):
				// the command line has it too
			case slices.ContainsFunc(answering, func(a string) bool { return strings.HasPrefix(a, name) }): // sbatch takes any beginning of a name
				return nil, fmt.Errorf("line %d of the script: #SBATCH --%s would change what sbatch answers", number+1, name)
			default:
				warnings = append(warnings, fmt.Sprintf("line %d of the script: sbatch reads #SBATCH --%s, which the request does not have", number+1, name))
			}
		}
	}
	if at > 0 && at != len(components)-1 {
		return nil, fmt.Errorf("the script has lines for %d components, the request has %d", at+1, len(components))
	}
	return warnings, nil
}

// header is the part of the script in which sbatch looks for directives: up to
// the first line that is neither blank nor a comment.
func header(script string) []string {
	lines := strings.Split(script, "\n")
	for i, line := range lines {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			return lines[:i]
		}
	}
	return lines
}

// optionNames are the long names of the options on a line. Words in quotes are
// values.
func optionNames(line string) []string {
	var names []string
	quote, start, escaped := rune(0), true, false
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
			continue
		case r == '\\':
			escaped, start = true, false
			continue
		case quote != 0:
			if r == quote {
				quote = 0
			}
			continue
		case r == '"' || r == '\'':
			quote, start = r, false
			continue
		case r == '#' && start:
			return names
		case r == ' ' || r == '\t':
			start = true
			continue
		case start && r == '-':
			word, _, _ := strings.Cut(line[i:], " ")
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if !strings.HasPrefix(word, "--") && name != "" {
				name = shortOptions[name[:1]]
			}
			if name != "" {
				names = append(names, name)
			}
		}
		start = false
	}
	return names
}
