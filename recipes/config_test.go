package recipes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What 1.1 readers see otherwise travels in the overrides; what is two
// different numbers is refused.
func TestScalarsByTheCoreSchema(t *testing.T) {
	for _, c := range []struct {
		text    string
		kind    Type
		json    string
		differs bool
	}{
		{"1e-5", Float, "1e-5", true}, {"12345e7", Float, "12345e7", true}, {"1.5e-3", Float, "1.5e-3", false}, {"0.10", Float, "0.10", false},
		{"no", Str, `"no"`, true}, {"on", Str, `"on"`, true}, {"'no'", Str, `"no"`, false}, {"1:30", Str, `"1:30"`, true}, {"2024-01-01", Str, `"2024-01-01"`, true},
		{"10", Int, "10", false}, {"-3", Int, "-3", false}, {"0", Int, "0", false}, {"+1", Int, "1", false}, {"0x1F", Int, "31", false}, {".5", Float, "0.5", false},
		{"1.", Float, "1", false}, {".inf", Float, "", false}, {"true", Bool, "true", false}, {"TRUE", Bool, "true", false}, {"null", "", "null", false},
		{"~", "", "null", false}, {"'08'", Str, `"08"`, false}, {"!!str 08", Str, `"08"`, false}, {"${a.b}", Str, `"${a.b}"`, false}, {"1.2.3", Str, `"1.2.3"`, false},
	} {
		config, err := ParseConfig("c.yaml", []byte("k: "+c.text+"\n"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		v, _ := config.Find("k")
		if v.Type != c.kind || v.JSON != c.json || v.Differs != c.differs {
			t.Errorf("%s: %+v, want %s %s %v", c.text, v, c.kind, c.json, c.differs)
		}
	}
	for text, want := range map[string]string{
		"08":        "c.yaml:1:4: k: 08 is a number to some YAML readers and a text to others; write 8, or put it in quotes",
		"010":       "octal",
		"0o7":       "number to some",
		"1_000":     "number to some",
		"0b11":      "number to some",
		".5e3":      "write 500",
		"!!int '1'": "the tag !!int is not read",
		"[1, 010]":  "octal",
		"[.nan]":    "cannot stand in a list",
		"!x y":      "the tag !x is not read",
	} {
		if _, err := ParseConfig("c.yaml", []byte("k: "+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestConfigPaths(t *testing.T) {
	config, err := ParseConfig("c.yaml", []byte("base: &b {x: 1, y: 2}\na:\n  <<: *b\n  y: 3\nl: [1e-5, {k: no}]\ne: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, v := range config.Values {
		got += v.Path + "=" + v.Text + " "
	}
	if want := `base.x=1 base.y=2 a.y=3 a.x=1 l=[1e-5,{"k":"no"}] e={} `; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if v, _ := config.Find("l"); !v.Differs {
		t.Error("a list with 1e-5 is read alike by all")
	}
	for _, text := range []string{"a: [\n", "a: 1\n---\nb: 2\n", "? [x]\n: 1\n", "a: *nowhere\n", "\t- x: y"} {
		if _, err := ParseConfig("c.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "null\n"} {
		if config, err := ParseConfig("c.yaml", []byte(text)); err != nil || len(config.Values) > 0 {
			t.Errorf("%q: %v, %v", text, config, err)
		}
	}
}

func TestAliasesOfAliasesEnd(t *testing.T) {
	lists, maps := "n0: &n0 [x, x]\n", "n0: &n0 {x: 1}\n"
	for i := 1; i < 40; i++ {
		lists += fmt.Sprintf("n%d: &n%d [*n%d, *n%d]\n", i, i, i-1, i-1)
		maps += fmt.Sprintf("n%d: &n%d {<<: [*n%d, *n%d]}\n", i, i, i-1, i-1)
	}
	for _, text := range []string{lists, maps} {
		if _, err := ParseConfig("c.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "too ") {
			t.Errorf("an exponential document: %v", err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{flat, "a: &a [*a]\n", "<<: {a: 1}\n", "k: 1e-5", "? x\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := ParseConfig("c.yaml", data)
		if err != nil {
			return
		}
		for _, v := range config.Values {
			if v.JSON != "" && !json.Valid([]byte(v.JSON)) {
				t.Fatalf("%q: %q is no JSON", v.Text, v.JSON)
			}
		}
	})
}
