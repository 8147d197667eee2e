package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each is one thing that a framework refuses or passes over when it starts,
// in an experiment of the template, with what tp validate says instead.
func TestRules(t *testing.T) {
	const A, R = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
	two := []string{"train=h200:16", "rollout=h100:8"}
	for _, c := range []struct {
		recipe   string
		profiles []string
		set      []string
		want     string // of the error, or after "warning: "
	}{
		{"verl/grpo", nil, []string{"ppo_micro_batch_size_per_gpu=null"}, "-s ppo_micro_batch_size_per_gpu: is not set; set it, or actor_rollout_ref.actor.use_dynamic_bsz"},
		{"verl/grpo", nil, []string{A + "ppo_micro_batch_size=8"}, "-s actor_rollout_ref.actor.ppo_micro_batch_size: is set beside actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu (4, config.yaml:12); verl takes only that one"},
		{"verl/grpo", nil, []string{"log_prob_micro_batch_size_per_gpu=null"}, "-s log_prob_micro_batch_size_per_gpu: is not set"},
		{"verl/grpo", nil, []string{"ref_log_prob_micro_batch_size_per_gpu=null"}, "-s ref_log_prob_micro_batch_size_per_gpu: is not set, because actor_rollout_ref.actor.use_kl_loss (true, config.yaml:13) needs the reference policy"},
		{"verl/grpo", nil, []string{"ref_log_prob_micro_batch_size_per_gpu=null", "use_kl_loss=false"}, ""},
		{"verl/grpo", nil, []string{"ref_log_prob_micro_batch_size_per_gpu=null", "use_dynamic_bsz=true"}, ""},
		{"verl/grpo", nil, []string{"ppo_mini_batch_size=512"}, "-s ppo_mini_batch_size: 512 is over data.train_batch_size (256, config.yaml:4)"},
		{"verl/grpo", []string{"h200:24"}, nil, "config.yaml:4:21: data.train_batch_size: 256 × actor_rollout_ref.rollout.n (8, config.yaml:17) = 2048 sequences cannot be dealt evenly to 24 GPUs"},
		{"verl/grpo", []string{"h200"}, []string{"rollouts_per_prompt=3"}, ""}, // the pool's size is not known
		{"verl/grpo", []string{"h200:16"}, []string{"model_engine=megatron", A + "megatron.tensor_model_parallel_size=3"}, "-s actor_rollout_ref.actor.megatron.tensor_model_parallel_size: tensor × pipeline × context parallel size is 3 and does not divide the 16 GPUs of the train pool"},
		{"verl/grpo", []string{"h200:16"}, []string{"model_engine=megatron", A + "megatron.tensor_model_parallel_size=2", "train_batch_size=65", "ppo_mini_batch_size=64"}, "-s train_batch_size: 65 × actor_rollout_ref.rollout.n (8, config.yaml:17) = 520 sequences cannot be dealt evenly to 32 (data parallel size × micro batch)"},
		{"verl/grpo", nil, []string{"rollout_tensor_parallel_size=3"}, "-s rollout_tensor_parallel_size: 3 does not divide the 8 GPUs of the train pool"},
		{"verl/grpo", []string{"train=h200:16", "rollout=h100:4"}, []string{"rollout_tensor_parallel_size=8"}, "-s rollout_tensor_parallel_size: 8 does not divide the 4 GPUs of the rollout pool"},
		{"verl/grpo", nil, []string{R + "mode=sync"}, "-s actor_rollout_ref.rollout.mode: verl 0.9.0 has no sync mode any more; write async, or nothing"},
		{"verl/grpo", two, []string{"train_batch_size=512"}, "-s train_batch_size: 512 is not actor_rollout_ref.actor.ppo_mini_batch_size (64, config.yaml:11) × trainer.v1.separate_async.parameter_sync_step (4, default of verl 0.9.0), as a rollout pool of its own needs"},
		{"verl/grpo", nil, []string{"save_freq=-1"}, "warning: -s save_freq: -1 (-s) never saves: what an interrupted run has learned is lost"},
		{"verl/grpo", nil, []string{"test_freq=-1"}, "warning: -s test_freq: -1 (-s) never validates while it trains"},
		{"verl/grpo", nil, []string{"lora_rank=8", "model_engine=megatron"}, "warning: -s lora_rank: Megatron passes over it; it reads actor_rollout_ref.model.lora.rank"},
		{"verl/grpo", nil, []string{"actor_rollout_ref.model.lora.rank=8"}, "warning: -s actor_rollout_ref.model.lora.rank: FSDP passes over it; it reads actor_rollout_ref.model.lora_rank"},
		{"verl/grpo", nil, []string{"custom_reward_function.path=experiments/x/reward.py"}, "-s custom_reward_function.path: verl 0.9.0 reads reward.custom_reward_function; write it there as well"},
		{"verl/grpo", nil, []string{"custom_reward_function.path=experiments/x/reward.py", "reward.custom_reward_function.path=experiments/x/other.py"}, "-s custom_reward_function.path: experiments/x/reward.py is not the same as reward.custom_reward_function.path (experiments/x/other.py, -s)"},
		{"verl/grpo", nil, []string{"reward.custom_reward_function.path=experiments/x/none.py"}, "-s reward.custom_reward_function.path: there is no file experiments/x/none.py; paths start at the lab's root"},
		{"verl/grpo", nil, []string{"reward.custom_reward_function.path=reward.py"}, "-s reward.custom_reward_function.path: reward.py is not packed; paths start at the lab's root, and only experiments/x, common and configs travel"},
		{"verl/grpo", nil, []string{"reward.custom_reward_function.path=experiments/x/reward.py", "custom_reward_function.path=experiments/x/reward.py"}, ""},
		{"verl/ppo", nil, []string{"critic_model=null"}, "-s critic_model: the critic has no model; set critic.model.path, such as ${actor_rollout_ref.model.path}"},
		{"verl/ppo", nil, []string{"critic_micro_batch_size_per_gpu=null"}, "-s critic_micro_batch_size_per_gpu: is not set; set it, or critic.use_dynamic_bsz"},
		{"verl/ppo", nil, []string{"critic.ppo_mini_batch_size=300"}, "-s critic.ppo_mini_batch_size: 300 is over data.train_batch_size (256, config.yaml:4)"},
		{"verl/sft", []string{"h200:24"}, nil, "config.yaml:4:21: data.train_batch_size: 128 sequences cannot be dealt evenly to 24 data parallel ranks"},
		{"verl/sft", nil, []string{"sequence_parallel=3"}, "-s sequence_parallel: 3 does not divide the 8 GPUs of the train pool"},
		{"verl/sft", nil, []string{"engine=megatron"}, "-s engine: megatron needs optim=megatron, and it is optim (fsdp, default of verl 0.9.0)"},
		{"verl/sft", nil, []string{"engine=megatron", "optim=megatron"}, ""},
		{"nemo-rl/grpo", []string{"h200"}, []string{"train_global_batch_size=500"}, "-s train_global_batch_size: 500 does not divide grpo.num_prompts_per_step (32, config.yaml:5) × grpo.num_generations_per_prompt (16, config.yaml:6) = 512"},
		{"nemo-rl/grpo", nil, []string{"train_global_batch_size=256"}, "warning: -s train_global_batch_size: 256 is a part of grpo.num_prompts_per_step (32, config.yaml:5) × grpo.num_generations_per_prompt (16, config.yaml:6) = 512: several updates follow one generation"},
		{"nemo-rl/grpo", nil, []string{"train_global_batch_size=256", "loss_fn.force_on_policy_ratio=true"}, "-s train_global_batch_size: 256 is not grpo.num_prompts_per_step"},
		{"nemo-rl/grpo", nil, []string{"val_batch_size=300"}, "-s val_batch_size: 300 is over grpo.max_val_samples (256, default of nemo-rl 0.7.0)"},
		{"nemo-rl/grpo", nil, []string{"batch_multiplier=2"}, "-s batch_multiplier: 2 needs grpo.use_dynamic_sampling"},
		{"nemo-rl/grpo", nil, []string{"async_grpo_enabled=true"}, "-s async_grpo_enabled: needs generation on a pool of its own: --profile train=… --profile rollout=…\n" +
			"config.yaml: policy.generation.vllm_cfg.async_engine: is false, and grpo.async_grpo.enabled (true, -s) needs it\n" +
			"config.yaml: loss_fn.use_importance_sampling_correction: is false, and grpo.async_grpo.enabled (true, -s) needs it"},
		{"nemo-rl/grpo", two, []string{"async_grpo_enabled=true", "async_engine=true", "use_importance_sampling_correction=true"}, ""},
		{"nemo-rl/grpo", []string{"train=h200:2x8", "rollout=h100:1x4"}, nil, "the train pool has 8 GPUs on a node and the rollout pool 4; NeMo-RL needs the same number"},
		{"nemo-rl/grpo", []string{"h200:16"}, []string{"tensor_parallel_size=3"}, "-s tensor_parallel_size: the parallel sizes multiply to 3, which does not divide the 16 GPUs of the train pool"},
		{"nemo-rl/grpo", []string{"h200:16"}, []string{"num_prompts_per_step=3", "train_global_batch_size=24"}, "-s train_global_batch_size: 24 cannot be dealt evenly to 16 data parallel ranks"},
		{"nemo-rl/sft", nil, []string{"checkpointing_enabled=false"}, "warning: -s checkpointing_enabled: nothing is saved: what an interrupted run has learned is lost"},
		{"nemo-rl/sft", nil, []string{"checkpoint_save_period=5000"}, "warning: -s checkpoint_save_period: 5000 is over sft.max_num_steps (2000, config.yaml:6): only the last step is saved"},
		{"nemo-rl/sft", nil, []string{"policy.megatron_cfg.enabled=true"}, "-s policy.megatron_cfg.enabled: is true beside policy.dtensor_cfg.enabled (true, default of nemo-rl 0.7.0); NeMo-RL trains with one of them"},
		{"nemo-rl/dpo", nil, []string{"sequence_packing=true"}, "-s sequence_packing: NeMo-RL's DPO does not know it"},
		{"trl/sft", nil, []string{"save_strategy=no"}, "warning: -s save_strategy: no (-s) never saves: what an interrupted run has learned is lost"},
		{"trl/sft", nil, []string{"load_best_model_at_end=true", "eval_strategy=epoch"}, "-s load_best_model_at_end: needs save_strategy (steps, default of trl 1.9.0) to be the same as eval_strategy (epoch, -s)"},
		{"trl/dpo", nil, []string{`loss_type=["sigmoid", "sft"]`, "loss_weights=[1]"}, `-s loss_weights: has 1 weights for the 2 losses of loss_type (["sigmoid", "sft"], -s)`},
		{"trl/kto", nil, []string{"per_device_train_batch_size=1"}, "warning: -s per_device_train_batch_size: 1 makes KTO's estimate of the KL distance useless; take 2 at least"},
		{"trl/grpo", []string{"h200:1"}, []string{"num_generations=6"}, "-s num_generations: 6 does not divide per_device_train_batch_size (8, config.yaml:5) × gradient_accumulation_steps (2, config.yaml:6) × 1 GPUs = 16"},
		{"trl/grpo", nil, []string{"generation_batch_size=64", "steps_per_generation=2"}, "-s generation_batch_size: is set beside steps_per_generation (2, -s); TRL takes one of them"},
		{"trl/grpo", nil, []string{"generation_batch_size=60"}, "-s generation_batch_size: 60 is no multiple of per_device_train_batch_size (8, config.yaml:5) × 8 GPUs"},
		{"trl/grpo", nil, []string{"reward_funcs=[]"}, "-s reward_funcs: names no reward"},
		{"trl/grpo", []string{"train=h200:8", "rollout=h100:2x8"}, nil, "--profile rollout=h100:2x8: TRL calls one vLLM server, on one node"},
		{"trl/grpo", two, []string{"server_tensor_parallel_size=4", "server_data_parallel_size=4"}, "-s server_tensor_parallel_size: 4 × server_data_parallel_size (4, -s) is over the 8 GPUs of the rollout pool"},
		{"trl/grpo", two, []string{"server_tensor_parallel_size=4"}, "warning: -s server_tensor_parallel_size: 4 × server_data_parallel_size (1, default) leaves GPUs of the rollout pool idle: it has 8"},
		{"openrlhf/sft", nil, []string{"save_steps=-1"}, "warning: -s save_steps: -1 (-s) never saves"},
		{"openrlhf/ppo", nil, []string{"n_samples_per_prompt=1"}, "-s n_samples_per_prompt: 1 is under 2, and algo.advantage.estimator (group_norm, config.yaml:10) compares the responses to one prompt"},
		{"openrlhf/ppo", nil, []string{"vllm_num_engines=3"}, "-s vllm_num_engines: 3 × vllm.tensor_parallel_size (1, config.yaml:23) is not the 8 GPUs of the train pool, on which all models are"},
		{"openrlhf/ppo", nil, []string{"reward_url=null"}, "-s reward_url: is not set: a reward model (reward.model_name_or_path) or reward.remote_url is needed"},
		{"openrlhf/ppo", []string{"h200:16"}, []string{"n_samples_per_prompt=2", "rollout_batch_size=4", "vllm_num_engines=16"}, "-s rollout_batch_size: 4 × rollout.n_samples_per_prompt (2, -s) / rollout.micro_batch_size (1, default of openrlhf 0.11.0) is under the 16 GPUs of the train pool"},
		{"llamafactory/sft", nil, []string{"save_strategy=no"}, "warning: -s save_strategy: no (-s) never saves"},
		{"llamafactory/sft", nil, []string{"dataset=null"}, "-s dataset: is not set: names of dataset_info.json are needed"},
		{"llamafactory/dpo", nil, []string{"eval_strategy=steps"}, "-s eval_strategy: steps needs val_size or eval_dataset"},
		{"evalkit/benchmark", nil, []string{"tensor_parallel_size=16"}, "-s tensor_parallel_size: 16 × data_parallel_size (1, default) is over the 8 GPUs of the eval pool"},
		{"evalkit/benchmark", nil, []string{"tensor_parallel_size=4"}, "warning: -s tensor_parallel_size: 4 × data_parallel_size (1, default) leaves GPUs of the eval pool idle: it has 8"},
		{"evalkit/benchmark", []string{"h200:2x8"}, nil, "--profile h200:2x8: evalkit/benchmark runs on one node"},
		{"export/hf", []string{"h200:2x8"}, nil, "--profile h200:2x8: export/hf runs on one node"},
		{"data/prep", []string{"cpu:2x1"}, nil, "--profile cpu:2x1: data/prep runs on one node"},
	} {
		l, e := newLab(t, c.recipe, "x", map[string]string{"reward.py": "", "other.py": ""})
		for _, dir := range []string{"common", "configs"} {
			if err := os.MkdirAll(filepath.Join(l.Root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		r, _ := Embedded().Get(c.recipe)
		if len(c.profiles) == 0 {
			c.profiles = []string{"h200:8"}
		}
		_, how, err := Compose(l, e, inputsOf(r, Options{Profiles: c.profiles, Set: c.set}))
		if warning, ok := strings.CutPrefix(c.want, "warning: "); ok {
			if err != nil || !strings.Contains(strings.Join(how.Warnings, "\n"), warning) {
				t.Errorf("%s %v %q: %v\n got  %+v\n want %s", c.recipe, c.profiles, c.set, err, how, warning)
			}
			continue
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, c.want) || (c.want == "") != (err == nil) {
			t.Errorf("%s %v %q\n got  %s\n want %s", c.recipe, c.profiles, c.set, text, c.want)
		}
	}
}
