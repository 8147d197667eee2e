package recipes

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// readBack is what Hydra 1.3.2 makes of a value: a quoted one loses its quotes,
// and backslashes before a quote or the end are halved. False is for what its
// lexer does not take, or reads as something else than a text.
func readBack(text string) (string, bool) {
	if !strings.HasPrefix(text, "'") {
		return text, hydraBare.MatchString(text) && !hydraNumber.MatchString(text) && !hydraWord.MatchString(text) || simpleInterp.MatchString(text)
	}
	var b strings.Builder
	slashes := 0
	for i, r := range text[1:] {
		switch {
		case r == '\\':
			slashes++
			continue
		case r == '\'' && slashes%2 == 0:
			b.WriteString(strings.Repeat(`\`, slashes/2))
			return b.String(), i == len(text)-2
		case r == '\'':
			b.WriteString(strings.Repeat(`\`, slashes/2))
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		slashes = 0
		b.WriteRune(r)
	}
	return "", false
}

func FuzzHydraString(f *testing.F) {
	for _, s := range []string{"", "a b", `it's`, `x\`, `\'`, `\\'`, "1e-5", "null", "Inf", "1_0", "${a.b}", "${mul:${a}, 2}", "實驗", "a,b", "08", ".5", "hf://a", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		for _, item := range []bool{false, true} {
			text := hydraString(s, item)
			if got, ok := readBack(text); !ok || got != s {
				t.Fatalf("%q is written %s and read %q, %v", s, text, got, ok)
			}
		}
	})
}

func FuzzHydraConfig(f *testing.F) {
	for _, s := range []string{flat, "\"+a\": [1e-5, {b: no}]\n", "a: &a [*a]\n", "a: 08\n", "defaults: x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := parseConfig("c.yaml", data, true)
		if err != nil {
			return
		}
		for _, v := range config.Values {
			if v.node.Kind == yaml.ScalarNode {
				budget := maxKeys
				if text, _, err := hydraNode(v.node, &budget, false); err == nil && strings.HasPrefix(text, "'") {
					if got, ok := readBack(text); !ok || got != v.node.Value {
						t.Fatalf("%q is written %s and read %q", v.node.Value, text, got)
					}
				}
			}
		}
	})
}

func TestSchemasAreWhole(t *testing.T) {
	for _, name := range Embedded().Names() {
		r, _ := Embedded().Get(name)
		if r.Keys == nil {
			continue
		}
		for _, version := range r.Framework.Versions {
			keys := r.Keys.at(version)
			if len(keys) < 50 || r.Keys.Source == "" {
				t.Errorf("%s has %d keys at %s", name, len(keys), version)
			}
			for param, p := range r.Params {
				if p, there := p.in(version); there && p.Path != "" {
					if _, ok := keys[p.Path]; !ok {
						t.Errorf("%s %s: the parameter %s has the path %s, which the framework does not have", name, version, param, p.Path)
					}
				}
			}
		}
	}
	for text, want := range map[string]string{"a\tint\t1\n": "expected key", "a\tinteger\t1\tv\n": "expected key", "\tint\t1\tv\n": "expected key"} {
		if _, err := ParseSchema("s.tsv", []byte(text)); err == nil || !strings.Contains(err.Error(), "s.tsv:1: "+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
