package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// s3 rewrites the site file's object store to the cluster's S3, with
// single values changed.
func (w *world) s3(change map[string]string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(devclusterDir(), "site-"+w.release+".toml"))
	w.ok(err)
	_, section, ok := strings.Cut(string(text), "\n[objects]\n")
	if !ok || !strings.Contains(section, `kind = "s3"`) {
		w.Skip("no S3 server is up (devcluster s3)")
	}
	section, _, _ = strings.Cut(section, "\n\n")
	var lines []string
	for line := range strings.Lines(section) {
		key, _, _ := strings.Cut(line, " = ")
		if value, changed := change[key]; changed {
			line = fmt.Sprintf("%s = %q", key, value)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	lines = append(lines, fmt.Sprintf("prefix = %q", "e2e/"+filepath.Base(folder)+"/"+filepath.Base(w.dir)+"/"))
	w.edit(`(?ms)^\[objects\].*?\n\n`, "[objects]\n"+strings.Join(lines, "\n")+"\n\n")
}

// alices writes a private file of alice's outside the lab.
func (w *world) alices(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, "state", name)
	w.ok(os.WriteFile(path, []byte(text), 0o600))
	w.ok(os.Lchown(path, w.uid, w.gid))
	return path
}

// tmpfs mounts a small file system at a folder of the test, in every world.
func (w *world) tmpfs(name, options string) string {
	w.Helper()
	dir := filepath.Join(w.dir, name)
	w.mkdir(dir)
	mount := func(at string, args ...string) {
		if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
			w.Skipf("no file system can be mounted here: %s", out)
		}
		w.Cleanup(func() {
			if exec.Command("umount", at).Run() != nil {
				exec.Command("umount", "-l", at).Run()
			}
		})
	}
	mount(dir, "-t", "tmpfs", "-o", fmt.Sprintf("%s,uid=%d,gid=%d", options, w.uid, w.gid), "tp-e2e")
	roots, _ := filepath.Glob(devclusterDir() + "/chroot-*")
	for _, root := range roots {
		if _, err := os.Stat(root + dir); err == nil {
			mount(root+dir, "--bind", dir)
		}
	}
	w.Cleanup(w.leave)
	return dir
}

// oneError checks that tp said one thing and what to do.
func (w *world) oneError(what string, r result) {
	w.Helper()
	errors, tries := 0, 0
	for line := range strings.Lines(r.err) {
		switch {
		case strings.HasPrefix(line, "tp: try: "):
			tries++
		case strings.HasPrefix(line, "tp: "):
			errors++
		}
	}
	if errors != 1 || tries != 1 || strings.Count(message(r), "\n") > 4 || strings.Contains(r.err, "goroutine ") {
		w.Errorf("%s: wanted one short error and what to try, got\n%s", what, r.err)
	}
}

