package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/site"
)

// What killed processes left unfinished goes after a day, and not before.
func TestTickSweeps(t *testing.T) {
	root := t.TempDir()
	a := &app{me: "ann", conf: &site.Config{RunRoot: filepath.Join(root, "runs"), StateDir: filepath.Join(root, "state")}}
	for _, dir := range []string{"runs/ann/hello", "runs/ann", "state/plans", "state"} {
		for name, age := range map[string]time.Duration{durable.TempPrefix + "old": 2 * sweepAge, durable.TempPrefix + "new": 0, "run-000000000000": 2 * sweepAge} {
			path := filepath.Join(root, dir, name)
			if err := os.MkdirAll(filepath.Join(path, "logs"), 0o700); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-age)
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.sweep()
	for _, dir := range []string{"runs/ann/hello", "runs/ann", "state/plans", "state"} {
		for name, want := range map[string]bool{durable.TempPrefix + "old": false, durable.TempPrefix + "new": true, "run-000000000000": true} {
			if _, err := os.Stat(filepath.Join(root, dir, name)); (err == nil) != want {
				t.Errorf("%s/%s: %v", dir, name, err)
			}
		}
	}
}
