package site

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/tomlfile"
)

var update = flag.Bool("update", false, "rewrite the example in docs/site.md")

// TestSiteDocument: docs/site.md holds Example verbatim and explains every key
// that the two files may have.
func TestSiteDocument(t *testing.T) {
	const path, begin, end = "../../docs/site.md", "<!-- example: go test ./internal/site -update -->\n", "<!-- end -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(data), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("docs/site.md has no place for the example")
	}
	want := "```toml site.toml\n" + string(Example(nil, nil)) + "```\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have != want {
		t.Error("the example of docs/site.md is not what tp site init writes: go test ./internal/site -update")
	}
	explained := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(after, -1) {
		for _, key := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			explained[key[1]] = true
		}
	}
	for _, key := range tomlKeys(reflect.TypeOf(siteKeys{})) {
		if !explained[key] && !strings.Contains(after, "`"+key+"`:") {
			t.Errorf("docs/site.md does not explain %s", key)
		}
	}
	for key := range explained {
		if !strings.Contains(strings.Join(tomlKeys(reflect.TypeOf(siteKeys{})), " "), key) {
			t.Errorf("docs/site.md explains %s, which is no key", key)
		}
	}
	// The user file of the example, and what it may not hold.
	user := regexp.MustCompile("(?s)```toml user.toml\n(.*?)```").FindStringSubmatch(after)
	if user == nil {
		t.Fatal("docs/site.md has no user file")
	}
	f, err := tomlfile.Parse("user.toml", []byte(user[1]))
	if err == nil {
		err = f.Decode(new(userKeys))
	}
	if err != nil {
		t.Error(err)
	}
}

// tomlKeys are all names below a type; [defaults] has its own document.
func tomlKeys(typ reflect.Type) []string {
	var out []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := f.Tag.Get("toml")
		if name != "" {
			out = append(out, name)
		}
		inner := f.Type
		if inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && name != "defaults" {
			out = append(out, tomlKeys(inner)...)
		}
	}
	return out
}
