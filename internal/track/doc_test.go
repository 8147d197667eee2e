package track

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/ledger"
)

var update = flag.Bool("update", false, "rewrite the table in docs/states.md")

// TestStatesDocument: docs/states.md has the table of this package, and names
// every state of a run with its finality and no other.
func TestStatesDocument(t *testing.T) {
	const path, begin, end = "../../docs/states.md", "<!-- table: go test ./internal/track -update -->\n", "<!-- end -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	before, rest, ok1 := strings.Cut(text, begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("docs/states.md has no place for the table")
	}
	var b strings.Builder
	b.WriteString("| Slurm | run |\n|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s, table[s])
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have != b.String() {
		t.Error("docs/states.md is not what the code says: go test ./internal/track -update")
	}

	states := []ledger.State{ledger.NotSubmitted, ledger.Accepted, ledger.Queued, ledger.Running, ledger.Paused, ledger.Succeeded,
		ledger.Failed, ledger.Timeout, ledger.Preempted, ledger.Cancelled, ledger.Unknown}
	for _, s := range states {
		final := map[bool]string{true: " yes "}[s.Final()]
		if final == "" {
			final = " "
		}
		if !strings.Contains(text, fmt.Sprintf("| %s |%s| ", s, final)) {
			t.Errorf("docs/states.md must explain %s, final: %v", s, s.Final())
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^    (\S+) --> (\S+?)(:|$)`).FindAllStringSubmatch(text, -1) {
		for _, name := range m[1:3] {
			if name != "[*]" && !slices.Contains(states, ledger.State(name)) {
				t.Errorf("the diagram has %s, which is no state of a run", name)
			}
		}
	}
}
