package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/slurm"
)

// TestMain lets the test binary be the steps of the bench.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == stepArg {
		if err := step(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Small sections run whole, say what is missing and leave nothing behind. How
// long anything takes is not a matter of tests.
func TestSmallSections(t *testing.T) {
	if why := need("git", "tar", "zstd", "bash"); why != "" {
		t.Skip(why)
	}
	t.Setenv("TP_SITE", "")
	dir := t.TempDir()
	tp := filepath.Join(t.TempDir(), "tp")
	if err := os.WriteFile(tp, []byte("#!/bin/sh\necho tp for the test\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-small", "-n", "1", "-dir", dir, "-tp", tp}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, name := range []string{"tp --version", "tar | zstd -T0", "tp bundle, cold", "tp bundle, unchanged", "tp bundle, 20 edits"} {
		if !hasTimes(out.String(), name) {
			t.Errorf("%s has no times", name)
		}
	}
	if !strings.Contains(out.String(), "not run: TP_SITE names no site file") || !strings.Contains(out.String(), "MB to send") {
		t.Error("no reason for the missing section, or no bytes to send")
	}
	if t.Failed() {
		t.Log(out.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v left, %v", left, err)
	}
}

func hasTimes(table, name string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, name+"  ") && strings.Contains(line, " ms ") {
			return true
		}
	}
	return false
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-only", "bundles"}, {"-only", "startup,"}, {"-x"}} {
		if err := run(t.Context(), args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestTreeIsTheSame(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, root := range []string{a, b} {
		if err := small.write(context.Background(), root); err != nil {
			t.Fatal(err)
		}
	}
	var sum int64
	for i := range small.files {
		x, err := os.ReadFile(filepath.Join(a, small.name(i)))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, small.name(i)))
		if err != nil || !bytes.Equal(x, y) {
			t.Fatalf("%s: %v", small.name(i), err)
		}
		sum += int64(len(x))
	}
	if off := small.bytes - sum; off < 0 || off > int64(small.files) {
		t.Errorf("%d bytes, want %d", sum, small.bytes)
	}
}

// The ledger that queue makes is one that tp reads: so many runs, and those
// with a job id of the cluster active.
func TestTheLedgerOfQueueIsOne(t *testing.T) {
	root := t.TempDir()
	if err := writeLedger(root, "ann", "lab", 30, []slurm.JobID{7, 8, 9}); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(ledger.Options{Roots: []string{root}, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.List(ledger.Filter{})
	if err != nil || len(all) != 30 || all[0].JobID() != 7 || all[0].State != ledger.Accepted {
		t.Errorf("%d runs, %v", len(all), err)
	}
	if active, err := l.List(ledger.Filter{Active: true}); err != nil || len(active) != 3 {
		t.Errorf("%d active runs, %v", len(active), err)
	}
}
