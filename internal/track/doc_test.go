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
	"github.com/tuneplane/tp/slurm"
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

	// Every value that JOB_STATE has in the dialects v0.0.38 to v0.0.45 (openapi of
	// 22.05 to 26.05), placeholders left out.
	for _, name := range strings.Fields("PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY " +
		"LAUNCH_FAILED UPDATE_DB REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED RECONFIG_FAIL POWER_UP_NODE REVOKED REQUEUE_FED " +
		"RESV_DEL_HOLD SIGNALING STAGE_OUT EXPEDITING") {
		_, base := table[slurm.State(name)]
		alone, flag := slurm.Flags()[name]
		if base == flag {
			t.Errorf("%s must be a base state or a flag: %v, %v", name, base, flag)
		}
		if flag && !strings.Contains(text, fmt.Sprintf("| `%s` | %s | ", name, FromJobs([]slurm.Job{{State: alone, Reason: "BeginTime"}}).State)) {
			t.Errorf("docs/states.md has no row for %s with %s", name, FromJobs([]slurm.Job{{State: alone, Reason: "BeginTime"}}).State)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| ([A-Z]+) \\| ").FindAllStringSubmatch(text, -1) {
		if _, ok := slurm.Flags()[m[1]]; !ok {
			t.Errorf("docs/states.md has a flag %s that the code does not know", m[1])
		}
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
