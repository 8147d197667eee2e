package recipes

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
)

// Experiments as TunePlane's labs have them: a lock of version 4 with typed
// bindings, and a configuration without the keys that a platform sets.
func TestExperimentsOfOtherTools(t *testing.T) {
	lock := func(recipe, kind, version, entryKind, entry, params string) string {
		return `{"apiVersion":"forge/recipe-lock/v4","created_by":{"core_version":"0.3.53"},"requires":{"core":">=0.1,<1"},"recipe":{"name":"` + recipe +
			`","version":"0.7.0","digest":"` + digest0 + `","manifest_digest":"` + digest0 + `","template_digest":"` + digest0 + `"},"framework":{"kind":"` + kind +
			`","version":"` + version + `","runtime_id":"` + kind + `-` + version + `"},"bindings":{"entrypoint":{"kind":"` + entryKind + `","value":"` + entry + `"},"params":` + params + `}}`
	}
	verl := "data: {train_batch_size: 64}\nactor_rollout_ref: {actor: {ppo_mini_batch_size: 32, ppo_micro_batch_size_per_gpu: 4}, rollout: {name: vllm, n: 4, tensor_model_parallel_size: 1, log_prob_micro_batch_size_per_gpu: 8}}\ntrainer: {save_freq: 5, test_freq: 5}\nmodel_engine: dp\n\"+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype\": fp8\n"
	for _, c := range []struct {
		name, lock string
		files      map[string]string
		set        []string
		want       string // a word, or "error: "
	}{
		{"verl", lock("verl/grpo", "verl", "0.9.0", "module", "verl.trainer.main_ppo", `{"lr":{"path":"actor_rollout_ref.actor.optim.lr","type":"float"},"rollouts":{"path":"actor_rollout_ref.rollout.n","type":"int"}}`),
			map[string]string{"config.yaml": verl}, []string{"lr=2e-6", "rollouts=8"}, "actor_rollout_ref.actor.optim.lr=2e-6"},
		{"our range counts for their name", lock("verl/grpo", "verl", "0.9.0", "module", "verl.trainer.main_ppo", `{"rollouts":{"path":"actor_rollout_ref.rollout.n","type":"int"}}`),
			map[string]string{"config.yaml": verl}, []string{"rollouts=1"}, "error: -s rollouts: 1 is under 2"},
		{"no bindings", lock("verl/grpo", "verl", "0.6.0", "module", "verl.trainer.main_ppo", `{}`), map[string]string{"config.yaml": verl}, nil, "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype=fp8"},
		{"nemo-rl with a script of its own", lock("nemo-rl/grpo", "nemo-rl", "0.7.0", "experiment", "run.py", `{"lr":{"path":"policy.optimizer.kwargs.lr","type":"float"}}`),
			map[string]string{"config.yaml": "defaults: /opt/nemo-rl/examples/configs/grpo_math_1B.yaml\n", "run.py": ""}, []string{"lr=1e-6"}, "++policy.optimizer.kwargs.lr=1e-6"},
		{"a method of their own", lock("nemo-rl/opsd", "nemo-rl", "0.7.0", "experiment", "run.py", `{"clip":{"path":"opsd.per_token_kl_clip","type":"float"}}`),
			map[string]string{"config.yaml": "defaults: /opt/nemo-rl/examples/configs/grpo_math_1B.yaml\nopsd: {per_token_kl_clip: 10.0}\n", "run.py": ""}, []string{"clip=5"}, "++opsd.per_token_kl_clip=5"},
		{"trl", lock("trl/grpo", "trl", "1.9.0", "experiment", "train.py", `{"lr":{"path":"learning_rate","type":"float"},"max_prompt_length":{"path":"max_prompt_length","type":"int"}}`),
			map[string]string{"config.yaml": "save_steps: 5\n"}, []string{"lr=1e-6"}, `{"learning_rate": 1e-6, "report_to": "none"}`},
		{"a binding that the version lacks", lock("trl/grpo", "trl", "1.9.0", "experiment", "train.py", `{"max_prompt_length":{"path":"max_prompt_length","type":"int"}}`),
			map[string]string{"config.yaml": "save_steps: 5\n"}, []string{"max_prompt_length=512"}, "error: -s max_prompt_length: trl 1.9.0 has no such key; 0.24.0 has it"},
	} {
		recipe := map[bool]string{true: "verl/grpo", false: "trl/grpo"}[strings.Contains(c.lock, "verl/")]
		files := map[string]string{lab.LockName: c.lock}
		for name, text := range c.files {
			files[name] = text
		}
		l, e := newLab(t, recipe, "x", files)
		s, how, err := Compose(l, e, Options{Profiles: []string{"h200:8"}, Set: c.set, Model: "m", TrainData: "/d/train.parquet", ValidationData: "/d/val.parquet"})
		if want, ok := strings.CutPrefix(c.want, "error: "); ok {
			if err == nil || err.Error() != want {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || how.State != Foreign {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		words := driverWords(t, s.Roles[0].Body)
		found := 0
		for _, word := range words {
			if word == c.want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %q has %q %d times", c.name, words, c.want, found)
		}
	}
}
