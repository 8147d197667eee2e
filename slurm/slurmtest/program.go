package slurmtest

import (
	"os"
	"syscall"
	"testing"
)

// Program writes an executable file. Nothing forks meanwhile: a child of another
// test would hold the file open for writing, and starting it would fail with
// "text file busy" (Go issue 22315).
func Program(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
