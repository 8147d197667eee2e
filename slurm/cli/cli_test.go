package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// script writes an executable that stands in for a Slurm command.
// scontrol is a directory with a command of that name.
func scontrol(t *testing.T, body string) Tools {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return Tools{Dir: dir}
}

func TestTokenHidesSlurmJWTFromTheChild(t *testing.T) {
	t.Setenv("SLURM_JWT", "stale")
	t.Setenv("SLURM_CONF", "/etc/x.conf")
	tools := scontrol(t, `[ -z "$SLURM_JWT" ] && [ "$SLURM_CONF" = /etc/x.conf ] && [ "$1" = token ] && echo SLURM_JWT=a.b.c`)
	got, err := tools.Token(t.Context())
	if err != nil || got != "a.b.c" {
		t.Errorf("Token = %q, %v", got, err)
	}
}

func TestTokenSaysWhatScontrolSaid(t *testing.T) {
	tools := scontrol(t, `echo "scontrol: error: slurm_fetch_token: Invalid user id" >&2; exit 1`)
	_, err := tools.Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Invalid user id") {
		t.Errorf("error %v does not carry stderr", err)
	}
}

func TestHangingCommandIsCut(t *testing.T) {
	tools := scontrol(t, "sleep 60")
	tools.Timeout = 50 * time.Millisecond
	_, err := tools.Token(context.Background())
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("error %v", err)
	}
}

func TestParseToken(t *testing.T) {
	for out, want := range map[string]string{
		"SLURM_JWT=a.b.c\n":        "a.b.c",
		"export SLURM_JWT=a.b.c\n": "a.b.c",
		"\n a.b.c \n":              "a.b.c",
		"":                         "",
		"Error fetching token":     "",
		"SLURM_JWT=a.b.c\r\nX: y":  "a.b.c",
		"a.b.c d":                  "",
	} {
		if got, err := ParseToken([]byte(out)); got != want || (want == "") != (err != nil) {
			t.Errorf("ParseToken(%q) = %q, %v", out, got, err)
		}
	}
}

func TestParseMine(t *testing.T) {
	line := func(f ...string) string { return strings.Join(f, separator) + "\n" }
	name := "it's a \"test\" #1 $HOME \\ 训练 🚀 | " + separator + " end"
	jobs, err := ParseMine(line("87", "87+0", "PENDING", "ReqNodeNotAvail, UnavailableNodes:cpu-2", "alice", "h200", name) +
		line("88", "87+1", "RUNNING", "None", "alice", "h100", name) +
		line("90", "89_[1-5]", "PENDING", "Resources", "alice", "cpu", ""))
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%v, %v", jobs, err)
	}
	if j := jobs[1]; j.ID != 88 || j.HetJob != 87 || j.HetOffset != 1 || j.State != slurm.Running || j.Name != name {
		t.Errorf("component read as %+v", j)
	}
	if j := jobs[2]; j.HetJob != 0 || j.Name != "" {
		t.Errorf("array read as %+v", j)
	}
	if _, err := ParseMine("squeue: something new\n"); err == nil {
		t.Error("a strange line is no error")
	}
}

func FuzzParseMine(f *testing.F) {
	f.Add("1\x1f1+0\x1fPENDING\x1fNone\x1fa\x1fcpu\x1fn\n")
	f.Fuzz(func(t *testing.T, out string) { _, _ = ParseMine(out) })
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte("SLURM_JWT=a.b.c\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if token, err := ParseToken(out); err == nil && strings.ContainsAny(token, " \r\n") {
			t.Fatalf("token %q", token)
		}
	})
}
