package recipes

import (
	"path"
	"slices"

	"github.com/tuneplane/tp/internal/fault"
)

// nemoCommon are rules that all of NeMo-RL's algorithms share.
func (r *rulebook) nemoCommon(section string) {
	if f := r.fact("checkpointing.enabled"); f.is("false") {
		r.note(f, "nothing is saved: what an interrupted run has learned is lost")
	}
	period, steps := r.fact("checkpointing.save_period"), r.fact(section+".max_num_steps")
	if v, ok := numbers(period, steps); ok && v[0] > v[1] {
		r.note(period, "%s is over %s: only the last step is saved", period.text, steps)
	}
	if f := r.fact("policy.max_total_sequence_length"); f.known() {
		if n, ok := f.number(); ok && n < 1 {
			r.bad(f, "%s is under 1", f.text)
		}
	}
	megatron, dtensor := r.fact("policy.megatron_cfg.enabled"), r.fact("policy.dtensor_cfg.enabled")
	if megatron.is("true") && dtensor.is("true") {
		r.bad(megatron, "is true beside %s; NeMo-RL trains with one of them", dtensor)
	}
	r.nemoSplit(megatron.is("true"))
	in, given := r.inputs["validation_data"]
	if _, split := r.inputs["validation_split"]; given && !split && path.Ext(in.value) == "" {
		r.bad(fact{path: in.value, line: in.origin}, "which split of the data set? NeMo-RL takes train unless --validation-split says otherwise")
	}
}

// nemoSplit: GPUs make groups that hold one model, and the groups share a
// batch.
func (r *rulebook) nemoSplit(megatron bool) {
	g, one, parts := r.gpus(r.recipe.Driver), 1.0, []string{"policy.dtensor_cfg.tensor_parallel_size", "policy.dtensor_cfg.context_parallel_size"}
	if megatron {
		parts = []string{"policy.megatron_cfg.tensor_model_parallel_size", "policy.megatron_cfg.pipeline_model_parallel_size", "policy.megatron_cfg.context_parallel_size"}
	}
	for _, key := range parts {
		n, ok := r.fact(key).number()
		if !ok || n < 1 {
			return
		}
		one *= n
	}
	if g == 0 {
		return
	}
	if int(g)%int(one) != 0 {
		r.bad(r.fact(parts[0]), "the parallel sizes multiply to %s, which does not divide the %s GPUs of the %s pool", whole(one), whole(g), r.recipe.Driver)
		return
	}
	batch := r.fact("policy.train_global_batch_size")
	if n, ok := batch.number(); ok && int(n)%int(g/one) != 0 {
		r.bad(batch, "%s cannot be dealt evenly to %s data parallel ranks", batch.text, whole(g/one))
	}
}

// nemoGRPO are the rules of nemo_rl/algorithms/grpo.py at v0.6.0 and v0.7.0,
// and those of TunePlane's own check.
func (r *rulebook) nemoGRPO() {
	prompts, n, batch := r.fact("grpo.num_prompts_per_step"), r.fact("grpo.num_generations_per_prompt"), r.fact("policy.train_global_batch_size")
	if v, ok := numbers(prompts, n, batch); ok && v[2] > 0 {
		switch total := v[0] * v[1]; {
		case int(total)%int(v[2]) != 0:
			r.bad(batch, "%s does not divide %s × %s = %s", batch.text, prompts, n, whole(total))
		case total != v[2] && r.fact("loss_fn.force_on_policy_ratio").is("true"):
			r.bad(batch, "%s is not %s × %s = %s, as loss_fn.force_on_policy_ratio needs", batch.text, prompts, n, whole(total))
		case total != v[2]:
			r.note(batch, "%s is a part of %s × %s = %s: several updates follow one generation", batch.text, prompts, n, whole(total))
		}
	}
	size, samples := r.fact("grpo.val_batch_size"), r.fact("grpo.max_val_samples")
	if v, ok := numbers(size, samples); ok && v[0] > v[1] {
		r.bad(size, "%s is over %s", size.text, samples)
	}
	if f := r.fact("grpo.batch_multiplier"); f.known() && !f.is("1") && r.fact("grpo.use_dynamic_sampling").is("false") {
		r.bad(f, "%s needs grpo.use_dynamic_sampling", f.text)
	}
	period := r.fact("grpo.val_period")
	if v, ok := period.number(); ok && v > 0 && r.noValidation() {
		r.bad(period, "%s needs validation data: --validation-data, data.validation or data.train.split_validation_size; 0 turns it off", period.text)
	}
	separate := slices.Contains(r.roles, "rollout")
	if async := r.fact("grpo.async_grpo.enabled"); async.is("true") {
		if !separate && !r.fact("policy.generation.colocated.enabled").is("false") {
			r.bad(async, "needs generation on a pool of its own: --profile train=… --profile rollout=…")
		}
		if f := r.fact("policy.generation.vllm_cfg.async_engine"); f.is("false") && r.fact("policy.generation.backend").is("vllm") {
			r.bad(f, "is false, and %s needs it", async)
		}
		if f := r.fact("loss_fn.use_importance_sampling_correction"); f.is("false") {
			r.bad(f, "is false, and %s needs it", async)
		}
	}
	train, rollout := r.pools()
	if separate && train > 0 && rollout > 0 && train != rollout {
		r.wrong.add(fault.New(fault.Usage, "the train pool has %d GPUs on a node and the rollout pool %d; NeMo-RL needs the same number", train, rollout))
	}
}

func (r *rulebook) noValidation() bool {
	if _, given := r.inputs["validation_data"]; given {
		return false
	}
	for _, v := range r.targets.config.Values {
		if v.Path == "data.validation" && v.Type == "" && !v.List {
			continue
		}
		if v.Path == "data.validation" || len(v.Path) > 16 && v.Path[:16] == "data.validation." {
			return false
		}
	}
	part, ok := r.fact("data.train.split_validation_size").number()
	return ok && part == 0
}

// nemoDPO are the rules of nemo_rl/algorithms/dpo.py.
func (r *rulebook) nemoDPO() {
	for _, key := range []string{"policy.sequence_packing.enabled", "policy.dynamic_batching.enabled"} {
		if f := r.fact(key); f.is("true") {
			r.bad(f, "NeMo-RL's DPO does not know it")
		}
	}
	if model, tokenizer := r.fact("policy.model_name"), r.fact("policy.tokenizer.name"); model.known() && tokenizer.known() && model.text != tokenizer.text {
		r.note(tokenizer, "%s is not the model, %s", tokenizer.text, model)
	}
}
