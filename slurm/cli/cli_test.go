package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// script writes an executable that stands in for a Slurm command.
// scontrol is a directory with a command of that name.
func scontrol(t *testing.T, body string) Tools {
	t.Helper()
	dir := t.TempDir()
	slurmtest.Program(t, filepath.Join(dir, "scontrol"), "#!/bin/sh\n"+body)
	return Tools{Dir: dir}
}

func TestTokenHidesSlurmJWTFromTheChild(t *testing.T) {
	t.Setenv("SLURM_JWT", "stale")
	t.Setenv("SLURM_CONF", "/etc/passwd")
	tools := scontrol(t, `[ -z "$SLURM_JWT" ] && [ "$SLURM_CONF" = /etc/passwd ] && [ "$1" = token ] && echo SLURM_JWT=a.b.c`)
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

func TestParseStates(t *testing.T) {
	line := func(f ...string) string { return strings.Join(f, separator) + endOfJob + "\n" }
	name := "it's a \"test\" #1 $HOME \\ 训练 🚀 | " + separator + " \n end"
	when := "2026-11-30T18:47:28"
	jobs, err := parseStates("CLUSTER: lab\n" + line("87", "87+0", "87", "N/A", "PENDING", "ReqNodeNotAvail, UnavailableNodes:cpu-2", "alice", "h200", when, "N/A", "N/A", "2", "1:00:00", name) +
		line("88", "88", "88", "N/A", "COMPLETING", "None", "alice", "h100", when, when, when, "1", "UNLIMITED", name) +
		line("89", "89_[2-5%2]", "89", "2-5%2", "PENDING", "Resources", "alice", "cpu", when, "N/A", "N/A", "1", "2-00:00:00", "") +
		line("90", "87+1", "90", "N/A", "RUNNING", "None", "alice", "h100", when, when, "N/A", "1", "30:00", "x"))
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%v, %v", jobs, err)
	}
	if j := jobs[0]; j.ID != 87 || j.HetJob != 87 || j.Reason != "ReqNodeNotAvail" || j.Description == "" || j.Name != name || j.TimeLimit != 60 || j.Submit.IsZero() || !j.Start.IsZero() {
		t.Errorf("leader read as %+v", j)
	}
	if j := jobs[1]; j.HetJob != 0 || j.ArrayJob != 0 || j.State != slurm.Running || !j.Has("COMPLETING") || j.TimeLimit != slurm.Unlimited {
		t.Errorf("plain job read as %+v", j)
	}
	if j := jobs[2]; j.ArrayJob != 89 || j.ArrayTask != "2-5%2" || j.Name != "" || j.TimeLimit != 2880 {
		t.Errorf("array read as %+v", j)
	}
	if j := jobs[3]; j.ID != 90 || j.HetJob != 87 || j.HetOffset != 1 || j.TimeLimit != 30 {
		t.Errorf("component read as %+v", j)
	}
	if _, err := parseStates("squeue: something new\n"); err == nil {
		t.Error("a strange line is no error")
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add([]byte("SLURM_JWT=a.b.c\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if token, err := ParseToken(out); err == nil && strings.ContainsAny(token, " \r\n") {
			t.Fatalf("token %q", token)
		}
	})
}
