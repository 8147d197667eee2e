package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// submit queues jobs on a real cluster, each of which is cancelled at once.
func (b *bench) submit(ctx context.Context) error {
	if why := needCluster(); why != "" {
		fmt.Fprintf(b.out, "\nsubmit\nnot run: %s\n", why)
		return nil
	}
	files := usual
	if b.small {
		files = small
	}
	for _, l := range []struct {
		title string
		tree  tree
	}{{"submit, the lab as it is", tree{}}, {"submit, the lab with " + files.String(), files}} {
		root := filepath.Join(b.dir, "lab")
		if err := empty(root); err != nil {
			return err
		}
		if err := os.CopyFS(root, os.DirFS(b.lab)); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(root, ".git")); err != nil {
			return err
		}
		if err := l.tree.write(ctx, filepath.Join(root, "common", "bench")); err != nil {
			return err
		}
		if err := commit(ctx, root); err != nil {
			return err
		}
		if err := b.submitLab(ctx, l.title, root); err != nil {
			return err
		}
	}
	return nil
}

func needCluster() string {
	if os.Getenv("TP_SITE") == "" {
		return "TP_SITE names no site file (contrib/devcluster env)"
	}
	if why := need("sbatch", "scancel"); why != "" {
		return why
	}
	if out, err := exec.Command("sinfo", "--noheader").CombinedOutput(); err != nil {
		return "sinfo: " + oneLine(string(out))
	}
	return ""
}

// submitLab compares the ways to queue a job from one directory. tp's caches
// are in the scratch directory: run 0 uploads the bundle, later ones find it
// unchanged.
func (b *bench) submitLab(ctx context.Context, title, root string) error {
	job := filepath.Join(b.dir, "job.sh")
	if err := os.WriteFile(job, []byte("#!/bin/bash\n#SBATCH --job-name=tp-bench\n#SBATCH --output=/dev/null\n#SBATCH --time=1\ntrue\n"), 0o700); err != nil {
		return err
	}
	if err := empty(filepath.Join(b.dir, "state")); err != nil {
		return err
	}
	env := []string{
		"XDG_STATE_HOME=" + filepath.Join(b.dir, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(b.dir, "state"),
		"XDG_DATA_HOME=" + filepath.Join(b.dir, "state"), // where runs go if the site does not say
	}
	tp := func(command string, more ...string) []string {
		return append([]string{b.tp, command, b.exp, "--profile", b.profile, "--time", "1m"}, more...)
	}
	rows := []*row{
		{name: "sbatch job.sh", dir: root, argv: []string{"sbatch", "--parsable", job}, after: cancelPrinted},
		{name: "python3, submitit", dir: root, argv: []string{"python3", "-c", submitit, b.dir}, after: cancelPrinted, missing: needSubmitit()},
		{name: "git status (tp asks for it too)", dir: root, argv: []string{"git", "status", "--porcelain"}},
		{name: "tp plan", dir: root, env: env, argv: tp("plan"), before: old},
	}
	for _, w := range b.ways(ctx, env) {
		rows = append(rows, &row{name: "tp submit --yes, " + w.name, dir: root, env: env, argv: tp("submit", append([]string{"--yes", "--json"}, w.flags...)...), after: cancelRun, missing: w.missing})
	}
	return b.measure(ctx, &table{title: title, rows: rows})
}

// way is how tp reaches the cluster.
type way struct {
	name    string
	flags   []string
	missing string // why it cannot be measured
}

// ways are the four of them; which fleets of the site file have which address
// tp says itself.
func (b *bench) ways(ctx context.Context, env []string) []way {
	tcp := way{name: "TCP and token", missing: "no fleet with an http url in the site file"}
	socket := way{name: "unix socket", missing: "no fleet with a unix url in the site file"}
	cmd := exec.CommandContext(ctx, b.tp, "fleet", "ls", "--json")
	cmd.Env = append(os.Environ(), env...)
	var fleets []struct{ Name, URL string }
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &fleets)
	}
	if err != nil {
		tcp.missing, socket.missing = "tp fleet ls: "+err.Error(), "tp fleet ls: "+err.Error()
	}
	for _, f := range fleets {
		flags := []string{"--fleet", f.Name, "--transport", "url"} // nothing may stand in for it
		switch {
		case strings.HasPrefix(f.URL, "http"):
			tcp.flags, tcp.missing = flags, ""
		case strings.HasPrefix(f.URL, "unix:"):
			socket.flags, socket.missing = flags, ""
		}
	}
	return []way{tcp, socket, {"private slurmrestd", []string{"--transport", "child"}, ""}, {"sbatch", []string{"--transport", "cli"}, ""}}
}

// old waits before the first run until the files of the lab are.
func old(_ context.Context, run int) error {
	if run == 0 {
		time.Sleep(racy)
	}
	return nil
}

// submitit is the job of job.sh as a user of submitit writes it.
const submitit = `
import sys, submitit
e = submitit.AutoExecutor(folder=sys.argv[1] + "/submitit", cluster="slurm")
e.update_parameters(timeout_min=1, name="tp-bench")
print(e.submit(print, "x").job_id)
`

func needSubmitit() string {
	if version([]string{"python3", "-c", "import submitit; print(submitit.__version__)"}) == notInstalled {
		return "submitit is " + notInstalled
	}
	return ""
}

// cancelPrinted cancels the job whose id is all of the output.
func cancelPrinted(output string) error {
	id, _, _ := strings.Cut(strings.TrimSpace(output), ";") // sbatch --parsable adds the cluster
	return cancel(id)
}

// cancelRun cancels the job of tp submit --json and removes its run directory.
func cancelRun(output string) error {
	var run struct {
		JobID  uint32 `json:"job_id"`
		RunDir string `json:"run_dir"`
	}
	if err := json.Unmarshal([]byte(output), &run); err != nil {
		return fmt.Errorf("tp submit --json: %w", err)
	}
	if err := cancel(fmt.Sprint(run.JobID)); err != nil {
		return err
	}
	var err error
	for range 20 { // a job that had started already writes there until it is dead
		if err = os.RemoveAll(run.RunDir); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func cancel(job string) error {
	if out, err := exec.Command("scancel", job).CombinedOutput(); err != nil {
		return fmt.Errorf("scancel %s: %w: %s", job, err, oneLine(string(out)))
	}
	return nil
}
