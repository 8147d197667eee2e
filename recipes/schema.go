package recipes

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Schema holds the keys that a framework's configuration has, by version, as
// they were read from its own source; docs/recipes.md tells how.
type Schema struct {
	Source string // first line of the file: where the keys come from
	rows   []schemaRow
	mu     sync.Mutex
	by     map[string]map[string]SchemaKey
}

// SchemaKey is one key: its type ("int", "float", "bool", "str", "list",
// "map", "group", "null" and "any" where nothing says) and default.
type SchemaKey struct{ Type, Default string }

type schemaRow struct {
	path string
	SchemaKey
	versions []string
}

var schemaTypes = []string{"int", "float", "bool", "str", "list", "map", "null", "any", "interp", "group"}

// ParseSchema reads lines of four fields with tabs between them: key, type,
// default, versions.
func ParseSchema(name string, data []byte) (*Schema, error) {
	s := &Schema{by: map[string]map[string]SchemaKey{}}
	scan := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; scan.Scan(); n++ {
		line := scan.Text()
		if strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
			return nil, fmt.Errorf("%s:%d: a control character", name, n)
		}
		if text, ok := strings.CutPrefix(line, "# "); ok {
			if n == 1 {
				s.Source = text
			}
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[0] == "" || f[3] == "" || !slices.Contains(schemaTypes, f[1]) {
			return nil, fmt.Errorf("%s:%d: expected key, type, default and versions", name, n)
		}
		s.rows = append(s.rows, schemaRow{f[0], SchemaKey{f[1], f[2]}, strings.Fields(f[3])})
	}
	return s, scan.Err()
}

// at is all keys of one version.
func (s *Schema) at(version string) map[string]SchemaKey {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keys, ok := s.by[version]; ok {
		return keys
	}
	keys := map[string]SchemaKey{}
	for _, row := range s.rows {
		if slices.Contains(row.versions, version) {
			keys[row.path] = row.SchemaKey
		}
	}
	s.by[version] = keys
	return keys
}

// elsewhere lists the versions that have a key.
func (s *Schema) elsewhere(path string) []string {
	var all []string
	for _, row := range s.rows {
		if row.path == path {
			all = append(all, row.versions...)
		}
	}
	slices.SortFunc(all, compareVersions)
	return all
}

// missing says why a key cannot be used at a version: another version has it,
// a near one is meant, or its parent is closed. Empty: nothing is known.
func (s *Schema) missing(kind, version, path string) (text string, certain bool) {
	keys := s.at(version)
	if other := s.elsewhere(path); len(other) > 0 {
		return fmt.Sprintf("%s %s has no such key; %s has it", kind, version, strings.Join(other, ", ")), true
	}
	for known := range keys {
		if strings.HasPrefix(known, path+".") {
			return "holds several values; set one of them, such as " + firstBelow(keys, path+"."), true
		}
	}
	near := meant(path, nil, slices.Sorted(maps.Keys(keys)))
	return fmt.Sprintf("%s %s has no such key%s", kind, version, didYouMean(near)), false
}

func firstBelow(keys map[string]SchemaKey, prefix string) string {
	best := ""
	for known := range keys {
		if strings.HasPrefix(known, prefix) && (best == "" || known < best) {
			best = known
		}
	}
	return best
}

// compareVersions orders "0.9.1" before "0.10.0" by their numbers.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, err1 := strconv.Atoi(x[i])
		n, err2 := strconv.Atoi(y[i])
		switch {
		case err1 == nil && err2 == nil && m != n:
			return m - n
		case (err1 != nil || err2 != nil) && x[i] != y[i]:
			return strings.Compare(x[i], y[i])
		}
	}
	return len(x) - len(y)
}

// nearestVersion is version if the recipe was checked against it, else the
// newest before it, else the oldest of all.
func (v Versions) nearest(version string) string {
	if slices.Contains(v.Versions, version) {
		return version
	}
	sorted := slices.SortedFunc(slices.Values(v.Versions), compareVersions)
	best := sorted[0]
	for _, known := range sorted {
		if version != "" && compareVersions(known, version) <= 0 {
			best = known
		}
	}
	if version == "" {
		return v.Default
	}
	return best
}
