package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/site"
)

// Whatever a site file may say, a lab may not: each key of the example is
// refused in tp.toml by name, but for the defaults of jobs.
func TestSiteKeysAreRefusedInALab(t *testing.T) {
	example := string(site.Example(nil, nil))
	keys := map[string]string{} // key: TOML
	table := ""
	for line := range strings.Lines(example) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "# ")
		if m := regexp.MustCompile(`^\[([a-z]+)(\.\w+)?\]`).FindStringSubmatch(line); m != nil {
			table = m[1]
			keys[table] = line
		} else if m := regexp.MustCompile(`^([a-z_]+) = `).FindStringSubmatch(line); m != nil && table == "" {
			keys[m[1]] = line
		}
	}
	delete(keys, "defaults")
	if len(keys) < 8 {
		t.Fatalf("the example shows the keys %v only", keys)
	}
	for key, text := range keys {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tp.toml"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := lab.Find(dir, lab.Options{Trust: []string{dir}})
		if want := fmt.Sprintf("%s is refused in a lab", key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, wanted %q", text, err, want)
		}
	}
}
