package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trial is what tp submit --test --json prints.
type trial struct {
	Asked    bool
	Accepted bool
	Start    time.Time
	Nodes    string
	Text     string
}

// The scheduler is asked and nothing comes of it: no job in the queue or in
// accounting, no object, no run directory. The shown plan can be submitted.
func TestAskingTheSchedulerLeavesNothing(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("trial", map[string]string{"train": "true", "rollout": "true"})
		w.commit()
		var s trial
		try := func(code int, args ...string) result {
			w.Helper()
			r := w.tp(append([]string{"submit", "trial", "--test", "--json"}, args...)...)
			if r.code != code {
				w.Fatalf("%q: exit code %d, wanted %d\n%s%s", args, r.code, code, r.out, r.err)
			}
			s = trial{}
			w.decode(r.out, &s)
			return r
		}
		het := []string{"--profile", "train=h200:8", "--profile", "rollout=h100:8"}
		r := try(0, het...)
		if !s.Asked || !s.Accepted || s.Start.IsZero() || !strings.Contains(s.Nodes, "h200-") || !strings.Contains(s.Nodes, "h100-") || !strings.Contains(s.Text, " to start at ") {
			w.Errorf("a het job: %+v", s)
		}
		try(0, "--profile", "train,rollout=cpu:1")
		if !strings.HasPrefix(s.Nodes, "cpu-") {
			w.Errorf("a plain job: %+v", s)
		}
		try(5, "--profile", "train,rollout=cpu:1", "--account", "nosuch")
		if !s.Asked || s.Accepted || !strings.Contains(s.Text, "Invalid account") {
			w.Errorf("a refused job: %+v", s)
		}
		try(5, append(het, "--qos", "rollout=secret")...)
		try(3, "--profile", "train,rollout=h200:8", "--time", "30d") // tp's own gate; Slurm may take it and never start it

		for _, name := range []string{"runs", "objects"} {
			err := filepath.WalkDir(filepath.Join(w.dir, name), func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					w.Errorf("%s was written", path)
				}
				return err
			})
			w.ok(err)
		}
		if ids := w.jobs("all"); len(ids) > 0 {
			w.Errorf("jobs %v are in the queue", ids)
		}
		if out := w.must("sacct", "-n", "-X", "-u", "alice", "-S", "now-10minutes", "-o", "JobName%60,WorkDir%200"); strings.Contains(out, w.dir) || strings.Contains(out, "trial.run-") {
			w.Errorf("accounting has it:\n%s", out)
		}
		_, digest, _ := strings.Cut(r.err, "tp submit --plan ")
		w.hetTurn()
		run := w.submitted(w.tp("submit", "--json", "--plan", strings.Fields(digest)[0]))
		w.wait(run.RunDir, "SUCCEEDED")
	})
}

// With origins behind its directives it is the same job.
func TestExplainedScriptIsTheSameJob(t *testing.T) {
	each(t, func(w *world) {
		const name = `it's a "test" #1 \ hetjob`
		w.experiment("explained", map[string]string{"train": "true", "rollout": "true"})
		w.commit()
		args := []string{"explained", "--name", name, "--profile", "train=h200:8", "--profile", "rollout=h100:4", "--qos", "rollout=low", "--requeue"}
		plain, _ := w.render(args...)
		explained, _ := w.render(append(args, "--explain")...)
		if !strings.Contains(explained, "# rollout pool · --qos") || !strings.Contains(explained, "# train pool · job.toml:1") {
			w.Errorf("origins lack:\n%s", explained)
		}
		var lines []string
		for _, text := range []string{plain, explained} {
			path := filepath.Join(w.dir, "explained.sh")
			w.ok(os.WriteFile(path, []byte(text), 0o644))
			id := strings.TrimSpace(w.must("sbatch", "--parsable", "--hold", path))
			var line string
			for _, j := range w.scontrol(id) {
				jobName, _, _ := strings.Cut(j["JobName"], ".run-")
				line += fmt.Sprintln(jobName, j["Partition"], j["QOS"], j["NumNodes"], j["NumTasks"], j["CPUs/Task"], j["ReqTRES"], j["TRES"], j["TresPerNode"], j["TimeLimit"], j["Requeue"], j["MinMemoryNode"])
			}
			w.must("scancel", id)
			lines = append(lines, line)
		}
		if lines[0] != lines[1] || !strings.HasPrefix(lines[0], name) {
			w.Errorf("without and with origins:\n%s\n%s", lines[0], lines[1])
		}
		w.hetTurn()
		fresh, dir := w.render(append(args, "--explain")...) // the others' jobs were cancelled
		w.sbatch(fresh)
		w.wait(dir, "SUCCEEDED")
	})
}