// TestErrors breaks one thing at a time, as it breaks on real sites.
func TestErrors(t *testing.T) {
	type broken struct {
		what  string
		set   func(w *world) (args []string)
		env   func(w *world) []string
		code  int
		says  []string
		limit time.Duration
	}
	// What tp needs beside the time-out, with other tests on the machine.
	const slack = 4 * time.Second
	jwt := func(w *world, tokenFile string) {
		w.fleet("broken", `url = "http://`+w.jwtAddress()+`"`, fmt.Sprintf("token_file = %q", tokenFile))
	}
	silent := func(w *world) string {
		gone := make(chan struct{})
		address, _ := w.notSlurm(func(http.ResponseWriter, *http.Request) { <-gone })
		w.Cleanup(func() { close(gone) })
		return address
	}
	cases := []broken{
		{what: "wrong token", set: func(w *world) []string { jwt(w, w.alices("token", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA\n")); return nil },
			code: 5, says: []string{"token expired or invalid", "scontrol token >"}},
		{what: "expired token", set: func(w *world) []string {
			jwt(w, w.alices("token", w.must("scontrol", "token", "lifespan=1")))
			time.Sleep(2 * time.Second)
			return nil
		}, code: 5, says: []string{"token expired or invalid", "it expired at", "scontrol token >"}},
		{what: "no token file", set: func(w *world) []string { jwt(w, w.dir+"/none"); return nil }, code: 5, says: []string{"no token: open " + w0 + "/none", "no such file"}},
		{what: "token command fails", set: func(w *world) []string {
			w.fleet("broken", `url = "http://`+w.jwtAddress()+`"`, `token_command = ["false"]`)
			return nil
		}, code: 5, says: []string{"no token: false", "tp: try: false"}},
		{what: "connection refused", set: func(w *world) []string { w.fleet("broken", `url = "http://127.0.0.1:1"`); return nil },
			code: 6, says: []string{"cluster broken cannot be reached", "127.0.0.1:1", "connection refused", "tp doctor"}},
		{what: "missing socket", set: func(w *world) []string { w.fleet("broken", `url = "unix:///nonexistent/rest.sock"`); return nil },
			code: 6, says: []string{"/nonexistent/rest.sock", "no such file", "tp doctor"}},
		{what: "silent slurmrestd, 2 s", set: func(w *world) []string {
			w.fleet("broken", fmt.Sprintf("url = %q", silent(w)), `timeout = "2s"`, `token_command = ["scontrol", "token"]`)
			return nil
		}, code: 6, says: []string{"timeout", "tp doctor"}, limit: 2 * time.Second},
		{what: "silent slurmrestd, default", set: func(w *world) []string {
			w.fleet("broken", fmt.Sprintf("url = %q", silent(w)), `token_command = ["scontrol", "token"]`)
			return nil
		}, code: 6, says: []string{"timeout", "tp doctor"}, limit: 10 * time.Second},
		{what: "not a slurmrestd", set: func(w *world) []string {
			address, _ := w.notSlurm(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html><body>It works!</body></html>") })
			w.fleet("broken", fmt.Sprintf("url = %q", address), `token_command = ["scontrol", "token"]`)
			return nil
		}, code: 6, says: []string{"is no slurmrestd", "It works!"}},
		{what: "a proxy's login page", set: func(w *world) []string {
			address, _ := w.notSlurm(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/login", http.StatusFound) })
			w.fleet("broken", fmt.Sprintf("url = %q", address), `token_command = ["scontrol", "token"]`)
			return nil
		}, code: 6, says: []string{"is no slurmrestd"}},
		{what: "unknown partition", set: func(*world) []string { return []string{"--partition", "nosuch"} }, code: 3, says: []string{"nosuch"}},
		{what: "too many GPUs", set: func(*world) []string { return []string{"--profile", "h200:32"} }, code: 3, says: []string{"capacity.neverFits"}},
		{what: "S3 down", set: func(w *world) []string { w.s3(map[string]string{"endpoint": "http://127.0.0.1:1"}); return nil },
			code: 6, says: []string{"127.0.0.1:1", "refused"}},
		{what: "S3 silent", set: func(w *world) []string { w.s3(map[string]string{"endpoint": silent(w)}); return nil },
			code: 6, says: []string{"object store", "no answer"}},
		{what: "wrong S3 keys", set: func(w *world) []string {
			w.s3(map[string]string{"credentials": w.alices("keys", "AWS_ACCESS_KEY_ID=nobody\nAWS_SECRET_ACCESS_KEY=wrong\n")})
			return nil
		}, code: 5, says: []string{"denied", "credentials"}},
		{what: "wrong S3 secret", set: func(w *world) []string {
			keys := regexp.MustCompile(`(?mi)^(.*secret.*= *)\S+$`).ReplaceAllString(w.read(devclusterDir(), "shared", "s3-credentials"), "${1}wrong")
			w.s3(map[string]string{"credentials": w.alices("keys", keys)})
			return nil
		}, code: 5, says: []string{"SignatureDoesNotMatch", "credentials"}},
		{what: "no S3 keys", set: func(w *world) []string { w.s3(map[string]string{"credentials": w.dir + "/none"}); return nil }, code: 2, says: []string{w0 + "/none"}},
		{what: "missing bucket", set: func(w *world) []string { w.s3(map[string]string{"bucket": "no-such-bucket"}); return nil }, code: 5, says: []string{"no-such-bucket", "bucket"}},
		{what: "read-only home", env: func(w *world) []string {
			home := w.tmpfs("home", "size=64k,ro")
			return []string{"HOME=" + home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME="}
		}, code: 1, says: []string{w0 + "/home/.local", "read-only file system", "XDG_STATE_HOME", "state_dir"}},
		{what: "home of somebody else", env: func(*world) []string {
			return []string{"HOME=/", "XDG_STATE_HOME=", "XDG_CONFIG_HOME="}
		}, code: 1, says: []string{"/.local", "permission denied", "state_dir"}},
	}
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": "true"})
		w.commit()
		site := w.read(w.site)
		var table strings.Builder
		tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		for _, c := range cases {
			w.ok(os.WriteFile(w.site, []byte(site), 0o644))
			var env, args []string
			if c.set != nil {
				args = c.set(w)
			}
			if c.env != nil {
				env = c.env(w)
			}
			if len(args) == 0 || args[0] != "--profile" {
				args = append(args, "--profile", "cpu:1")
			}
			began := time.Now()
			r := w.tpWith(env, append([]string{"submit", "--yes", "one"}, args...)...)
			took := time.Since(began)
			if r.code != c.code {
				w.Errorf("%s: exit code %d, wanted %d\n%s", c.what, r.code, c.code, r.err)
			}
			w.oneError(c.what, r)
			for _, part := range c.says {
				if part = strings.ReplaceAll(part, w0, w.dir); !strings.Contains(message(r), part) {
					w.Errorf("%s: the message does not say %q:\n%s", c.what, part, message(r))
				}
			}
			if limit := cmp.Or(c.limit, 10*time.Second) + slack; took > limit {
				w.Errorf("%s: took %s, more than %s", c.what, took, limit)
			}
			text := strings.ReplaceAll(strings.Join(strings.Fields(message(r)), " "), w.dir, "…")
			fmt.Fprintf(tab, "%s\t%d\t%.1f s\t%s\n", c.what, r.code, took.Seconds(), text)
			w.ok(os.WriteFile(w.site, []byte(site), 0o644))
			w.nothingHappened()
			if list := strings.TrimSpace(w.tp("job", "ls", "--json").out); list != "[]" {
				w.Errorf("%s: tp job ls knows %s", c.what, list)
			}
		}
		if left := w.must("find", w.dir, "-name", ".tp-tmp-*"); left != "" {
			w.Errorf("left behind: %s", left)
		}
		// With its state elsewhere tp needs no home.
		home := []string{"HOME=" + w.dir + "/home", "XDG_CONFIG_HOME="}
		for _, args := range [][]string{{"job", "ls"}, {"fleet", "show"}, {"submit", "--yes", "one", "--profile", "cpu:1"}} {
			if r := w.tpWith(home, args...); r.code != 0 {
				w.Errorf("read-only home, state elsewhere: tp %q: exit code %d\n%s", args, r.code, r.err)
			}
		}
		for _, args := range [][]string{{"job", "ls"}, {"fleet", "show"}} { // what only looks needs no state
			if r := w.tpWith(append(home, "XDG_STATE_HOME="), args...); r.code != 0 {
				w.Errorf("read-only home: tp %q: exit code %d\n%s", args, r.code, r.err)
			}
		}
		tab.Flush()
		w.Logf("what was broken, exit code, time, message\n%s", table.String())
	})
}

// w0 stands for the test's folder in expected texts.
const w0 = "{dir}"

// TestFullDisk fills the file system of state and runs up to different levels,
// so that another write fails each time.
func TestFullDisk(t *testing.T) {
	each(t, func(w *world) {
		w.counted("")
		small := w.tmpfs("small", "size=8m,mode=0700")
		w.edit(`(?m)^run_root = .*$`, fmt.Sprintf("run_root = %q", small+"/runs"))
		w.must("mkdir", small+"/runs", small+"/state")
		env := []string{impatient}
		w.xdgState = small + "/state"
		var table strings.Builder
		tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		levels := []int{0, 8, 20, 32, 48, 56, 60, 64, 72, 96}
		for _, kib := range levels {
			digest, name := w.planned(countedArgs...)
			fill := small + "/fill"
			w.must("sh", "-c", `cat /dev/zero >"$0" 2>/dev/null; size=$(stat -c %s "$0"); truncate -s $((size - $1 * 1024)) "$0"`, fill, fmt.Sprint(kib))
			r := w.tpWith(env, "submit", "--plan", digest)
			known := w.tpWith(env, "job", "ls", "--json").code
			jobs := w.named(name)
			w.must("rm", fill)
			text := "queued"
			if r.code != 0 {
				w.oneError(fmt.Sprintf("%d KiB left", kib), r)
				text = strings.ReplaceAll(strings.Join(strings.Fields(message(r)), " "), w.dir, "…")
				if !strings.Contains(text, "no space left on device") {
					w.Errorf("%d KiB left: %s", kib, r.err)
				}
			}
			if known != 0 {
				w.Errorf("%d KiB left: tp job ls exits %d", kib, known)
			}
			s, tries := w.repeat(digest)
			if n := w.named(name); n != 1 {
				w.Errorf("%d KiB left: %d jobs of %s", kib, n, s.RunID)
			}
			fmt.Fprintf(tab, "%d KiB\t%d\t%d\t%d\t%s\n", kib, r.code, jobs, tries, text)
		}
		w.waitFor(busy, "the jobs to end", func() bool { return len(w.jobs("PD,R,CG,CF")) == 0 })
		for id, jobs := range w.ran() {
			if len(jobs) > 1 {
				w.Errorf("%s was done by %v", id, jobs)
			}
		}
		tab.Flush()
		w.Logf("room left, exit code, jobs then, tries afterwards, message\n%s", table.String())
	})
}
