package recipes

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
)

// words are a role's command as bash words, quoted. {entry} is what the recipe
// starts, {config} its configuration, {overrides} what was set; other names in
// braces are values: model and data, places of the job (see ownedFrom) and the
// parameters without a path. $TP_NAME is a variable of the job. A word with an
// input or a parameter that has no value is left out, and so is a word --OPTION
// before it.
func (c *composer) words(role string, command []string) ([]string, error) {
	var out []string
	for _, word := range command {
		switch word {
		case "{entry}":
			entry, err := c.entry(role)
			if err != nil {
				return nil, err
			}
			out = append(out, entry...)
		case "{config}":
			out = append(out, `"$TP_EXP_DIR/`+configName+`"`)
		case "{overrides}":
			more, err := c.overrides()
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		default:
			text, ok := c.fill(word, role)
			if ok {
				out = append(out, text)
			} else if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "--") && !strings.Contains(out[n-1], "=") {
				out = out[:n-1]
			}
		}
	}
	return out, nil
}

// wordPart is a name in braces or a variable of the job.
var wordPart = regexp.MustCompile(`\{([a-z_0-9]+)\}|\$(TP_[A-Z0-9_]+)`)

// fill puts values in place of names; false where one has no value. What is
// put in is never read for names again.
func (c *composer) fill(word, role string) (string, bool) {
	var b, text strings.Builder
	rest := word
	for {
		at := wordPart.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		text.WriteString(rest[:at[0]])
		variable := ""
		if at[2] < 0 {
			variable = `"$` + rest[at[4]:at[5]] + `"`
		} else if name := rest[at[2]:at[3]]; c.recipe.Params[name].Type != "" {
			value := c.param(name)
			if value == "" {
				return "", false
			}
			text.WriteString(value)
		} else if in, ok := c.inputs[name]; ok {
			text.WriteString(in.value)
		} else if slices.Contains(inputNames, name) {
			return "", false
		} else {
			variable = c.ownedWord(Owned{From: name, Role: role}, shellPath)
		}
		if rest = rest[at[1]:]; variable != "" {
			if text.Len() > 0 {
				b.WriteString(shell.Quote(text.String()))
				text.Reset()
			}
			b.WriteString(variable)
		}
	}
	text.WriteString(rest)
	if text.Len() > 0 || b.Len() == 0 {
		b.WriteString(shell.Quote(text.String()))
	}
	return b.String(), true
}

func shellPath(variable, rest string) string { return `"$` + variable + rest + `"` }

// entry is what the role starts.
func (c *composer) entry(role string) ([]string, error) {
	entry := c.recipe.Entrypoint
	if role != c.recipe.Driver {
		entry = Entrypoint{"experiment", role + ".sh"}
	}
	switch entry.Kind {
	case "module":
		return []string{"-m", shell.Quote(entry.Value)}, nil
	case "file", "program":
		return []string{shell.Quote(entry.Value)}, nil
	}
	script, err := c.script(role, entry.Value)
	if err != nil {
		return nil, err
	}
	if c.recipe.Dir != "" {
		return []string{`"$TP_EXP_DIR"/` + shell.Quote(script)}, nil
	}
	return []string{shell.Quote(script)}, nil
}
