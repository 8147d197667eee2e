package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted is what a shell, a module, a scheduler or an allocation around the
// shell leaves. None of it may arrive in a role.
var planted = []string{
	"SLURM_CPU_BIND=cores", "SLURM_NTASKS=7", "SBATCH_ACCOUNT=research", "SBATCH_PARTITION=h200,h100", "PMIX_X=1", "PMI_RANK=3",
	"AWS_SECRET_ACCESS_KEY=planted-secret", "HF_TOKEN=planted-token", "WANDB_API_KEY=planted-key", "SSH_AUTH_SOCK=/tmp/agent",
	"CONDA_PREFIX=/opt/conda", "LD_PRELOAD_X=1", "PYTHONPATH=/planted", "UNWANTED=1", "BASH_FUNC_planted%%=() { echo planted; }",
	"SLURM_MEM_PER_CPU=100", "SLURM_NTASKS_PER_NODE=7", "SLURM_HET_SIZE=5", "SLURM_JOB_NODELIST_HET_GROUP_0=nowhere", "SLURM_DISTRIBUTION=plane=4",
	"SLURM_EXPORT_ENV=NONE", "SLURM_GRES=gpu:h200:3",
}

func plantedName(name string) bool {
	return name == "WANTED" || name == "SITE_PASSED" || slices.ContainsFunc(planted, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// TestEnvironment plants them around tp submit, around sbatch of what tp render
// prints, and around sbatch inside another job, and looks at both roles of a het job.
func TestEnvironment(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		const leave = `declare -F >"$TP_OUT_DIR/$TP_ROLE.functions"; env -0 >"$TP_OUT_DIR/$TP_ROLE.tmp"; mv "$TP_OUT_DIR/$TP_ROLE.tmp" "$TP_OUT_DIR/$TP_ROLE.env"`
		w.experiment("env", map[string]string{"train": leave + `; until [ -e "$TP_OUT_DIR/rollout.env" ]; do sleep 0.1; done`, "rollout": leave})
		w.write("more.env", "FROM_FILE=of the file\n")
		job, err := os.ReadFile(filepath.Join(w.lab, "experiments/env/job.toml"))
		w.ok(err)
		w.write("experiments/env/job.toml", string(job)+"\n[env]\nFROM_TOML = \"1e-5\"\n")
		w.edit(`\z`, "\n[environment]\npass = [\"SITE_PASSED\"]\n")
		w.commit()
		all := append([]string{strings.TrimSpace(w.must("scontrol", "token", "lifespan=600")), "WANTED=from the caller", "SITE_PASSED=by the site"}, planted...)
		given := `as 'said' "$HOME" \n`
		args := []string{"env", "--profile", "train=h200:1", "--profile", "rollout=h100:1", "--env", "WANTED", "--env", "GIVEN=" + given, "--env-file", "more.env"}

		r := w.tpWith(all, append([]string{"submit", "--yes", "--json"}, args...)...)
		if strings.Contains(r.err+r.out, "planted-") {
			w.Errorf("the preview shows a secret:\n%s", r.err)
		}
		ways := []string{"tp submit", "sbatch", "nested sbatch"}
		dirs := []string{w.submitted(r).RunDir}
		// The environment of sbatch is stronger than the script: SBATCH_ variables
		// that choose a partition are their user's wish there.
		shell := slices.DeleteFunc(slices.Clone(all), func(v string) bool { return strings.HasPrefix(v, "SBATCH_PARTITION=") })
		for _, around := range [][]string{nil, {"srun", "-Q", "-p", "cpu", "-N1", "-n1", "-c2", "--mem=10", "-t5", "-L", "matlab:1"}} {
			rendered := w.tpWith(all, append([]string{"render"}, args...)...)
			if rendered.code != 0 {
				w.Fatalf("tp render: exit code %d\n%s", rendered.code, rendered.err)
			}
			script := filepath.Join(w.dir, fmt.Sprintf("job-%d.sh", len(dirs)))
			w.ok(os.WriteFile(script, []byte(rendered.out), 0o644))
			w.must(slices.Concat(around, []string{"env"}, shell, []string{"sbatch", "--parsable", script})...)
			dirs = append(dirs, w.dir+"/runs/alice/env/"+rendered.err[strings.Index(rendered.err, "run-"):][:16])
		}

		want := map[string]string{"WANTED": "from the caller", "GIVEN": given, "FROM_FILE": "of the file", "FROM_TOML": "1e-5", "SITE_PASSED": "by the site",
			"USER": "alice", "LOGNAME": "alice", "SLURM_NTASKS": "1", "SLURM_NNODES": "1", "SLURM_HET_SIZE": "2"}
		for _, name := range []string{"HOME", "PATH", "SLURM_CONF"} {
			want[name] = strings.TrimSpace(w.must("printenv", name))
		}
		table := map[string][]string{}
		var own map[string]string // what Slurm gives a role when nothing is around
		for i, dir := range dirs {
			run := w.wait(dir, "SUCCEEDED")
			for _, role := range []string{"train", "rollout"} {
				how := ways[i] + ", " + role
				got := w.environ(dir, "out", role+".env")
				for _, p := range all {
					name, value, _ := strings.Cut(p, "=")
					arrived := "-"
					if v, ok := got[name]; ok && v == value {
						arrived = "yes"
					} else if ok {
						arrived = "the job's own: " + v
					}
					table[name] = append(table[name], arrived)
					if want[name] == "" && got[name] == value {
						w.Errorf("%s: %s arrived in the job", how, name)
					}
					if _, ok := got[name]; ok && want[name] == "" && !strings.HasPrefix(name, "SLURM_") {
						w.Errorf("%s: %s is %q in the job", how, name, got[name])
					}
				}
				for name, value := range want {
					if got[name] != value {
						w.Errorf("%s: %s is %q, wanted %q", how, name, got[name], value)
					}
					if !plantedName(name) {
						table[name] = append(table[name], map[bool]string{true: "yes", false: "NO"}[got[name] == value])
					}
				}
				if got["SLURM_JOB_ID"] == "" || run.job() != got["SLURM_JOB_ID"] && role == "train" {
					w.Errorf("%s: SLURM_JOB_ID is %q, the job is %s", how, got["SLURM_JOB_ID"], run.job())
				}
				if functions := w.read(dir, "out", role+".functions"); strings.Contains(functions, "planted") {
					w.Errorf("%s: a function of the submitting shell arrived:\n%s", how, functions)
				}
				if own == nil {
					own = got
				}
				for name, value := range got {
					// sbatch tells the job of --cpus-per-task in one variable more, from 24.11 on, and of the group.
					if strings.HasPrefix(name, "SLURM_TRES_PER_TASK") || name == "SLURM_JOB_GROUP" && value == "alice" {
						continue
					}
					if _, ok := own[name]; !ok && strings.HasPrefix(name, "SLURM") {
						w.Errorf("%s: %s=%s is not there in %s", how, name, value, ways[0])
					}
				}
			}
			if job := w.scontrol(run.job()); job[0]["Partition"] != "h200" || job[1]["Partition"] != "h100" {
				w.Errorf("%s: the job is in %s and %s", ways[i], job[0]["Partition"], job[1]["Partition"])
			}
			if files := strings.TrimSpace(w.slurm("grep", "-rl", "planted-", dir, w.dir+"/state").out); files != "" {
				w.Errorf("%s: a planted secret is in %s", ways[i], files)
			}
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%s: name | train and rollout by tp submit | by sbatch | by sbatch inside a job\n", w.release)
		for _, name := range slices.Sorted(maps.Keys(table)) {
			row := table[name]
			fmt.Fprint(&text, name)
			for i := 0; i+1 < len(row); i += 2 {
				fmt.Fprint(&text, " | ", strings.Join(slices.Compact(row[i:i+2:i+2]), ", "))
			}
			fmt.Fprintln(&text)
		}
		w.Log(text.String())
	})
}

// TestPrologIsOutsideStrictMode: modules and conda use unset variables, and their
// commands fail for no reason.
func TestPrologIsOutsideStrictMode(t *testing.T) {
	each(t, func(w *world) {
		const lines = `prolog = ["echo $NOT_SET_ANYWHERE", "false", "no-such-command-anywhere", "false | true", "export FROM_PROLOG='%s'"]` + "\n"
		for _, name := range []string{"both", "mine"} {
			w.experiment(name, map[string]string{"train": `echo "$FROM_PROLOG $-" >"$TP_OUT_DIR/said"`})
		}
		job, err := os.ReadFile(filepath.Join(w.lab, "experiments/mine/job.toml"))
		w.ok(err)
		w.write("experiments/mine/job.toml", string(job)+fmt.Sprintf(lines, "of job.toml"))
		w.edit(`\z`, "\n[defaults]\n"+fmt.Sprintf(lines, "of the site"))
		w.commit()
		for name, want := range map[string]string{"both": "of the site", "mine": "of job.toml"} {
			s := w.submit(name, "--profile", "h200:1")
			w.wait(s.RunDir, "SUCCEEDED")
			if got := w.read(s.RunDir, "out", "said"); !strings.HasPrefix(got, want+" ") {
				w.Errorf("%s: the role says %q, wanted %q", name, got, want)
			}
			if log := w.read(s.RunDir, "logs", "job-"+s.job()+".log"); !strings.Contains(log, "no-such-command-anywhere") {
				w.Errorf("%s: the prolog did not run:\n%s", name, log)
			}
		}
	})
}
