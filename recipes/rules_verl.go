package recipes

import (
	"path"
	"slices"
)

// verlRL are the rules of verl/utils/config.py (validate_config), of
// verl/workers/config and of verl/trainer/ppo/v1 at v0.7.1, v0.8.0 and v0.9.0.
func (r *rulebook) verlRL() {
	const actor, rollout, ref = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout.", "actor_rollout_ref.ref."
	batch, mini, n := r.fact("data.train_batch_size"), r.fact(actor+"ppo_mini_batch_size"), r.fact(rollout+"n")
	dynamic := r.fact(actor + "use_dynamic_bsz").is("true")
	if !dynamic {
		r.oneOf(actor+"ppo_micro_batch_size_per_gpu", actor+"ppo_micro_batch_size", "")
		r.oneOf(rollout+"log_prob_micro_batch_size_per_gpu", rollout+"log_prob_micro_batch_size", "")
		for _, kl := range []string{actor + "use_kl_loss", "algorithm.use_kl_in_reward"} {
			if r.fact(kl).is("true") {
				r.oneOf(ref+"log_prob_micro_batch_size_per_gpu", ref+"log_prob_micro_batch_size", ", because "+r.fact(kl).String()+" needs the reference policy")
				break
			}
		}
		if v, ok := numbers(batch, mini); ok && v[0] < v[1] {
			r.bad(mini, "%s is over %s", mini.text, batch)
		}
		r.verlSplit(batch, n)
	}
	if tp, ok := r.fact(rollout + "tensor_model_parallel_size").number(); ok && tp > 0 {
		role := r.recipe.Driver
		if slices.Contains(r.roles, "rollout") {
			role = "rollout"
		}
		if g := r.gpus(role); g > 0 && int(g)%int(tp) != 0 {
			r.bad(r.fact(rollout+"tensor_model_parallel_size"), "%s does not divide the %s GPUs of the %s pool", whole(tp), whole(g), role)
		}
	}
	if mode := r.fact(rollout + "mode"); mode.is("sync") {
		r.bad(mode, "verl %s has no sync mode any more; write async, or nothing", r.version)
	}
	r.verlRewards()
	r.verlLoRA("actor_rollout_ref.model.")
	if r.fact("algorithm.adv_estimator").is("gae") || r.fact("critic.enable").is("true") {
		r.verlCritic(batch)
	}
	if slices.Contains(r.roles, "rollout") {
		step := r.fact("trainer.v1.separate_async.parameter_sync_step")
		if v, ok := numbers(batch, mini, step); ok && v[0] != v[1]*v[2] {
			r.bad(batch, "%s is not %s × %s, as a rollout pool of its own needs", batch.text, mini, step)
		}
	}
	r.neverSaved("trainer.save_freq", "-1")
	if f := r.fact("trainer.test_freq"); f.is("-1") {
		r.note(f, "-1 (%s) never validates while it trains", f.where)
	}
	r.verlFiles(".parquet", ".json", ".jsonl")
}

// oneOf wants one of two keys: the newer, per GPU, or the older.
func (r *rulebook) oneOf(newer, older, why string) {
	a, b := r.fact(newer), r.fact(older)
	switch {
	case a.null() && b.null():
		r.bad(a, "is not set%s; set it, or actor_rollout_ref.actor.use_dynamic_bsz", why)
	case !a.null() && !b.null() && b.text != "":
		r.bad(b, "is set beside %s; verl takes only that one", a)
	}
}

// verlSplit: all sequences of a step are dealt to the GPUs, or to the groups of
// GPUs that hold one model.
func (r *rulebook) verlSplit(batch, n fact) {
	g := r.gpus(r.recipe.Driver)
	v, ok := numbers(batch, n)
	if !ok || g == 0 {
		return
	}
	parts, what := g, whole(g)+" GPUs"
	if r.fact("model_engine").is("megatron") {
		const m = "actor_rollout_ref.actor.megatron."
		sizes, ok := numbers(r.fact(m+"tensor_model_parallel_size"), r.fact(m+"pipeline_model_parallel_size"), r.fact(m+"context_parallel_size"))
		if !ok || sizes[0]*sizes[1]*sizes[2] < 1 {
			return
		}
		one := sizes[0] * sizes[1] * sizes[2]
		if int(g)%int(one) != 0 {
			r.bad(r.fact(m+"tensor_model_parallel_size"), "tensor × pipeline × context parallel size is %s and does not divide the %s GPUs of the %s pool", whole(one), whole(g), r.recipe.Driver)
			return
		}
		parts = g / one
		micro, ok := r.fact("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu").number()
		if !ok || micro < 1 {
			return
		}
		parts *= micro
		what = whole(parts) + " (data parallel size × micro batch)"
	}
	if total := v[0] * v[1]; int(total)%int(parts) != 0 {
		r.bad(batch, "%s × %s = %s sequences cannot be dealt evenly to %s", batch.text, n, whole(total), what)
	}
}

