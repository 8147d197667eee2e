package rest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/rest"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// pong is an answer to any request, as the shell says it.
const pong = `answer() { # the next request, with its body
	length=0
	read -r line || exit 0
	echo "$line" | tr -d '\r' >>"$0.log"
	while read -r header && [ "$header" != "$(printf '\r')" ]; do
		case $header in [Cc]ontent-[Ll]ength:*) length=$(echo "${header#*:}" | tr -cd 0-9) ;; esac
	done
	[ "$length" = 0 ] || head -c "$length" >/dev/null
	body=$1
	printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body"
}
up='{"pings":[{"responding":true,"ping":"UP"}],"meta":{"slurm":{"release":"24.11.5","cluster":"lab"}}}'
`

// fakeRestd is a slurmrestd of the shell: -V prints a version, else main runs
// with the arguments after "-a rest_auth/local".
func fakeRestd(t *testing.T, version, main string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slurmrestd")
	text := "#!/bin/bash\necho $$ \"$@\" >>\"$0.starts\"\nenv >\"$0.env\"\n[ \"$1\" != -V ] || { echo slurm " + version + "; exit; }\nshift 2\n" + pong + main + "\n"
	slurmtest.Program(t, path, text)
	return path
}

// starts are the argument lists of the processes so far, without -V.
func starts(t *testing.T, path string) (args []string, pids []int) {
	t.Helper()
	raw, err := os.ReadFile(path + ".starts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, n)
		if rest != "-V" {
			args = append(args, rest)
		}
	}
	return args, pids
}

