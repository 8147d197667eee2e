package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
)

// overrides are the words that carry what was set, in the recipe's way.
func (c *composer) overrides() ([]string, error) {
	switch c.recipe.Config {
	case Hydra:
		return c.hydraWords("", true)
	case NeMoYAML:
		return c.hydraWords("++", false)
	case YAMLArgs:
		return c.dotlist()
	case Flags:
		return c.flags()
	}
	return []string{c.json()}, nil
}

// json is one object with sorted keys. A dotted key names a nested value: a
// nested object could not say whether it replaces or extends. Numbers keep the
// text that was typed, which is why this is no json.Marshal.
func (c *composer) json() string {
	values := map[string][]string{} // text, and what only the job knows as a bash word after it
	for _, x := range c.targets.list {
		if x.json != "" && x.path != "" {
			bare, _ := addsKey(x.path)
			values[bare] = []string{x.json}
		}
	}
	for _, o := range c.recipe.Owned {
		switch {
		case !c.holds(o) || o.Flag != "":
		case o.From == "": // JSON already
			values[o.Path] = []string{o.Value}
		case o.From == "host":
			values[o.Path] = []string{`"`, c.ownedWord(o, shellPath), `"`} // an address needs no escape
		case slices.Contains(inputNames, o.From):
			values[o.Path] = []string{jsonText(c.inputs[o.From].value)}
		default:
			values[o.Path] = []string{"", c.ownedWord(o, shellPath)}
		}
	}
	var word, text strings.Builder
	text.WriteString("{")
	for i, path := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(jsonText(path) + ": ")
		for n, part := range values[path] {
			if n%2 == 0 {
				text.WriteString(part)
				continue
			}
			word.WriteString(shell.Quote(text.String()) + part)
			text.Reset()
		}
	}
	text.WriteString("}")
	return word.String() + shell.Quote(text.String())
}

// hydraWords are KEY=VALUE in Hydra's grammar: with whole, all of config.yaml,
// else only what was set; then what tp owns.
func (c *composer) hydraWords(prefix string, whole bool) ([]string, error) {
	var out []string
	var wrong problems
	for _, x := range c.targets.list {
		if _, owned := c.owns(x.path); owned || x.path == "" {
			continue
		}
		text, err := "", error(nil)
		switch {
		case x.json != "" && (x.set != nil || x.value == nil):
			text, err = hydraJSON(x.json, false)
		case whole && x.value != nil:
			text, err = c.hydraValue(*x.value)
		default:
			continue
		}
		if err != nil {
			wrong.add(fmt.Errorf("%s: %w", x.path, err))
			continue
		}
		key := x.path
		if _, added := addsKey(key); !added {
			key = prefix + key
		}
		out = append(out, shell.Quote(key+"="+text))
	}
	for _, o := range c.recipe.Owned {
		if c.holds(o) {
			out = append(out, c.ownedPair(prefix+o.Path, o, hydraPath, func(s string) string { return hydraString(s, false) }))
		}
	}
	return out, wrong.err()
}

// hydraValue is a key of config.yaml as typed, in Hydra's grammar.
func (c *composer) hydraValue(v Value) (string, error) {
	budget := maxKeys
	text, notes, err := hydraNode(v.node, &budget, false)
	if err != nil {
		return "", fault.New(fault.Usage, "%s: %w", c.targets.config.Place(v), err)
	}
	for _, note := range notes {
		c.warn(fmt.Sprintf("%s: %s: %s", c.targets.config.Place(v), v.Path, note))
	}
	return text, nil
}

// hydraPath is a path that only the job knows, between Hydra's quotes. The
// variable tp_hydra is TP_OUT_DIR with its quotes escaped, see pathPrelude.
func hydraPath(_, rest string) string { return `"'$tp_hydra` + rest + `'"` }

// yamlPath is one between YAML's quotes.
func yamlPath(_, rest string) string { return `"'$tp_yaml` + rest + `'"` }

// pathPrelude escapes quotes of the run's directory: for Hydra with a
// backslash, and the backslashes before them, as hydraQuote does here; for
// YAML by another one.
func (c *composer) pathPrelude() string {
	switch c.recipe.Config {
	case YAMLArgs:
		return `tp_yaml=${TP_OUT_DIR//\'/\'\'}` + "\n"
	case Hydra, NeMoYAML:
	default:
		return ""
	}
	return `tp_hydra=$(printf '%s' "$TP_OUT_DIR" | sed -E "s/(\\\\*)'/\\1\\1\\\\'/g")` + "\n"
}

// dotlist are KEY=VALUE as OmegaConf's from_dotlist reads them: the value is
// YAML.
func (c *composer) dotlist() ([]string, error) {
	var out []string
	for _, x := range c.targets.list {
		if x.json != "" && x.path != "" {
			bare, _ := addsKey(x.path)
			out = append(out, shell.Quote(bare+"="+yamlText(x.json)))
		}
	}
	for _, o := range c.recipe.Owned {
		if c.holds(o) && o.Flag == "" {
			out = append(out, c.ownedPair(o.Path, o, yamlPath, func(s string) string { return yamlText(jsonText(s)) }))
		}
	}
	return out, nil
}

// yamlText is a JSON value as YAML: JSON is YAML, and a plain text needs no
// quotes.
func yamlText(text string) string {
	if strings.HasPrefix(text, `"`) && hydraBareItem.MatchString(strings.Trim(text, `"`)) {
		bare := strings.Trim(text, `"`)
		if !hydraNumber.MatchString(bare) && !hydraWord.MatchString(bare) && !oldOther.MatchString(bare) && !oldInt.MatchString(bare) && !oldFloat.MatchString(bare) {
			return bare
		}
	}
	return text
}

// flags are --KEY VALUE for every key: lists give several words, true stands
// alone and false is left out, as argparse's store_true has it.
func (c *composer) flags() ([]string, error) {
	var out []string
	for _, x := range c.targets.list {
		if _, owned := c.owns(x.path); owned || x.path == "" {
			continue
		}
		text := x.json
		if text == "" && x.value != nil {
			text = x.value.JSON
			if x.value.Type == Str || x.value.JSON == "" {
				text = jsonText(x.value.Text)
			}
		}
		out = append(out, flagWords(x.path, text)...)
	}
	for _, o := range c.recipe.Owned {
		switch in, given := c.inputs[o.From]; {
		case !c.holds(o) || o.Flag != "":
		case o.From == "":
			out = append(out, flagWords(o.Path, o.Value)...)
		case given:
			out = append(out, shell.Quote("--"+o.Path), shell.Quote(in.value))
		default:
			out = append(out, shell.Quote("--"+o.Path), c.ownedWord(o, shellPath))
		}
	}
	return out, nil
}

func flagWords(path, value string) []string {
	bare, _ := addsKey(path)
	flag := shell.Quote("--" + bare)
	var v any
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	if d.Decode(&v) != nil || v == nil || v == false {
		return nil
	}
	switch v := v.(type) {
	case bool:
		return []string{flag}
	case string:
		return []string{flag, shell.Quote(v)}
	case []any:
		words := []string{flag}
		for _, item := range v {
			words = append(words, shell.Quote(fmt.Sprint(item)))
		}
		return words
	}
	return []string{flag, shell.Quote(value)}
}
