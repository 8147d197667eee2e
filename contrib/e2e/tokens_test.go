package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// jwtFleet makes the release's token door the default fleet.
func (w *world) jwtFleet(lines ...string) {
	w.Helper()
	w.fleet("doored", append([]string{`url = "http://` + w.jwtAddress() + `"`}, lines...)...)
}

// token is one of scontrol for alice.
func (w *world) token(args ...string) string {
	w.Helper()
	out := strings.TrimSpace(w.must(append([]string{"scontrol", "token"}, args...)...))
	token, ok := strings.CutPrefix(out, "SLURM_JWT=")
	if !ok {
		w.Fatalf("scontrol token says %q", out)
	}
	return token
}

// forged is a token that says it is somebody's, without a signature.
func forged(user string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":4102444800,"iat":1700000000,"sun":"`+user+`"}`)) + ".s"
}

// A token of five seconds and ten seconds of thinking at the prompt: the job is
// queued once, with a token made after the answer.
func TestTokenExpiresAtThePrompt(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		jwt   bool
		says  string
	}{
		{"Command", []string{`token_command = ["scontrol", "token", "lifespan=5"]`}, false, ""},
		{"Environment", nil, true, "a fresh token of scontrol is used instead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(w *world) {
				w.experiment("wait", map[string]string{"train": "true"})
				w.commit()
				w.jwtFleet(c.lines...)
				var env []string
				if c.jwt {
					env = []string{"SLURM_JWT=" + w.token("lifespan=5")}
				}
				x := w.terminal(env, "submit", "wait", "--profile", "cpu:1")
				x.until("Submit? [y/N] ")
				time.Sleep(10 * time.Second) // the person thinks
				x.send("y\n")
				screen, code := x.end()
				if code != 0 || !strings.Contains(screen, "tp job logs run-") || !strings.Contains(screen, c.says) {
					w.Errorf("exit code %d, wanted %q on\n%s", code, c.says, screen)
				}
				if jobs := w.jobs("all"); len(jobs) != 1 {
					w.Errorf("%d jobs in Slurm, wanted one: %q\n%s", len(jobs), jobs, screen)
				}
			})
		})
	}
}

// What a shell happens to hold in SLURM_JWT keeps nobody from submitting; what
// the site names as its source does, and so does another user's token.
func TestTokensThatAreNoUse(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("wait", map[string]string{"train": "true"})
		w.commit()
		site, err := os.ReadFile(w.site)
		w.ok(err)
		stale := w.token("lifespan=1")
		file := filepath.Join(w.dir, "token")
		w.ok(os.WriteFile(file, []byte("SLURM_JWT="+stale+"\n"), 0o600))
		w.ok(os.Chown(file, w.uid, w.gid))
		time.Sleep(1100 * time.Millisecond) // for it to be stale
		jobs := 0
		for _, c := range []struct {
			name  string
			jwt   string
			lines []string
			code  int
			says  string
		}{
			{"expired", stale, nil, 0, "SLURM_JWT expired at"},
			{"garbage", "garbage", nil, 0, "SLURM_JWT is no token"},
			{"forged", forged("alice"), nil, 0, "SLURM_JWT was refused"},
			{"another user's", forged("bob"), nil, 5, "a fresh one would be alice's"},
			{"expired file", "", []string{`token_file = "` + file + `"`}, 5, "expired at"},
			{"failing command", "", []string{`token_command = ["false"]`}, 5, "no token"},
		} {
			w.ok(os.WriteFile(w.site, site, 0o644))
			w.jwtFleet(c.lines...)
			var env []string
			if c.jwt != "" {
				env = []string{"SLURM_JWT=" + c.jwt}
			}
			r := w.tpWith(env, "submit", "wait", "--profile", "cpu:1", "--yes")
			if r.code != c.code || !strings.Contains(r.err, c.says) {
				w.Errorf("%s: exit code %d, wanted %d and %q in\n%s", c.name, r.code, c.code, c.says, r.err)
			}
			if c.code == 0 {
				jobs++
			}
			if c.jwt != "" && strings.Contains(r.out+r.err, c.jwt+" ") {
				w.Errorf("%s: the token is shown", c.name)
			}
			if got := len(w.jobs("all")); got != jobs {
				w.Errorf("%s: %d jobs in Slurm, wanted %d", c.name, got, jobs)
			}
		}
	})
}
