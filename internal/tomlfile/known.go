package tomlfile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// unknown finds the first segment of key that the type does not have, and the
// keys it has at that place.
func unknown(key []string, into any) (path, known []string) {
	t := reflect.TypeOf(into)
	for i, name := range key {
		for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
			t = t.Elem()
		}
		if t == nil {
			break
		}
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
			continue
		case reflect.Struct:
			fields := fieldsOf(t)
			if next, ok := fields[name]; ok {
				t = next
				continue
			}
			for k := range fields {
				known = append(known, k)
			}
			slices.Sort(known)
			return key[:i+1], known
		}
		break
	}
	return key, nil
}

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			for k, v := range fieldsOf(field.Type) {
				fields[k] = v
			}
		case name == "":
			fields[strings.ToLower(field.Name)] = field.Type
		default:
			fields[name] = field.Type
		}
	}
	return fields
}

var typeClash = regexp.MustCompile(`cannot decode TOML ([a-z ]+) into .* of type (\S+)$`)

// plain says a type clash in the words of TOML instead of those of Go.
func plain(err *toml.DecodeError) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	part := typeClash.FindStringSubmatch(text)
	if part == nil {
		return text
	}
	want := part[2]
	switch {
	case strings.HasPrefix(want, "[]"):
		want = "a list of " + strings.TrimPrefix(want, "[]") + "s"
	case strings.HasPrefix(want, "map["):
		want = "a table"
	case strings.Contains(want, "int"):
		want = "an integer"
	case strings.Contains(want, "bool"):
		want = "true or false"
	case want == "string":
		want = "a string"
	case strings.Contains(want, "."):
		want = "a table"
	}
	text = "expected " + want + ", found " + article(part[1])
	if key := err.Key(); len(key) > 0 {
		text = strings.Join(key, ".") + ": " + text
	}
	return text
}

func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
