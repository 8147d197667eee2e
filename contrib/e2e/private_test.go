package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// watchProcesses reads the arguments of all processes, and the environment of
// the commands that tp runs, until stop is called; it tells where a secret was.
func watchProcesses(secrets map[string]string) (stop func() []string) {
	children := map[string]bool{"git": true, "squeue": true, "sacct": true, "scontrol": true, "sbatch": true}
	quit, done := make(chan struct{}), make(chan struct{})
	found := map[string]bool{}
	go func() {
		defer close(done)
		for {
			names, _ := filepath.Glob("/proc/[0-9]*")
			for _, dir := range names {
				argv, _ := os.ReadFile(dir + "/cmdline")
				var env []byte
				if comm, _ := os.ReadFile(dir + "/comm"); children[strings.TrimSpace(string(comm))] {
					env, _ = os.ReadFile(dir + "/environ")
				}
				for what, secret := range secrets {
					if bytes.Contains(argv, []byte(secret)) {
						found[fmt.Sprintf("%s in the arguments %q", what, argv)] = true
					}
					if what == "SLURM_JWT" && bytes.Contains(env, []byte(secret)) {
						found[fmt.Sprintf("%s in the environment of %q", what, argv)] = true
					}
				}
			}
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	var once sync.Once
	return func() (list []string) {
		once.Do(func() { close(quit); <-done })
		for f := range found {
			list = append(list, f)
		}
		return list
	}
}

// TestPrivateFilesAndSecrets submits under umask 000 with secrets all around,
// and looks for open files and for the secrets afterwards.
func TestPrivateFilesAndSecrets(t *testing.T) {
	each(t, func(w *world) {
		for _, store := range []string{"s3", "dir"} {
			site := w.read(w.site)
			w.write("experiments/secret/README.md", store) // another bundle each
			w.experiment("secret", map[string]string{"train": "env >\"$TP_OUT_DIR/env\"\nset >\"$TP_OUT_DIR/set\""})
			w.commitAgain()
			secrets := map[string]string{
				"the caller's variable": "planted-in-environment-4711",
				"SLURM_JWT":             strings.TrimPrefix(strings.TrimSpace(w.must("scontrol", "token", "lifespan=500")), "SLURM_JWT="),
				"the token file":        strings.TrimPrefix(strings.TrimSpace(w.must("scontrol", "token", "lifespan=600")), "SLURM_JWT="),
			}
			if store == "s3" {
				w.s3(nil)
				keys := w.read(devclusterDir(), "shared", "s3-credentials")
				m := regexp.MustCompile(`(?mi)secret\w*\s*[=:]\s*(\S{8,})`).FindStringSubmatch(keys)
				if m == nil {
					w.Fatal("no secret key in s3-credentials")
				}
				secrets["the S3 secret key"] = m[1]
			}
			w.fleet("private-"+store, `url = "http://`+w.jwtAddress()+`"`, fmt.Sprintf("token_file = %q", w.alices("token", secrets["the token file"]+"\n")))
			// By a file, for arguments are what is looked at.
			environment := w.alices("environment", fmt.Sprintf("export AWS_SECRET_ACCESS_KEY=%s WANDB_API_KEY=%[1]s SLURM_JWT=%s\n", secrets["the caller's variable"], secrets["SLURM_JWT"]))
			open := func(args ...string) result {
				return w.slurm(append([]string{"sh", "-c", `umask 000; . "$0"; exec "$@"`, environment, "env", "TP_SITE=" + w.site,
					"XDG_STATE_HOME=" + w.dir + "/state", "XDG_CONFIG_HOME=" + w.dir + "/config", filepath.Join(folder, "tp")}, args...)...)
			}
			stop := watchProcesses(secrets)
			if r := open("plan", "secret", "--profile", "cpu:1", "--cpus-per-node", "1"); r.code != 0 {
				w.Fatalf("tp plan: exit code %d\n%s", r.code, r.err)
			}
			s := w.submitted(open("submit", "--yes", "--json", "secret", "--profile", "cpu:1", "--cpus-per-node", "1"))
			open("tick")
			open("job", "ls")
			for _, found := range stop() {
				w.Errorf("%s: %s", store, found)
			}
			shown := w.must("scontrol", "show", "job", s.job())
			script := w.must("scontrol", "write", "batch_script", s.job(), "-")
			w.wait(s.RunDir, "SUCCEEDED")
			open("job", "status", s.RunID)
			for what, secret := range secrets {
				for place, text := range map[string]string{"scontrol show job": shown, "the batch script": script, "the preview": s.preview} {
					if strings.Contains(text, secret) {
						w.Errorf("%s: %s is in %s", store, what, place)
					}
				}
				for line := range strings.Lines(w.slurm("grep", "-rlF", secret, w.dir+"/runs", w.dir+"/state", w.dir+"/objects").out) {
					// What the test itself put there.
					if path := strings.TrimSpace(line); path != environment && path != w.dir+"/state/token" {
						w.Errorf("%s: %s is in %s", store, what, path)
					}
				}
			}
			if store == "s3" && w.read(s.RunDir, "bundle.curl") == "" {
				w.Errorf("there is no bundle.curl in %s", s.RunDir)
			}
			// All of tp's files are the user's alone. Not tp's are the folders that
			// the test made; code keeps the lab's modes, and job-*.log is opened by
			// slurmd: the directories above them keep others out.
			tps := []string{"find", w.dir + "/runs", w.dir + "/state/tp", w.dir + "/objects", "-mindepth", "1"}
			for what, match := range map[string][]string{
				"directories": {"-type", "d", "!", "-perm", "700", "!", "-path", "*/code/*"},
				"files":       {"-type", "f", "!", "-perm", "600", "!", "-path", "*/code/*", "!", "-name", "job-*.log"},
				"others":      {"!", "-type", "d", "!", "-type", "f", "!", "-path", "*/code/*"},
			} {
				if list := w.must(append(append(tps, match...), "-printf", "%m %p\n")...); list != "" {
					w.Errorf("%s: %s with another mode than tp's:\n%s", store, what, list)
				}
			}
			w.ok(os.WriteFile(w.site, []byte(site), 0o644))
		}
	})
}

// commitAgain commits whatever the lab is now.
func (w *world) commitAgain() {
	w.Helper()
	if _, err := os.Stat(filepath.Join(w.lab, ".git")); err != nil {
		w.commit()
		return
	}
	w.must("git", "add", "-A")
	w.must("git", "-c", "user.name=alice", "-c", "user.email=alice@localhost", "commit", "-q", "--allow-empty", "-m", "Another one")
}

// TestHostileLab has a lab that names a command, a server, a tool or a secret
// for this machine: each is refused by name, and nothing is run or sent.
func TestHostileLab(t *testing.T) {
	each(t, func(w *world) {
		address, visits := w.notSlurm(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "{}") })
		trap, ran := w.dir+"/state/trap", w.dir+"/state/ran"
		w.ok(os.WriteFile(trap, []byte("#!/bin/sh\necho \"$0 $*\" >>'"+ran+"'\necho SLURM_JWT=a.b.c\n"), 0o755))
		keys := w.alices("keys", "AWS_ACCESS_KEY_ID=x\nAWS_SECRET_ACCESS_KEY=y\n")
		w.experiment("one", map[string]string{"train": "true"})
		w.commit()
		job, marker := w.read(w.lab, "experiments/one/job.toml"), w.read(w.lab, "tp.toml")
		lines := map[string]string{
			"slurmrestd":    fmt.Sprintf("slurmrestd = %q", address),
			"url":           fmt.Sprintf("url = %q", address),
			"token_command": fmt.Sprintf("token_command = [%q]", trap),
			"token_file":    fmt.Sprintf("token_file = %q", keys),
			"squeue":        fmt.Sprintf("squeue = %q", trap),
			"tool_path":     fmt.Sprintf("tool_path = %q", filepath.Dir(trap)),
			"tools":         fmt.Sprintf("[tools]\nsqueue = %q", trap),
			"ca_file":       fmt.Sprintf("ca_file = %q", keys),
			"credentials":   fmt.Sprintf("credentials = %q", keys),
			"endpoint":      fmt.Sprintf("endpoint = %q", address),
			"webhook":       fmt.Sprintf("webhook = %q", address),
			"hooks":         fmt.Sprintf("[hooks]\nbefore = %q", trap),
			"fleets":        fmt.Sprintf("[fleets.mine]\nkind = \"slurm\"\nurl = %q\ntoken_command = [%q]", address, trap),
			"objects":       fmt.Sprintf("[objects]\nkind = \"s3\"\nendpoint = %q\nbucket = \"b\"\ncredentials = %q", address, keys),
			"run_root":      "run_root = \"/tmp\"",
			"state_dir":     "state_dir = \"/tmp\"",
			"default_fleet": "default_fleet = \"devlab-jwt\"",
			"series":        "[series.cpu]\ncpus = 1000000",
		}
		for key, text := range lines {
			for _, file := range []string{"tp.toml", "experiments/one/job.toml"} {
				for _, prefix := range []string{"", "[defaults]\n"} {
					if strings.HasPrefix(text, "[") && prefix != "" {
						continue
					}
					w.write("tp.toml", marker)
					w.write("experiments/one/job.toml", job)
					w.write(file, w.read(w.lab, file)+prefix+text+"\n")
					r := w.tp("plan", "one", "--profile", "cpu:1", "--allow-dirty")
					if r.code != 2 || !strings.Contains(message(r), filepath.Base(file)+":") {
						w.Errorf("%s in %s: exit code %d, wanted 2 and the place\n%s", text, file, r.code, r.err)
					}
					if !strings.Contains(message(r), key) && prefix == "" || !strings.Contains(message(r), "refused in a lab") && prefix == "" {
						w.Errorf("%s in %s is not refused by name: %s", text, file, message(r))
					}
				}
			}
		}
		w.write("tp.toml", marker)
		w.write("experiments/one/job.toml", job)
		// Nor by files that tools look for where they run.
		w.write("experiments/one/.git", "gitdir: /nonexistent\n")
		w.write("squeue", "#!/bin/sh\nexec "+trap+"\n")
		w.write("scontrol", "#!/bin/sh\nexec "+trap+"\n")
		w.write("site.toml", fmt.Sprintf("[fleets.mine]\nurl = %q\n", address))
		w.write(".config/tp/user.toml", fmt.Sprintf("[fleets.mine]\nurl = %q\n", address))
		w.tpWith([]string{"PATH=.:/usr/bin:/bin"}, "plan", "one", "--profile", "cpu:1", "--allow-dirty")
		if text := w.read(ran); text != "" {
			w.Errorf("a planted command ran: %s", text)
		}
		if n := visits(); n != 0 {
			w.Errorf("%d connections to a planted address", n)
		}
		w.nothingHappened()
	})
}
