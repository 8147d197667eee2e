package e2e

import (
	"strings"
	"testing"
)

// TestEnvironment plants what a shell, a module or a scheduler leaves, and looks
// for it in the job.
func TestEnvironment(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("env", map[string]string{"train": `env -0 >"$TP_OUT_DIR/train.env"`})
		w.commit()
		token := strings.TrimSpace(w.must("scontrol", "token", "lifespan=600"))
		planted := []string{
			token, "SLURM_CPU_BIND=cores", "SBATCH_ACCOUNT=research", "PMIX_X=1", "AWS_SECRET_ACCESS_KEY=planted-secret", "HF_TOKEN=planted-token",
			"SSH_AUTH_SOCK=/tmp/agent", "CONDA_PREFIX=/opt/conda", "LD_PRELOAD_X=1", "PYTHONPATH=/planted", "WANTED=from the caller", "UNWANTED=1",
			// What a shell inside another allocation has.
			"SLURM_MEM_PER_CPU=100", "SLURM_NTASKS_PER_NODE=7", "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=nowhere", "SLURM_DISTRIBUTION=plane=4",
		}
		kept := []string{"WANTED", "HOME", "USER", "PATH", "LOGNAME"}
		args := []string{"env", "--profile", "cpu:1", "--env", "WANTED", "--env", "GIVEN=as said"}

		r := w.tpWith(planted, append([]string{"submit", "--yes", "--json"}, args...)...)
		s := w.submitted(r)
		if strings.Contains(r.err+r.out, "planted-") {
			w.Errorf("the preview shows a secret:\n%s", r.err)
		}
		rendered := w.tpWith(planted, append([]string{"render"}, args...)...)
		dir := w.dir + "/runs/alice/env/" + rendered.err[strings.Index(rendered.err, "run-"):][:16]
		w.sbatch(rendered.out, planted...)

		for how, dir := range map[string]string{"REST": s.RunDir, "sbatch": dir} {
			w.wait(dir, "SUCCEEDED")
			got := w.environ(dir, "out", "train.env")
			for _, p := range planted {
				name, value, _ := strings.Cut(p, "=")
				if name != "WANTED" && got[name] == value {
					w.Errorf("%s: %s arrived in the job", how, name)
				}
			}
			for _, name := range kept {
				if got[name] == "" {
					w.Errorf("%s: %s is missing in the job", how, name)
				}
			}
			for name, want := range map[string]string{"WANTED": "from the caller", "GIVEN": "as said", "USER": "alice",
				"HOME": strings.TrimSpace(w.must("printenv", "HOME")), "PATH": strings.TrimSpace(w.must("printenv", "PATH"))} {
				if got[name] != want {
					w.Errorf("%s: %s is %q, wanted %q", how, name, got[name], want)
				}
			}
			files := w.slurm("grep", "-rl", "planted-", dir, w.dir+"/state").out
			if strings.TrimSpace(files) != "" {
				w.Errorf("%s: a planted secret is in %s", how, files)
			}
		}
	})
}
