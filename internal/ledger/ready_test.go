package ledger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ready finds what would keep Create from working, and makes nothing.
func TestReady(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for root, words := range map[string]string{
		dir: "", filepath.Join(dir, "a", "b"): "", file: "file is no directory", filepath.Join(file, "a", "b"): "file is no directory",
	} {
		l, err := Open(Options{Roots: []string{root}, User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		err = l.Ready()
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s: %v, want %q", root, err, words)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("made %v", left)
	}
}
