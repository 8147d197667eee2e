package recipes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Hydra's override grammar, as its lexer has it (facebookresearch/hydra
// v1.3.2, hydra/grammar/OverrideLexer.g4); OmegaConf's dotlists differ only in
// that their values are YAML.
var (
	// hydraNumber is a whole value that Hydra reads as a number.
	hydraNumber = regexp.MustCompile(`(?i)^[+-]?((0|[1-9](_?[0-9])*)|((0|[1-9](_?[0-9])*)?\.[0-9](_?[0-9])*|(0|[1-9](_?[0-9])*)\.)|((0|[1-9](_?[0-9])*)(\.([0-9](_?[0-9])*)?)?|\.[0-9](_?[0-9])*)e[+-]?[0-9](_?[0-9])*|inf|nan)$`)
	hydraWord   = regexp.MustCompile(`(?i)^(true|false|null)$`)
	// hydraBare is a text that stands without quotes and is read as it is. The
	// colon has a meaning in lists and mappings.
	hydraBare     = regexp.MustCompile(`^[A-Za-z0-9_/.+%*@?|:-]+$`)
	hydraBareItem = regexp.MustCompile(`^[A-Za-z0-9_/.+%*@?|-]+$`)
	hydraKey      = regexp.MustCompile(`^(\+\+?|~)?[A-Za-z_$][A-Za-z0-9_$-]*(/[A-Za-z_$][A-Za-z0-9_$-]*)*(@[A-Za-z0-9_$.-]*)?(\.([A-Za-z_$][A-Za-z0-9_$-]*|0|[1-9][0-9]*))*$`)
	hydraDictKey  = regexp.MustCompile(`^[A-Za-z0-9_/.+%*@?|-]+$`)
	simpleInterp  = regexp.MustCompile(`^\$\{[A-Za-z0-9_.]+\}$`)
)

// hydraString is a value that Hydra reads as exactly this text.
func hydraString(s string, item bool) string {
	bare := hydraBare
	if item {
		bare = hydraBareItem
	}
	if bare.MatchString(s) && !hydraNumber.MatchString(s) && !hydraWord.MatchString(s) || simpleInterp.MatchString(s) {
		return s
	}
	return hydraQuote(s)
}

// hydraQuote puts a text in single quotes. Backslashes count only before a
// quote or the end, and are doubled there.
func hydraQuote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	slashes := 0
	for _, r := range s {
		switch {
		case r == '\\':
			slashes++
			b.WriteRune(r)
			continue
		case r == '\'':
			b.WriteString(strings.Repeat(`\`, slashes+1))
		}
		slashes = 0
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	b.WriteByte('\'')
	return b.String()
}

// hydraPlain is a plain YAML scalar as typed. What Hydra takes for something
// else than YAML does is said in a note.
func hydraPlain(text string, item bool) (value, note string) {
	switch {
	case coreNull.MatchString(text):
		return "null", ""
	case coreBool.MatchString(text):
		return strings.ToLower(text), ""
	case coreNoNum.MatchString(text): // .inf has no dot in Hydra
		return strings.ToLower(strings.Replace(text, ".", "", 1)), ""
	case hydraNumber.MatchString(text) && (coreInt.MatchString(text) || coreFloat.MatchString(text)):
		return text, ""
	case coreInt.MatchString(text) || coreFloat.MatchString(text):
		note = fmt.Sprintf("%s is a number to YAML and a text to Hydra; write it in decimals without leading zeros, or in quotes", text)
	case oldInt.MatchString(text), oldFloat.MatchString(text):
		note = fmt.Sprintf("%s is a number to some YAML readers and a text to others; it is passed as typed", text)
		if hydraNumber.MatchString(text) { // 1_000
			return text, note
		}
	case oldOther.MatchString(text):
		note = fmt.Sprintf("%s is a text here, as typed; PyYAML would read another value", text)
	}
	return hydraString(text, item), note
}

// hydraNode is a value of config.yaml in Hydra's grammar.
func hydraNode(n *yaml.Node, budget *int, item bool) (text string, notes []string, err error) {
	n = follow(n)
	if *budget--; *budget < 0 {
		return "", nil, fmt.Errorf("too long or nested too deeply")
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" {
			return "", nil, fmt.Errorf("the tag %s is not read; write the value without it", n.Tag)
		}
		if quotedStyle(n) {
			return hydraString(n.Value, item), nil, nil
		}
		text, note := hydraPlain(n.Value, item)
		if note != "" {
			notes = []string{note}
		}
		return text, notes, nil
	case yaml.MappingNode:
		var items []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || !hydraDictKey.MatchString(key.Value) {
				return "", nil, fmt.Errorf("the key %q cannot be written in Hydra's grammar", key.Value)
			}
			value, more, err := hydraNode(n.Content[i+1], budget, true)
			if err != nil {
				return "", nil, err
			}
			items, notes = append(items, key.Value+":"+value), append(notes, more...)
		}
		return "{" + strings.Join(items, ",") + "}", notes, nil
	}
	var items []string
	for _, child := range n.Content {
		value, more, err := hydraNode(child, budget, true)
		if err != nil {
			return "", nil, err
		}
		items, notes = append(items, value), append(notes, more...)
	}
	return "[" + strings.Join(items, ",") + "]", notes, nil
}

// hydraJSON writes a JSON value in Hydra's grammar; numbers keep their text.
func hydraJSON(text string, item bool) (string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	return hydraAny(v, item)
}

func hydraAny(v any, item bool) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return fmt.Sprint(v), nil
	case json.Number:
		return v.String(), nil
	case string:
		return hydraString(v, item), nil
	case []any:
		items := make([]string, len(v))
		for i, x := range v {
			text, err := hydraAny(x, true)
			if err != nil {
				return "", err
			}
			items[i] = text
		}
		return "[" + strings.Join(items, ",") + "]", nil
	}
	m := v.(map[string]any)
	var items []string
	for _, key := range sortedKeys(m) {
		if !hydraDictKey.MatchString(key) {
			return "", fmt.Errorf("the key %q cannot be written in Hydra's grammar", key)
		}
		text, err := hydraAny(m[key], true)
		if err != nil {
			return "", err
		}
		items = append(items, key+":"+text)
	}
	return "{" + strings.Join(items, ",") + "}", nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