// What tp lint says of a script is what sbatch does with it.
func TestLintSaysWhatSbatchDoes(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("x", map[string]string{"train": "true"})
		const head = "#!/bin/bash\n#SBATCH -p cpu\n#SBATCH -o /dev/null\n"
		for _, c := range []struct {
			code, text string
			refused    bool
			name       string // that the job gets; the file's is not-set
		}{
			{"", head + "#SBATCH --job-name=\"a #b\" # why\n", false, "a #b"},
			{"", head + "#SBATCH\t--job-name=a\n#SBATCH--comment=b\n", false, "a"},
			{"late", head + "true\n#SBATCH --job-name=a\n", false, "not-set"},
			{"typo", head + "# SBATCH --job-name=a\n", false, "not-set"},
			{"typo", head + " #SBATCH --job-name=a\n", false, "not-set"},
			{"typo", head + "#sbatch --job-name=a\n", false, "not-set"},
			{"hash", head + "#SBATCH --job-name=a#b\n", false, "a"},
			{"hash", head + "#SBATCH --job-name=a #b\n", false, "a"},
			{"blank", head + "#SBATCH --job-name=a b\n", true, ""},
			{"blank", head + "#SBATCH --job-name = a\n", true, ""},
			{"quote", head + "#SBATCH --job-name=\"a\n", true, ""},
			{"array", head + "#SBATCH --array=0-1\n#SBATCH hetjob\n#SBATCH -p h100\n", true, ""},
			{"option", head + "#SBATCH --partion=cpu\n", true, ""},
			{"option", head + "#SBATCH -Z\n", true, ""},
			{"", head + "#SBATCH --part=cpu --mem=100GB -t 1-12 -N1-2 --job-name a\n", false, "a"},
			{"value", head + "#SBATCH --time=1h\n", true, ""},
			{"value", head + "#SBATCH --mem 1.5G\n", true, ""},
			{"value", head + "#SBATCH --mem-per-cpu=200Q\n", true, ""},
			{"value", head + "#SBATCH -Ntwo\n", true, ""},
			{"variable", head + "#SBATCH --job-name=$HOME\n", false, "$HOME"},
			{"crlf", strings.ReplaceAll(head, "\n", "\r\n"), true, ""},
			{"bom", "\ufeff" + head, true, ""},
			{"shebang", strings.TrimPrefix(head, "#!/bin/bash\n"), true, ""},
			{"nul", head + "\x00\n", true, ""},
			{"size", head + strings.Repeat("# padding\n", 420_000), true, ""},
		} {
			path := filepath.Join(w.dir, "not-set")
			w.ok(os.WriteFile(path, []byte(c.text), 0o644))
			lint := w.tp("lint", path)
			if found := strings.Contains(lint.out, ": "+c.code+": "); c.code != "" && (!found || lint.code != 2) || c.code == "" && (lint.out != "" || lint.code != 0) {
				w.Errorf("%q: exit code %d\n%s%s", c.text[:min(len(c.text), 200)], lint.code, lint.out, lint.err)
			}
			r := w.slurm("sbatch", "--parsable", "--hold", path)
			if (r.code != 0) != c.refused {
				w.Errorf("%s: sbatch ends with %d: %s", c.code, r.code, r.err)
			}
			if r.code != 0 {
				continue
			}
			id := strings.TrimSpace(r.out)
			if got := w.scontrol(id)[0]["JobName"]; got != c.name {
				w.Errorf("%s: the job's name is %q, wanted %q", c.code, got, c.name)
			}
			w.must("scancel", id)
		}
	})
}
