package recipes

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

var (
	hydraLine = regexp.MustCompile(`(?m)^tp_(hydra|yaml)=.*$`)
	arrayOnly = regexp.MustCompile(`(?ms)^tp_(command|target)=\((?:[^\n]*\)$|\n.*?^\)$)`)
)

// driverWords are the words of the driver's command as bash makes them in a
// job of two nodes with eight GPUs each, and one more node for generation.
func driverWords(t *testing.T, body string) []string {
	t.Helper()
	at := arrayOnly.FindStringSubmatch(body)
	if at == nil {
		t.Fatalf("no command in\n%s", body)
	}
	script := hydraLine.FindString(body) + "\n" + at[0] + "\nprintf '%s\\0' \"${tp_" + at[1] + "[@]}\"\n"
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TP_OUT_DIR=/runs/it's \\'me\\/out", "TP_EXP_DIR=/code/experiments/first", "TP_CODE_DIR=/code",
		"TP_ROLE_TRAIN_NNODES=2", "TP_ROLE_TRAIN_GPUS_PER_NODE=8", "TP_ROLE_ROLLOUT_NNODES=1", "TP_ROLE_ROLLOUT_GPUS_PER_NODE=8",
		"TP_SERVER_HOST=10.0.0.3", "TP_SERVER_PORT=12000", "TP_SERVER_GROUP_PORT=12015"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// hostileSets are values that need every rule of quoting.
func hostileSets(r *Recipe) []string {
	switch {
	case r.Config == Hydra:
		return []string{`trainer.project_name=it's, "a" {b} [c] $HOME \'x\ 實驗`, "+added.key=1e-5", "+added.list=[1e-5, \"a,b\", null, true]", "+added.text=08"}
	case r.Config == NeMoYAML:
		return []string{`checkpointing.metric_name=it's, "a" $HOME \'x\ 實驗`, "+added.key=1e-5"}
	case r.Name == "openrlhf/ppo":
		return []string{"vllm_num_engines=16", `logger.wandb.project=it's, "a" $HOME \ 實驗`, "ds.packing_samples=true"}
	case r.Config == Flags:
		return []string{`logger.wandb.project=it's, "a" $HOME \ 實驗`, "learning_rate=1e-5", `adam.betas=[0.9, 0.95]`}
	case r.Config == YAMLArgs:
		return []string{`run_name=it's, "a" $HOME \ 實驗: {b} #c`, "learning_rate=1e-5", "seed=7", "template=null", `lora_target=q_proj,v_proj`, "dataset=008"}
	case r.Name == "evalkit/benchmark":
		return []string{"tasks=gsm8k,mmlu", "tensor_parallel_size=8", "limit=0.5"}
	case r.Name == "data/prep":
		return []string{`instruction=it's, "a" {b} $HOME \ 實驗`, "answer_after=####", "validation_part=0.1"}
	case r.Name == "trl/grpo":
		return []string{"learning_rate=1e-5", `run_name=it's "a"`}
	}
	return nil
}

// TestCommandLines compares every recipe's command, for each version of its
// framework and each way that its roles share pools, with a golden file.
func TestCommandLines(t *testing.T) {
	for _, name := range Embedded().Names() {
		r, _ := Embedded().Get(name)
		if r.Keys == nil && r.Checked == "" {
			continue
		}
		for _, version := range r.Framework.Versions {
			profiles := map[string][]string{"": {"h200:16"}}
			if slices.Contains([]string{"evalkit/benchmark", "export/hf", "data/prep"}, r.Name) { // one node
				profiles[""] = []string{"h200:8"}
			}
			for _, role := range r.OptionalRoles {
				if at(r.Role[role].Versions, version) {
					profiles["-"+role] = []string{"train=h200:16", role + "=h100:8"}
				}
			}
			for suffix, pools := range profiles {
				file := filepath.Join("testdata/commands", strings.ReplaceAll(name, "/", "-")+"-"+version+suffix+".txt")
				t.Run(filepath.Base(file), func(t *testing.T) { goldenCommand(t, r, version, pools, file) })
			}
		}
	}
}

func goldenCommand(t *testing.T, r *Recipe, version string, pools []string, file string) {
	l, e := newLab(t, r.Name, "first", nil)
	lock, err := NewLock(r, version)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteLock(e, lock, "test"); err != nil {
		t.Fatal(err)
	}
	s, c := compose(t, l, e, inputsOf(r, Options{Profiles: pools, Set: hostileSets(r)}))
	var b strings.Builder
	source := r.Checked
	if r.Keys != nil {
		source = r.Keys.Source
	}
	fmt.Fprintf(&b, "# %s\n", source)
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "# warning: %s\n", w)
	}
	for _, word := range driverWords(t, s.Roles[0].Body) {
		fmt.Fprintf(&b, "%s\n", word)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, b.String(), want)
	}
}
