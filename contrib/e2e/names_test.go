package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// hard is a name with everything that has broken a script, a directive or a
// path: quotes, #, $, a backslash, CJK, an emoji, and the word that separates
// the components of a het job.
const hard = `it's a "test" #1 $HOME \ 训练 🚀 hetjob x`

// values are what a variable of a job may hold: everything but NUL.
var values = map[string]string{
	"V_COMMA":    `0,1,2,3`,
	"V_JSON":     `{"a": 1, "b": [2, "it's"]}`,
	"V_NEWLINE":  "first\nsecond\n\nfourth\n",
	"V_DOLLAR":   `$(id) ${HOME} $HOME $$ $1`,
	"V_BACKTICK": "`id` \\`id\\`",
	"V_SPACE":    "  two before, one after ",
	"V_EMPTY":    "",
	"V_CJK":      "训练 学習 훈련 🚀",
	"V_QUOTES":   `'a' "b" '"'"' \" \'`,
	"V_SLASH":    `\n \\ \ `,
	"V_TAB":      "a\tb\rc\x01d\x7f",
	"V_SBATCH":   "x\n#SBATCH --account=vip\n#SBATCH hetjob\n",
	"V_PERCENT":  "%j %% %n !history ~ * ? [a-z] ; & | < > ( )",
	"V_EQUALS":   "a=b==c",
	"v_lower":    "lower case",
}

// TestNamesAndValues carries hard names and values through REST and through
// sbatch to both pools of a job.
func TestNamesAndValues(t *testing.T) {
	const dump = `env -0 >"$TP_OUT_DIR/$TP_ROLE.env"; printf %s "$PWD" >"$TP_OUT_DIR/$TP_ROLE.pwd"`
	each(t, func(w *world) {
		w.hetTurn()
		w.useS3()
		w.experiment(hard, map[string]string{"train": dump + `; until [ -s "$TP_OUT_DIR/rollout.pwd" ]; do sleep 0.1; done`, "rollout": dump + "; sleep 600 & wait"})
		// Half of the values come from job.toml, half from --env.
		job := w.read(w.lab, "experiments", hard, "job.toml") + "[env]\n"
		args := []string{hard, "--profile", "train=h200:1", "--profile", "rollout=h100:1"}
		file := false
		for name, value := range values {
			if file = !file; file {
				job += fmt.Sprintf("%s = %s\n", name, tomlText(value))
			} else {
				args = append(args, "--env", name+"="+value)
			}
		}
		w.write("experiments/"+hard+"/job.toml", job)
		w.commit()

		check := func(dir, jobID, name string) {
			w.Helper()
			w.wait(dir, "SUCCEEDED")
			jobs := w.scontrol(jobID)
			if len(jobs) != 2 {
				w.Errorf("%d components, wanted 2: %v", len(jobs), jobs)
			}
			for i, j := range jobs {
				if j["JobName"] != name+"."+runID(dir) {
					w.Errorf("component %d: the job's name is %q, wanted %q", i, j["JobName"], name+"."+runID(dir))
				}
			}
			for _, role := range []string{"train", "rollout"} {
				got := w.environ(dir, "out", role+".env")
				for variable, want := range values {
					if value, ok := got[variable]; !ok || value != want {
						w.Errorf("%s: %s is %q (set: %v), wanted %q", role, variable, value, ok, want)
					}
				}
				if want := dir + "/code/experiments/" + hard; w.read(dir, "out", role+".pwd") != want || got["TP_EXP_DIR"] != want {
					w.Errorf("%s ran in %q, wanted %q", role, w.read(dir, "out", role+".pwd"), want)
				}
				if got["TP_EXPERIMENT"] != hard {
					w.Errorf("%s: TP_EXPERIMENT is %q", role, got["TP_EXPERIMENT"])
				}
			}
		}
		s := w.submit(args...)
		if len(s.Differences) > 0 {
			w.Errorf("differences: %q", s.Differences)
		}
		const name = `  run #3 'a "b" $(id) \\ 名前 hetjob`
		script, dir := w.render(append(args, "--name", name)...)
		byHand := w.sbatch(script)
		check(s.RunDir, s.job(), hard)
		check(dir, byHand, name)
	})
}

// tomlText is a TOML basic string.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func TestControlCharactersInNamesAreRefused(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("plain", map[string]string{"train": "true"})
		w.experiment("new\nline", map[string]string{"train": "true"})
		w.commit()
		for _, args := range [][]string{
			{"plain", "--name", "x\n#SBATCH --account=vip"},
			{"plain", "--name", "tab\there"},
			{"plain", "--name", "\x1b[31mred"},
			{"plain", "--name", "del\x7f"},
			{"plain", "--name", "bad utf-8 \xff"},
			{"plain", "--project", "x\ny"},
			{"plain", "--account", "x\n#SBATCH --qos=high"},
			{"plain", "--qos", "x\ny"},
			{"plain", "--constraint", "x\ny"},
			{"plain", "--partition", "cpu\ny"},
			{"plain", "--reservation", "x\ny"},
			{"plain", "--env", "A-B=1"},
			{"plain", "--env", "1X=1"},
			{"plain", "--env", "X\nY=1"},
			{"plain", "--env", "X=\xff"},
			{"new\nline"},
		} {
			r := w.tp(append([]string{"submit", "--yes", "--profile", "cpu:1"}, args...)...)
			if r.code != 2 {
				w.Errorf("%q: exit code %d, wanted 2\n%s%s", args, r.code, r.out, r.err)
			}
			if strings.ContainsAny(r.err, "\x1b\x7f\t") {
				w.Errorf("%q: the message has raw control characters: %s", args, strconv.Quote(r.err))
			}
		}
		w.nothingHappened()
	})
}

// nothingHappened: no job, no run directory, no object.
func (w *world) nothingHappened() {
	w.Helper()
	if jobs := w.jobs("all"); len(jobs) > 0 {
		w.Errorf("jobs were submitted: %v", jobs)
	}
	if runs := w.must("find", w.dir+"/runs", "-name", "run-*"); runs != "" {
		w.Errorf("runs were made: %s", runs)
	}
	if objects := w.must("find", w.dir+"/objects", "-type", "f"); objects != "" {
		w.Errorf("objects were stored: %s", objects)
	}
}