// verlRewards: before 0.9 the older key is copied over the newer one; since
// then only the newer one is read.
func (r *rulebook) verlRewards() {
	older, newer := r.fact("custom_reward_function.path"), r.fact("reward.custom_reward_function.path")
	switch {
	case older.null() && newer.null():
	case newer.null() && compareVersions(r.version, "0.9.0") >= 0:
		r.bad(older, "verl %s reads reward.custom_reward_function; write it there as well", r.version)
	case !older.null() && !newer.null() && older.text != newer.text:
		r.bad(older, "%s is not the same as %s", older.text, newer)
	}
	r.file(older)
	if newer.text != older.text {
		r.file(newer)
	}
}

// verlLoRA: each engine reads its own keys and passes over the other's.
func (r *rulebook) verlLoRA(model string) {
	flat, nested := r.fact(model+"lora_rank"), r.fact(model+"lora.rank")
	megatron := r.fact("model_engine").is("megatron") || r.fact("engine").is("megatron")
	if n, ok := flat.number(); ok && n > 0 && megatron {
		r.note(flat, "Megatron passes over it; it reads %slora.rank", model)
	}
	if n, ok := nested.number(); ok && n > 0 && !megatron {
		r.note(nested, "FSDP passes over it; it reads %slora_rank", model)
	}
}

func (r *rulebook) verlCritic(batch fact) {
	if model := r.fact("critic.model.path"); model.is("~/models/deepseek-llm-7b-chat") || model.null() {
		r.bad(model, "the critic has no model; set critic.model.path, such as ${actor_rollout_ref.model.path}")
	}
	if r.fact("critic.use_dynamic_bsz").is("true") {
		return
	}
	a, b := r.fact("critic.ppo_micro_batch_size_per_gpu"), r.fact("critic.ppo_micro_batch_size")
	switch {
	case a.null() && b.null():
		r.bad(a, "is not set; set it, or critic.use_dynamic_bsz")
	case !a.null() && !b.null():
		r.bad(b, "is set beside %s; verl takes only that one", a)
	}
	mini := r.fact("critic.ppo_mini_batch_size")
	if v, ok := numbers(batch, mini); ok && v[0] < v[1] {
		r.bad(mini, "%s is over %s", mini.text, batch)
	}
}

// verlSFT are the rules of verl/trainer/sft_trainer.py.
func (r *rulebook) verlSFT() {
	batch, sp := r.fact("data.train_batch_size"), r.fact("engine.ulysses_sequence_parallel_size")
	if v, ok := numbers(batch, sp); ok && v[1] > 0 && r.gpus(r.recipe.Driver) > 0 && !r.fact("engine").is("megatron") {
		g := r.gpus(r.recipe.Driver)
		if int(g)%int(v[1]) != 0 {
			r.bad(sp, "%s does not divide the %s GPUs of the %s pool", sp.text, whole(g), r.recipe.Driver)
		} else if dp := g / v[1]; int(v[0])%int(dp) != 0 {
			r.bad(batch, "%s sequences cannot be dealt evenly to %s data parallel ranks", batch.text, whole(dp))
		}
	}
	if engine, optim := r.fact("engine"), r.fact("optim"); engine.text != optim.text {
		r.bad(engine, "%s needs optim=%s, and it is %s", engine.text, engine.text, optim)
	}
	r.verlLoRA("model.")
	if f := r.fact("trainer.save_freq"); f.is("-1") {
		r.note(f, "-1 (%s) saves at the end only: what an interrupted run has learned is lost", f.where)
	}
	r.verlFiles(".parquet")
}

// verlFiles: verl knows its data by the ending of the file.
func (r *rulebook) verlFiles(endings ...string) {
	for _, name := range []string{"train_data", "validation_data"} {
		in, ok := r.inputs[name]
		if end := path.Ext(in.value); ok && !slices.Contains(endings, end) {
			r.bad(fact{path: in.value, line: in.origin}, "verl reads files that end in %s", joined(endings))
		}
	}
}
