package recipes

import (
	"encoding/json"
	"slices"

	"github.com/tuneplane/tp/internal/fault"
)

// trl are the rules of TRL's configurations and of transformers'
// TrainingArguments (trl/trainer/*_config.py at v0.24.0, v1.0.0 and v1.9.0).
func (r *rulebook) trl() {
	r.neverSaved("save_strategy", "no")
	evals := r.fact("eval_strategy")
	if _, given := r.inputs["validation_data"]; !given && evals.known() && !evals.is("no") {
		r.bad(evals, "%s needs --validation-data", evals.text)
	} else if given && evals.is("no") {
		r.note(evals, "no (%s) leaves --validation-data unused", evals.where)
	}
	if best := r.fact("load_best_model_at_end"); best.is("true") {
		if saves := r.fact("save_strategy"); evals.text != saves.text && !saves.is("best") {
			r.bad(best, "needs %s to be the same as %s", saves, evals)
		}
	}
	switch r.recipe.Schema {
	case "grpo":
		r.trlGRPO()
	case "dpo":
		r.trlDPO()
	case "kto":
		if f := r.fact("per_device_train_batch_size"); f.is("1") {
			r.note(f, "1 makes KTO's estimate of the KL distance useless; take 2 at least")
		}
	}
}

// trlGRPO: one generation makes whole groups of answers.
func (r *rulebook) trlGRPO() {
	one, n := r.fact("per_device_train_batch_size"), r.fact("num_generations")
	batch, steps := r.fact("generation_batch_size"), r.fact("steps_per_generation")
	if !batch.null() && !steps.null() {
		r.bad(batch, "is set beside %s; TRL takes one of them", steps)
	}
	if steps.null() {
		steps = r.fact("gradient_accumulation_steps")
	}
	if g := r.gpus(r.recipe.Driver); g > 0 {
		if v, ok := numbers(batch, one, n); ok {
			if int(v[0])%int(v[1]*g) != 0 {
				r.bad(batch, "%s is no multiple of %s × %s GPUs", batch.text, one, whole(g))
			}
		} else if v, ok := numbers(one, steps, n); ok && v[2] > 0 && int(v[0]*v[1]*g)%int(v[2]) != 0 {
			r.bad(n, "%s does not divide %s × %s × %s GPUs = %s", n.text, one, steps, whole(g), whole(v[0]*v[1]*g))
		}
	}
	if v, ok := numbers(batch, n); ok && v[1] > 0 && int(v[0])%int(v[1]) != 0 {
		r.bad(n, "%s does not divide %s", n.text, batch)
	}
	if f := r.fact("reward_funcs"); r.recipe.Entrypoint.Kind == "experiment" && f.is("[]") {
		r.bad(f, "names no reward")
	}
	if !slices.Contains(r.roles, "rollout") {
		return
	}
	p, _ := r.profileOf("rollout")
	if p.Nodes > 1 {
		r.wrong.add(fault.New(fault.Usage, "--profile %s: TRL calls one vLLM server, on one node", p))
	}
	tp, dp := r.launchFact("server_tensor_parallel_size"), r.launchFact("server_data_parallel_size")
	if v, ok := numbers(tp, dp); ok && p.Devices > 0 && v[0]*v[1] != float64(p.Devices) {
		if v[0]*v[1] > float64(p.Devices) {
			r.bad(tp, "%s × %s is over the %d GPUs of the rollout pool", tp.text, dp, p.Devices)
		} else {
			r.note(tp, "%s × %s leaves GPUs of the rollout pool idle: it has %d", tp.text, dp, p.Devices)
		}
	}
}

// launchFact is a parameter without a path.
func (r *rulebook) launchFact(name string) fact {
	for _, p := range r.spec.Params {
		if p.Name == name {
			line := p.Origin
			if line == "-s" {
				line = "-s " + name
			}
			return fact{path: name, text: p.Value, where: p.Origin, line: line}
		}
	}
	return fact{path: name}
}

func (r *rulebook) trlDPO() {
	losses, weights := r.fact("loss_type"), r.fact("loss_weights")
	var a, b []any
	if json.Unmarshal([]byte(losses.text), &a) == nil && json.Unmarshal([]byte(weights.text), &b) == nil && len(b) > 0 && len(a) != len(b) {
		r.bad(weights, "has %d weights for the %d losses of %s", len(b), len(a), losses)
	}
	if f := r.fact("ref_model_sync_steps"); r.fact("sync_ref_model").is("true") && r.fact("precompute_ref_log_probs").is("true") {
		r.bad(f, "a reference that follows the policy cannot be computed before training (precompute_ref_log_probs)")
	}
}
