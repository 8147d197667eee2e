package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFallback: another way stands in for an address that fails, once and
// aloud, as the same user on the same cluster only.
func TestFallback(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("wait", map[string]string{"train": "true"})
		w.commit()
		site, err := os.ReadFile(w.site)
		w.ok(err)
		cluster := "devlab" + w.release[:2]
		door := "http://" + w.jwtAddress()
		const dead = "http://127.0.0.1:1"
		token := filepath.Join(w.dir, "token")
		w.ok(os.WriteFile(token, []byte(forged("alice")+"\n"), 0o600))
		w.ok(os.Chown(token, w.uid, w.gid))
		jobs := 0
		for _, c := range []struct {
			name  string
			lines []string
			args  []string
			code  int
			says  string
		}{
			{"dead address", []string{"url = " + q(dead), "cluster = " + q(cluster)}, nil, 0, "is reached through a private slurmrestd"},
			{"dead address, no program", []string{"url = " + q(dead), "cluster = " + q(cluster), `slurmrestd = "/nonexistent/slurmrestd"`}, nil, 0, "commands in /usr/bin (sbatch) instead of " + dead},
			{"order", []string{`transports = ["cli", "child"]`}, nil, 0, "commands in /usr/bin (sbatch)"},
			{"flag over the site file", []string{`transports = ["cli", "child"]`}, []string{"--transport", "child"}, 0, "a private slurmrestd"},
			{"no fallback", []string{"url = " + q(dead), "cluster = " + q(cluster), "fallback = false"}, nil, 6, "fallback = false"},
			{"another cluster", []string{"url = " + q(dead), `cluster = "elsewhere"`}, nil, 6, "it is cluster " + cluster + ", not elsewhere"},
			{"an unknown cluster", []string{"url = " + q(dead)}, nil, 6, "cluster = NAME under [fleets.standin]"},
			{"another user", []string{"url = " + q(dead), "cluster = " + q(cluster), `user = "bob"`}, nil, 6, "asked as bob"},
			{"refused token", []string{"url = " + q(door), "cluster = " + q(cluster), "token_file = " + q(token)}, nil, 0, "is reached through a private slurmrestd"},
		} {
			w.ok(os.WriteFile(w.site, site, 0o644))
			w.edit(`(?m)^default_fleet = .*$`, `default_fleet = "standin"`)
			w.edit(`(?m)\n\[fleets\.devlab\]`, "\n[fleets.standin]\n"+strings.Join(c.lines, "\n")+"\n\n[fleets.devlab]")
			w.ok(os.RemoveAll(w.xdgState + "/tp/clusters")) // what was remembered of the same name
			r := w.tp(append([]string{"submit", "wait", "--profile", "cpu:1", "--yes"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.says) {
				w.Errorf("%s: exit code %d, wanted %d and %q in\n%s", c.name, r.code, c.code, c.says, r.err)
			}
			if c.code == 0 {
				jobs++
			}
			if got := len(w.jobs("all")); got != jobs {
				w.Errorf("%s: %d jobs in Slurm, wanted %d", c.name, got, jobs)
			}
		}
	})
}

func q(text string) string { return fmt.Sprintf("%q", text) }
