package e2e

import (
	"slices"
	"strings"
	"testing"
)

// bareEnv is what cron gives: no PATH, HOME, USER, TERM or LANG, no terminal.
func (w *world) bareEnv(args ...string) []string {
	w.Helper()
	env := []string{"env", "-i", "TP_SITE=" + w.site, "XDG_STATE_HOME=" + w.xdgState}
	if conf := strings.TrimSpace(w.slurm("printenv", "SLURM_CONF").out); conf != "" {
		env = append(env, "SLURM_CONF="+conf)
	}
	return slices.Concat(env, []string{"/usr/bin/setsid", "-w", w.folder + "/tp"}, args)
}

// TestCronEnvironment: everything that a crontab may call works with nothing in
// the environment, by slurmrestd and by Slurm's commands.
func TestCronEnvironment(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": `echo "$HOME $USER $PATH" >"$TP_OUT_DIR/who"`})
		w.commit()
		for _, way := range []string{"url", "child", "cli"} {
			r := w.slurm(w.bareEnv("submit", "one", "--profile", "cpu:1", "--cpus-per-node", "1", "--mem", "100M", "--yes", "--json", "--transport", way, "-C", w.lab)...)
			s := w.submitted(r)
			w.wait(s.RunDir, "SUCCEEDED")
			if who := w.read(s.RunDir, "out", "who"); !strings.Contains(who, " alice /usr/local/bin:/usr/bin:/bin") {
				w.Errorf("%s: the role has HOME, USER and PATH %q", way, who)
			}
			for _, command := range [][]string{{"tick"}, {"status"}, {"job", "ls"}} {
				if r := w.slurm(w.bareEnv(append(command, "--transport", way)...)...); r.code != 0 || strings.Contains(r.out+r.err, "\x1b") {
					w.Errorf("%s: tp %v: exit code %d\n%s%s", way, command, r.code, r.out, r.err)
				}
			}
		}
	})
}

// TestInsideAnotherJob: nothing of the allocation around tp reaches the job.
func TestInsideAnotherJob(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": `echo "$SLURM_NTASKS $SLURM_JOB_PARTITION ${SLURM_MEM_PER_CPU-none} ${SLURM_CPU_BIND_TYPE-none}" >"$TP_OUT_DIR/got"`})
		w.commit()
		for _, way := range []string{"url", "child", "cli"} {
			around := []string{"srun", "-Q", "-p", "cpu", "-N1", "-n2", "-c2", "--mem-per-cpu=10", "--cpu-bind=none", "-t5", "bash", "-c", `[ "$SLURM_PROCID" != 0 ] || exec "$@"`, "bash"}
			r := w.slurm(append(around, w.command(nil, "submit", "one", "--profile", "h100:1", "--cpus-per-node", "3", "--mem", "100M", "--yes", "--json", "--transport", way)...)...)
			s := w.submitted(r)
			job := w.scontrol(s.job())[0]
			w.pairs(0, job, map[string]string{"Partition": "h100", "NumNodes": "1", "CPUs/Task": "3", "MinMemoryNode": "100M", "NumTasks": "1"})
			w.wait(s.RunDir, "SUCCEEDED")
			if got := strings.TrimSpace(w.read(s.RunDir, "out", "got")); !strings.HasPrefix(got, "1 h100 none ") {
				w.Errorf("%s: the role sees %q", way, got)
			}
		}
	})
}
