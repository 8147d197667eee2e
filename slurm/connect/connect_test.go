package connect_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/connect"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// server answers pings in v0.0.42, only to the token if there is one.
func server(t *testing.T, token string) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("X-SLURM-USER-TOKEN") != token {
			http.Error(w, "Authentication failure", http.StatusUnauthorized)
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/slurm/v0.0.42/") {
			http.Error(w, "Unable find requested URL.", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"pings":[{"responding":true}],"meta":{"slurm":{"release":"24.11.5","cluster":"lab"}}}`))
	}))
	t.Cleanup(h.Close)
	return h.URL
}

func write(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// tools is a directory of commands, a name and its shell text each.
func tools(t *testing.T, nameAndText ...string) cli.Tools {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(nameAndText); i += 2 {
		slurmtest.Program(t, filepath.Join(dir, nameAndText[i]), "#!/bin/sh\n"+nameAndText[i+1]+"\n")
	}
	return cli.Tools{Dir: dir}
}

func TestFirstThatAnswers(t *testing.T) {
	good := server(t, "")
	none := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	tokens := tools(t, "scontrol", "echo SLURM_JWT=a.b.c")
	client, choice, err := connect.Open(t.Context(), connect.Fleet{URLs: []string{none}, User: "alice"}, connect.Options{EnvURL: good, Tools: tokens})
	if choice.User != "alice" || choice.Way != connect.URL {
		t.Errorf("%+v", choice)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := client.Info(t.Context()); err != nil || info.Cluster != "lab" || info.Account {
		t.Errorf("%+v, %v", info, err)
	}
	if choice.URL != good || choice.Transport != "slurmrestd v0.0.42 at "+good+" (token)" {
		t.Errorf("%+v", choice)
	}
	if len(choice.Rejected) != 1 || choice.Rejected[0].What != none || choice.Rejected[0].Err == nil {
		t.Errorf("rejected: %+v", choice.Rejected)
	}
}

func TestFailureListsEveryWayInOneLineEach(t *testing.T) {
	locked := server(t, "right.right.right")
	f := connect.Fleet{Name: "gpu", URLs: []string{"unix:///nonexistent/rest.sock", "gopher://x", locked}, TokenFile: write(t, 0o600, "wrong.wrong.wrong"), Order: []connect.Way{connect.URL}}
	_, _, err := connect.Open(t.Context(), f, connect.Options{Timeout: time.Second})
	var auth *slurm.AuthError
	if !errors.As(err, &auth) {
		t.Errorf("no AuthError in %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 || lines[0] != "cluster gpu cannot be reached" || !strings.Contains(lines[3], "token expired or invalid") {
		t.Errorf("%s", err)
	}
	if strings.Contains(err.Error(), "wrong.wrong") {
		t.Error("the token is in the error")
	}
	if _, _, err := connect.Open(t.Context(), connect.Fleet{Order: []connect.Way{connect.URL}}, connect.Options{}); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("without an address: %v", err)
	}
}

// pipe has no writer, so opening it would wait.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenSources(t *testing.T) {
	const token = "x.y.z"
	url := server(t, token)
	jwt := "SLURM_JWT=" + token + "\n"
	for what, c := range map[string]struct {
		f        connect.Fleet
		o        connect.Options
		ok       bool
		warnings int
	}{
		"file":               {f: connect.Fleet{TokenFile: write(t, 0o600, jwt)}, ok: true},
		"open file":          {f: connect.Fleet{TokenFile: write(t, 0o644, token)}, ok: true, warnings: 1},
		"pipe":               {f: connect.Fleet{TokenFile: pipe(t)}},
		"missing file":       {f: connect.Fleet{TokenFile: "/nonexistent", TokenEnv: true}, o: connect.Options{JWT: token}},
		"command":            {f: connect.Fleet{TokenCommand: []string{write(t, 0o755, "#!/bin/sh\necho "+token)}}, ok: true},
		"failing command":    {f: connect.Fleet{TokenCommand: []string{"/bin/false"}}},
		"environment":        {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: token}, ok: true},
		"unset":              {f: connect.Fleet{TokenEnv: true}, o: connect.Options{Tools: cli.Tools{Dir: "/nonexistent"}}},
		"garbage":            {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: "garbage", Tools: tools(t, "scontrol", "echo "+jwt)}, ok: true, warnings: 1},
		"stale":              {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: claims(`{"exp":1,"sun":"` + me(t) + `"}`), Tools: tools(t, "scontrol", "echo "+jwt)}, ok: true, warnings: 1},
		"refused":            {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: "r.r.r", Tools: tools(t, "scontrol", "echo "+jwt)}, ok: true, warnings: 1},
		"refused of another": {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: claims(`{"sun":"stranger"}`), Tools: tools(t, "scontrol", "echo "+jwt)}},
		"refused for good":   {f: connect.Fleet{TokenEnv: true}, o: connect.Options{JWT: "r.r.r", Tools: cli.Tools{Dir: "/nonexistent"}}},
		"scontrol":           {o: connect.Options{Tools: tools(t, "scontrol", "echo "+jwt)}, ok: true},
		"missing scontrol":   {o: connect.Options{Tools: cli.Tools{Dir: "/nonexistent"}}},
	} {
		c.f.URLs, c.f.Order = []string{url}, []connect.Way{connect.URL}
		_, choice, err := connect.Open(context.Background(), c.f, c.o)
		var auth *slurm.AuthError
		if (err == nil) != c.ok || len(choice.Warnings) != c.warnings || err != nil && !errors.As(err, &auth) {
			t.Errorf("%s: %v, warnings %q", what, err, choice.Warnings)
		}
	}
}

// claims is a token without a signature.
func claims(text string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".s"
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// squeue of another cluster must not answer "none" for this one.
func TestForeignSqueueIsNotBelieved(t *testing.T) {
	url := server(t, "")
	for cluster, want := range map[string]error{"other": slurm.ErrCannotLookUp, "lab": nil} {
		commands := tools(t, "scontrol", "[ $1 = token ] && echo a.b.c || echo 'ClusterName             = "+cluster+"'", "squeue", "true")
		client, _, err := connect.Open(t.Context(), connect.Fleet{URLs: []string{url}}, connect.Options{Tools: commands})
		if err != nil {
			t.Fatal(err)
		}
		if jobs, err := client.JobsByName(t.Context(), "alice", "n"); !errors.Is(err, want) || len(jobs) != 0 {
			t.Errorf("squeue of %s: %v, %v", cluster, jobs, err)
		}
	}
}
