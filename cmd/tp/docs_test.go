package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/recipes"
)

// TestLabDocument reads every example of docs/lab.md with the code that reads
// the real files, and holds its tables against the parsers.
func TestLabDocument(t *testing.T) {
	data, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	blocks := regexp.MustCompile("(?ms)^```(\\w+) (\\S+)( refused)?\n(.*?)^```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 5 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		name, refused, body := b[2], b[3] != "", []byte(b[4])
		if err := readExample(t, name, body); (err != nil) != refused {
			t.Errorf("the example of %s, refused %v: %v", name, refused, err)
		}
	}
	for _, key := range tagged(reflect.TypeOf(spec.JobKeys{})) {
		if !strings.Contains(text, "\n| `"+key+"` | ") {
			t.Errorf("docs/lab.md does not explain %s", key)
		}
	}
	for _, m := range regexp.MustCompile("`(--[a-z-]+|-[a-z])").FindAllStringSubmatch(text, -1) {
		if reference, err := os.ReadFile("../../docs/reference.md"); err != nil || !strings.Contains(string(reference), m[1]) {
			t.Errorf("docs/lab.md speaks of %s, which is no flag", m[1])
		}
	}
	formats(t, text)
}

func readExample(t *testing.T, name string, body []byte) error {
	switch name {
	case "job.toml":
		_, err := lab.ParseJob(name, body)
		return err
	case "tp.toml":
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			return err
		}
		_, err := lab.Find(dir, lab.Options{})
		return err
	case "config.yaml":
		_, err := recipes.ParseConfig(name, body)
		return err
	case "recipe.lock.json":
		_, err := recipes.ParseLock(body)
		return err
	}
	t.Errorf("nothing reads %s", name)
	return nil
}

// formats holds "| `text` | value |" rows against the parsers.
func formats(t *testing.T, text string) {
	rows := func(section string, columns int) [][]string {
		_, rest, _ := strings.Cut(text, "<!-- "+section+" -->")
		body, _, ok := strings.Cut(rest, "<!-- end -->")
		var out [][]string
		for line := range strings.Lines(body) {
			if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == columns && strings.Contains(cells[0], "`") {
				for i := range cells {
					cells[i] = strings.Trim(cells[i], " `")
				}
				out = append(out, cells)
			}
		}
		if !ok || len(out) < 5 {
			t.Errorf("section %s has %d rows", section, len(out))
		}
		return out
	}
	check := func(row []string, got int64, err error) {
		if refused := row[1] == "refused"; (err != nil) != refused || !refused && row[1] != strconv.FormatInt(got, 10) {
			t.Errorf("%s is said to be %s; it is %d, %v", row[0], row[1], got, err)
		}
	}
	for _, row := range rows("time", 2) {
		minutes, err := spec.ParseTime(row[0])
		check(row, int64(minutes), err)
	}
	for _, row := range rows("memory", 2) {
		mib, err := spec.ParseMemory(row[0])
		check(row, mib, err)
	}
	registry := &site.Registry{Series: []site.Series{
		{Name: "h200", GRES: "gpu:h200", Devices: 8, Nodes: 1, PerNode: 8, Partitions: []string{"gpu"}}, {Name: "cpu", Nodes: 1, Partitions: []string{"cpu"}}}}
	for _, row := range rows("profiles", 3) {
		p, err := spec.ParseProfile(row[0])
		if err != nil {
			t.Error(err)
			continue
		}
		roles := strings.Join(p.Roles, ", ")
		if roles == "" {
			roles = "all"
		}
		nodes, per, _, err := registry.Resolve(p)
		if got := strconv.Itoa(nodes) + " × " + strconv.Itoa(per); err != nil || got != row[2] || roles != row[1] {
			t.Errorf("%s is said to be %s of %s; it is %s of %s, %v", row[0], row[2], row[1], got, roles, err)
		}
	}
}

func tagged(typ reflect.Type) []string {
	var out []string
	for i := range typ.NumField() {
		if name := typ.Field(i).Tag.Get("toml"); name != "" {
			out = append(out, name)
		}
	}
	return out
}
