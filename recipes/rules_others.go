package recipes

import (
	"slices"
	"strings"
)

// openRLHF are the rules of openrlhf/cli/train_ppo_ray.py at v0.10.4 and
// v0.11.0, with all models on the same GPUs.
func (r *rulebook) openRLHF() {
	estimator, n := r.fact("algo.advantage.estimator"), r.fact("rollout.n_samples_per_prompt")
	if v, ok := n.number(); ok && v < 2 && slices.Contains([]string{"rloo", "reinforce_baseline", "group_norm", "dr_grpo"}, estimator.text) {
		r.bad(n, "%s is under 2, and %s compares the responses to one prompt", n.text, estimator)
	}
	url := r.fact("reward.remote_url")
	if url.null() && r.fact("reward.model_name_or_path").null() && r.fact("train.agent_func_path").null() {
		r.bad(url, "is not set: a reward model (reward.model_name_or_path) or reward.remote_url is needed")
	}
	g := r.gpus(r.recipe.Driver)
	engines, tp := r.fact("vllm.num_engines"), r.fact("vllm.tensor_parallel_size")
	if v, ok := numbers(engines, tp); ok && g > 0 && v[0]*v[1] != g {
		r.bad(engines, "%s × %s is not the %s GPUs of the %s pool, on which all models are", engines.text, tp, whole(g), r.recipe.Driver)
	}
	batch, micro := r.fact("rollout.batch_size"), r.fact("rollout.micro_batch_size")
	if v, ok := numbers(batch, n, micro); ok && v[2] > 0 && g > 0 && float64(int(v[0]*v[1]/v[2])) < g {
		r.bad(batch, "%s × %s / %s is under the %s GPUs of the %s pool", batch.text, n, micro, whole(g), r.recipe.Driver)
	}
}

// llamaFactory are rules of src/llamafactory/hparams/parser.py at v0.9.5.
func (r *rulebook) llamaFactory() {
	if f := r.fact("dataset"); f.null() {
		r.bad(f, "is not set: names of dataset_info.json are needed")
	}
	size, ok := r.fact("val_size").number()
	if f := r.fact("eval_strategy"); f.known() && !f.is("no") && ok && size == 0 && r.fact("eval_dataset").null() {
		r.bad(f, "%s needs val_size or eval_dataset", f.text)
	}
}

// lmEval holds the engine against the pool. lm-eval reads --model_args as a
// list with commas.
func (r *rulebook) lmEval() {
	if in := r.inputs["model"]; strings.ContainsAny(in.value, ",=") {
		r.bad(fact{path: in.value, line: in.origin}, "lm-eval takes no commas or = in the model's name")
	}
	p, _ := r.profileOf(r.recipe.Driver)
	if p.Nodes > 1 {
		return // which is said already
	}
	tp, dp := r.launchFact("tensor_parallel_size"), r.launchFact("data_parallel_size")
	v, ok := numbers(tp, dp)
	switch {
	case !ok || p.Devices == 0 || v[0]*v[1] == float64(p.Devices):
	case v[0]*v[1] > float64(p.Devices):
		r.bad(tp, "%s × %s is over the %d GPUs of the %s pool", tp.text, dp, p.Devices, r.recipe.Driver)
	default:
		r.note(tp, "%s × %s leaves GPUs of the %s pool idle: it has %d", tp.text, dp, r.recipe.Driver, p.Devices)
	}
}