// gone waits until none of the processes, nor any of their groups, is left.
func gone(t *testing.T, pids []int) {
	t.Helper()
	end := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for syscall.Kill(-pid, 0) == nil || syscall.Kill(pid, 0) == nil {
			if time.Now().After(end) {
				t.Errorf("process %d is left", pid)
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func private(t *testing.T, binary string, o rest.Options) *rest.Client {
	t.Helper()
	o.Binary = binary
	c := client(t, o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestChildServesManyRequests(t *testing.T) {
	t.Setenv("SLURM_JWT", "a.b.c")
	t.Setenv("SLURMRESTD_LISTEN", ":6820")
	t.Setenv("SLURM_CONF", "/x/slurm.conf")
	bin := fakeRestd(t, "24.11.5", `while answer "$up"; do :; done`)
	c := private(t, bin, rest.Options{Self: "alice"})
	if _, err := c.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := c.Info(t.Context())
	if err != nil || info.Transport != "a private slurmrestd v0.0.42 ("+bin+")" || c.User() != "alice" {
		t.Errorf("%+v, %v, %s", info, err, c.User())
	}
	args, pids := starts(t, bin)
	if len(args) != 1 || args[0] != "-a rest_auth/local" {
		t.Errorf("started as %q", args)
	}
	env, err := os.ReadFile(bin + ".env")
	if err != nil || strings.Contains(string(env), "SLURM_JWT") || strings.Contains(string(env), "SLURMRESTD") || !strings.Contains(string(env), "SLURM_CONF=/x/slurm.conf") {
		t.Errorf("%v, environment:\n%s", err, env)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	gone(t, pids)
}

// 22.05 without slurmdbd ends when it loads the accounting plugins; a newer
// binary than remembered has not the plugins of the old one.
func TestChildArguments(t *testing.T) {
	for what, c := range map[string]struct {
		version, hint, refuse, last string
		tries                       int
	}{
		"22.05":                  {"22.05.8", "", "none", "-s openapi/v0.0.38,openapi/dbv0.0.38", 1},
		"22.05 without slurmdbd": {"22.05.8", "", "*db*", "-s openapi/v0.0.38", 2},
		"22.05 remembered":       {"22.05.8", "v0.0.38", "*db*", "-s openapi/v0.0.38", 2},
		"updated":                {"24.11.5", "v0.0.38", "*openapi*", "", 3},
		"23.11 without slurmdbd": {"23.11.4", "", "", "-s openapi/slurmctld", 2},
		"unknown":                {"99.11.4", "", "none", "", 1},
	} {
		bin := fakeRestd(t, c.version, `case "$*" in '`+c.refuse+`') exit 9 ;; `+c.refuse+`) echo "slurmrestd: fatal: slurmdbd is not configured" >&2; exit 1 ;; esac
			while answer "$up"; do :; done`)
		if c.refuse == "" {
			bin = fakeRestd(t, c.version, `[ -n "$*" ] || { echo "slurmrestd: fatal: slurmdbd is not configured" >&2; exit 1; }
			while answer "$up"; do :; done`)
		}
		if _, err := private(t, bin, rest.Options{Dialect: c.hint}).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		args, _ := starts(t, bin)
		if want := strings.TrimSpace("-a rest_auth/local " + c.last); len(args) != c.tries || args[len(args)-1] != want {
			t.Errorf("%s: started as %q, want %d times and at last %q", what, args, c.tries, want)
		}
	}
}

// What a child dies of is the error, and a submission that it never read was
// not sent.
func TestChildThatDies(t *testing.T) {
	const fatal = `echo "slurmrestd: Some news" >&2; echo "slurmrestd: fatal: slurmrestd should not be run as the root user." >&2; exit 1`
	for what, c := range map[string]struct {
		main    string
		says    string
		notSent bool
	}{
		"at its start": {fatal, "slurmrestd should not be run as the root user.", true},
		"in silence":   {"exit 0", "EOF", true},
		"by a signal":  {"kill -9 $$", "killed", true},
		"at the submission": {`answer "$up"; read -r line; echo "[2026-11-30T14:23:14.045] error: slurm_send_recv: Zero Bytes" >&2; exit 3`,
			"Zero Bytes", false},
		"talks too much": {`head -c 9999999 /dev/zero | tr '\0' x >&2; printf '\n\033[2Jfatal: \033[31mred\033[0m\n' >&2; exit 1`, "[31mred", true},
	} {
		bin := fakeRestd(t, "24.11.5", c.main)
		client := private(t, bin, rest.Options{})
		start := time.Now()
		sub, err := client.Submit(t.Context(), request())
		var u *slurm.Unreachable
		if !errors.As(err, &u) || u.NotSent != c.notSent || sub.ID != 0 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", what, sub, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 600) {
			t.Errorf("%s: %q", what, err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%s: took %s", what, took)
		}
	}
	c := private(t, "/nonexistent/slurmrestd", rest.Options{})
	var u *slurm.Unreachable
	if _, err := c.Submit(t.Context(), request()); !errors.As(err, &u) || !u.NotSent || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
}

// A child that hangs is killed with all that it started, by time-out and by
// the caller.
func TestChildThatHangs(t *testing.T) {
	bin := fakeRestd(t, "24.11.5", `trap '' TERM; sleep 100 & wait`)
	start := time.Now()
	_, err := private(t, bin, rest.Options{Timeout: 200 * time.Millisecond}).Ping(t.Context())
	if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "no answer within 200ms") || took > 3*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	_, pids := starts(t, bin)
	gone(t, pids)

	bin = fakeRestd(t, "24.11.5", `answer "$up"; sleep 100 & wait`)
	c := private(t, bin, rest.Options{})
	if _, err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = c.Submit(ctx, request())
	var u *slurm.Unreachable
	if !errors.As(err, &u) || u.NotSent {
		t.Errorf("%v", err)
	}
	_, pids = starts(t, bin)
	gone(t, pids)
}

// 26.05 says Connection: Close after the answer. What comes there is no part
// of it, and the child is not used again.
func TestChildWithStrayLine(t *testing.T) {
	bin := fakeRestd(t, "26.05.5", `answer "$up"; printf 'Connection: Close\r\n'; sleep 5`)
	c := private(t, bin, rest.Options{})
	for range 2 {
		if info, err := c.Ping(t.Context()); err != nil || info.Release != "24.11.5" {
			t.Errorf("%+v, %v", info, err)
		}
		time.Sleep(20 * time.Millisecond) // for the line to be seen
	}
	if args, _ := starts(t, bin); len(args) != 2 {
		t.Errorf("%d children", len(args))
	}
}

// The submission goes to the child that has answered, once.
func TestChildSubmits(t *testing.T) {
	bin := fakeRestd(t, "24.11.5", `answer "$up"; answer '{"job_id":12}'; answer '{"job_id":13}'`)
	c := private(t, bin, rest.Options{})
	if _, err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	sub, err := c.Submit(t.Context(), request())
	if err != nil || sub.ID != 12 {
		t.Errorf("%+v, %v", sub, err)
	}
	log, err := os.ReadFile(bin + ".log")
	if want := "GET /slurm/v0.0.42/ping HTTP/1.1\nPOST /slurm/v0.0.42/job/submit HTTP/1.1\n"; err != nil || string(log) != want {
		t.Errorf("%v: asked\n%s", err, log)
	}
	if args, _ := starts(t, bin); len(args) != 1 {
		t.Error(fmt.Sprintln(len(args), "children"))
	}
}
