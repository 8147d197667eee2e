package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/recipes"
)

// rendering is one recipe on one way of sharing pools.
type rendering struct {
	name string   // of the script
	args []string // of tp render
}

// renderings makes an experiment of every recipe of the catalogue, and what tp
// render is asked for: one pool, and one per optional role.
func (w *world) renderings() (methods []string, all []rendering) {
	w.Helper()
	for _, name := range recipes.Embedded().Names() {
		r, err := recipes.Embedded().Get(name)
		w.ok(err)
		exp := strings.ReplaceAll(name, "/", "-")
		methods = append(methods, exp+" "+name)
		args := []string{exp, "--time", "5m", "--cpus-per-node", "2", "--mem", "2G"}
		for input, value := range map[string]string{"model": "/shared/model", "train_data": "/shared/train.parquet", "validation_data": "/shared/test.parquet"} {
			if r.Inputs[input] != "" {
				args = append(args, "--"+strings.ReplaceAll(input, "_", "-"), value)
			}
		}
		switch name {
		case "evalkit/benchmark":
			args = append(args, "-s", "tasks=gsm8k")
		case "openrlhf/ppo": // its engines fill the pool
			args = append(args, "-s", "vllm_num_engines=2")
		}
		all = append(all, rendering{exp, append(args, "--profile", "h200:2")})
		for _, role := range r.OptionalRoles {
			all = append(all, rendering{exp + "+" + role, append(args[:len(args):len(args)], "--profile", r.Driver+"=h200:2", "--profile", role+"=h100:2")})
		}
	}
	return methods, all
}

// Every recipe's script, on one pool and on pools of different GPUs, is taken by
// sbatch and by shellcheck. One shell in the world does it all: entering it
// takes longer than a recipe.
func TestEveryRecipeIsTakenBySbatch(t *testing.T) {
	each(t, func(w *world) {
		methods, all := w.renderings()
		out := filepath.Join(w.dir, "rendered")
		w.mkdir(out)
		var text strings.Builder
		text.WriteString("cd " + shell.Quote(w.lab) + "\n")
		tp := make([]string, 0, 8)
		for _, word := range w.command(nil) {
			tp = append(tp, shell.Quote(word))
		}
		fmt.Fprintf(&text, "tp() { %s \"$@\"; }\n", strings.Join(tp, " "))
		for _, m := range methods {
			exp, method, _ := strings.Cut(m, " ")
			fmt.Fprintf(&text, "tp new %s --method %s >/dev/null 2>%s/new || { echo %s: tp new; cat %s/new; }\n", exp, method, out, exp, out)
		}
		text.WriteString("git init -q && git add -A && git -c user.name=alice -c user.email=a@localhost commit -qm All\n")
		for _, r := range all {
			words := make([]string, len(r.args))
			for i, word := range r.args {
				words[i] = shell.Quote(word)
			}
			fmt.Fprintf(&text, "if ! tp render %s >%s/%s.sh 2>%s/err; then echo '%s: tp render'; cat %s/err\n", strings.Join(words, " "), out, r.name, out, r.name, out)
			fmt.Fprintf(&text, "elif ! sbatch --test-only %s/%s.sh >%s/err 2>&1; then echo '%s: sbatch'; cat %s/err; fi\n", out, r.name, out, r.name, out)
		}
		script := filepath.Join(w.dir, "render.sh")
		w.ok(os.WriteFile(script, []byte(text.String()), 0o644))
		if r := w.slurm("bash", script); r.code != 0 || r.out+r.err != "" {
			w.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		scripts, err := filepath.Glob(out + "/*.sh")
		w.ok(err)
		if len(scripts) != len(all) || len(all) < 20 {
			w.Fatalf("%d scripts of %d renderings", len(scripts), len(all))
		}
		for _, r := range all {
			components := strings.Count(w.read(out, r.name+".sh"), "#SBATCH hetjob") + 1
			if want := strings.Count(r.name, "+") + 1; components != want {
				w.Errorf("%s has %d components, wanted %d", r.name, components, want)
			}
		}
		// The shell text is the same on every release; checking it takes longest.
		if w.release != strings.Fields(os.Getenv("TP_E2E_RELEASES"))[0] {
			return
		}
		if _, err := exec.LookPath("shellcheck"); err != nil {
			w.Skip("no shellcheck")
		}
		if out, err := command("shellcheck", append([]string{"-s", "bash", "-e", "SC2016,SC2034,SC2154,SC2317"}, scripts...)...); err != nil {
			w.Errorf("%v\n%s", err, out)
		}
	})
}
