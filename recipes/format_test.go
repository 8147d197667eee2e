package recipes

import (
	"strings"
	"testing"
)

// What a config.yaml may be beside plain YAML, and what becomes of it in each
// kind of recipe: an error with its place, a warning, or the value as typed.
func TestOddConfigurations(t *testing.T) {
	verl := "data: {train_batch_size: 256}\nactor_rollout_ref: {actor: {ppo_micro_batch_size_per_gpu: 4}, rollout: {log_prob_micro_batch_size_per_gpu: 8}}\ntrainer: {save_freq: 5, test_freq: 5}\n"
	trl := "save_steps: 5\n"
	nemo := "defaults: /opt/nemo-rl/examples/configs/grpo_math_1B.yaml\n"
	for _, c := range []struct{ recipe, config, want string }{
		{"verl/grpo", strings.ReplaceAll(verl, "\n", "\r\n"), "data.train_batch_size=256"},
		{"verl/grpo", "\uFEFF" + verl, "data.train_batch_size=256"},
		{"verl/grpo", verl + "critic:\n\toptim: {lr: 1}\n", "error: config.yaml:5:1: found character that cannot start any token"},
		{"verl/grpo", verl + "data: {}\n", "error: config.yaml:4:1: data: the key is there twice"},
		{"verl/grpo", verl + "critic: {optim: &o {lr: 1e-5}}\nreward_model: {n_gpus_per_node: *o}\n", "error: config.yaml:4:25: reward_model.n_gpus_per_node.lr: verl 0.9.0 has no such key"},
		{"verl/grpo", verl + "critic: {strategy: &s fsdp2, optim: {lr: 1e-5, optimizer: *s}}\n", "critic.optim.optimizer=fsdp2"},
		{"verl/grpo", verl + "x: *none\n", "error: config.yaml:4:4: unknown anchor 'none' referenced"},
		{"verl/grpo", verl + "x: \xff\n", "error: config.yaml:4:4: not UTF-8; save the file as UTF-8"},
		{"verl/grpo", "\xff\xfed\x00", "error: config.yaml:1:1: not UTF-8"},
		{"verl/grpo", verl + "x: a\x00b\n", "error: config.yaml: control characters are not allowed"},
		{"verl/grpo", verl + "# " + strings.Repeat("x", 10<<20) + "\n", "error: experiments/x has no readable config.yaml: "},
		{"verl/grpo", verl + "---\nx: 1\n", "error: config.yaml:4: a second document begins; one is expected"},
		{"verl/grpo", "- 1\n", "error: config.yaml:1:1: expected keys with values"},
		{"verl/grpo", verl + "? [a]\n: 1\n", "error: config.yaml:4:3: a key is a text"},
		{"verl/grpo", verl + "critic: {optim: {lr: !!float 1}}\n", "error: config.yaml:4:22: critic.optim.lr: the tag !!float is not read"},
		// Scalars travel as typed; what Hydra reads as something else than YAML is said.
		{"verl/grpo", verl + "trainer: {project_name: no}\n", "error: config.yaml:4:1: trainer: the key is there twice"},
		{"verl/grpo", verl + "critic: {optim: {lr: 1e-5}}\n", "critic.optim.lr=1e-5"},
		{"verl/grpo", verl + "\"+a\": 12345e7\n", "+a=12345e7"},
		{"verl/grpo", verl + "\"+a\": no\n", "+a=no | warning: config.yaml:4:7: +a: no is a text here, as typed; PyYAML would read another value"},
		{"verl/grpo", verl + "\"+a\": 08\n", "+a=08 | warning: config.yaml:4:7: +a: 08 is a number to YAML and a text to Hydra"},
		{"verl/grpo", verl + "\"+a\": 1:30\n", "+a=1:30 | warning: config.yaml:4:7: +a: 1:30 is a text here"},
		{"verl/grpo", verl + "\"+a\": 0x1F\n", "+a=0x1F | warning: config.yaml:4:7: +a: 0x1F is a number to YAML and a text to Hydra"},
		{"verl/grpo", verl + "\"+a\": 1_000\n", "+a=1_000 | warning: config.yaml:4:7: +a: 1_000 is a number to some YAML readers"},
		{"verl/grpo", verl + "\"+a\": .inf\n", "+a=inf"},
		{"verl/grpo", verl + "\"+a\": inf\n", "+a='inf'"},
		{"verl/grpo", verl + "\"+a\": \"8\"\n", "+a='8'"},
		{"verl/grpo", verl + "\"+a\": 'true'\n", "+a='true'"},
		{"verl/grpo", verl + "\"+a\":\n", "+a=null"},
		{"verl/grpo", verl + "\"+a\": ~\n", "+a=null"},
		{"verl/grpo", verl + "\"+a\": TRUE\n", "+a=true"},
		{"verl/grpo", verl + "\"+a\": [1e-5, no, null, \"1\", 'a, b', {k: v, l: [x]}, {}]\n", "+a=[1e-5,no,null,'1','a, b',{k:v,l:[x]},{}]"},
		{"verl/grpo", verl + "\"+a\": {b: {c: 1}}\n", "+a.b.c=1"},
		{"verl/grpo", verl + "\"+a\": ${data.train_batch_size}\n", "+a=${data.train_batch_size}"},
		{"verl/grpo", verl + "\"+a\": \"${oc.env:HOME}/x\"\n", "+a='${oc.env:HOME}/x'"},
		{"verl/grpo", verl + "\"+a\": hf://org/name@main\n", "+a=hf://org/name@main"},
		{"verl/grpo", verl + "\"+a\": \"it's \\\\ 實驗\\n\"\n", "+a='it\\'s \\ 實驗\n'"},
		{"verl/grpo", verl + "\"~critic.optim\":\n", "~critic.optim=null"},
		{"verl/grpo", verl + "\"++trainer.project_name\": p\n", "++trainer.project_name=p"},
		{"verl/grpo", verl + "\"+a b\": 1\n", "error: config.yaml:4:9: +a b: \"a b\" is no key of Hydra's grammar"},
		{"verl/grpo", verl + "\"+a\": [{\"x y\": 1}]\n", "error: +a: config.yaml:4:7: the key \"x y\" cannot be written in Hydra's grammar"},
		{"verl/grpo", verl + "trainers: {x: 1}\n", "error: config.yaml:4:15: trainers.x: verl 0.9.0 has no such key; \"+trainers.x\" adds it"},
		{"verl/grpo", verl + "critic: {optim: {lr_: 1}}\n", "error: config.yaml:4:23: critic.optim.lr_: verl 0.9.0 has no such key; did you mean \"critic.optim.lr\"?"},
		{"verl/grpo", verl + "model_engine: megatron\n", "model_engine=megatron"},
		// Model, data, topology and output are tp's.
		{"verl/grpo", verl + "algorithm: {adv_estimator: grpo}\n", "algorithm.adv_estimator=grpo"},
		{"verl/grpo", strings.Replace(verl, "save_freq: 5", "nnodes: 4, save_freq: 5", 1), "trainer.nnodes=2 | warning: config.yaml:3:19: trainer.nnodes: 4 is not used: tp sets it, from --profile"},
		{"verl/grpo", verl + "\"+trainer.nnodes\": 4\n", "trainer.nnodes=2 | warning: config.yaml:4:20: +trainer.nnodes: 4 is not used"},
		// Where the framework reads the file itself, only JSON says what it would read otherwise.
		{"trl/sft", trl + "learning_rate: 1e-5\n", `{"learning_rate": 1e-5, "report_to": "none"}`},
		{"trl/sft", trl + "learning_rate: 1.0e-5\n", `{"report_to": "none"}`},
		{"trl/sft", trl + "run_name: 08\n", `{"report_to": "none"} | warning: config.yaml:2:11: run_name: 08 is a number to some YAML readers`},
		{"trl/sft", trl + "run_name: no\n", `"run_name": "no"`},
		{"trl/sft", trl + "max_seq_length: 5\n", "warning: config.yaml:2:17: max_seq_length: trl 1.9.0 has no such key; did you mean \"max_length\"?"},
		{"trl/dpo", trl + "max_prompt_length: 5\n", "error: config.yaml:2:20: max_prompt_length: trl 1.9.0 has no such key; 0.24.0 has it"},
		{"trl/sft", trl + "output_dir: x\n", "warning: config.yaml:2:13: output_dir: x is not used: tp sets it, within the run's directory"},
		{"trl/sft", trl + "learning_rate: 08\n", "error: config.yaml:2:16: learning_rate: \"08\" is no number; write 8"},
		{"nemo-rl/grpo", nemo + "policy: {precision: float16}\n", "++cluster.num_nodes=2"},
		{"nemo-rl/grpo", nemo + "grpo: {seed: 010}\n", "error: config.yaml:2:14: grpo.seed: \"010\" is no whole number; write 10"},
		{"nemo-rl/grpo", nemo + "env: {k: 010}\n", "warning: config.yaml:2:10: env.k: 010 is an octal number to some YAML readers"},
		{"nemo-rl/grpo", nemo + "grpo: {num_promts_per_step: 1}\n", "warning: config.yaml:2:29: grpo.num_promts_per_step: nemo-rl 0.7.0 has no such key; did you mean \"grpo.num_prompts_per_step\"?"},
		{"nemo-rl/grpo", nemo + "opsd: {x: 1}\n", "++cluster.num_nodes=2"},
		{"nemo-rl/grpo", nemo + "cluster: {num_nodes: 9}\n", "++cluster.num_nodes=2 | warning: config.yaml:2:22: cluster.num_nodes: 9 is not used: tp sets it, from --profile"},
	} {
		l, e := newLab(t, c.recipe, "x", map[string]string{"config.yaml": c.config})
		r, _ := Embedded().Get(c.recipe)
		s, how, err := Compose(l, e, inputsOf(r, Options{Profiles: []string{"h200"}}))
		shown := c.config
		if len(shown) > 200 {
			shown = shown[len(verl):min(len(shown), len(verl)+60)]
		}
		if want, ok := strings.CutPrefix(c.want, "error: "); ok {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s %q\n got  %v\n want %s", c.recipe, shown, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.recipe, shown, err)
			continue
		}
		words := strings.Join(driverWords(t, s.Roles[0].Body), "\x00")
		for _, want := range strings.Split(c.want, " | ") {
			if warning, ok := strings.CutPrefix(want, "warning: "); ok {
				if !strings.Contains(strings.Join(how.Warnings, "\n"), warning) {
					t.Errorf("%s %q\n got  warnings %q\n want %s", c.recipe, shown, how.Warnings, warning)
				}
			} else if !strings.Contains(words+"\x00", want) {
				t.Errorf("%s %q\n got  %q\n want %s", c.recipe, shown, words, want)
			}
		}
	}
}
