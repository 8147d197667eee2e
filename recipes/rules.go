package recipes

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
)

// rules holds values against each other, as the framework itself does when it
// starts: there it costs the time in the queue. With NoValidate all of it is
// only said. What cannot be known here, such as an interpolation of a function
// or a pool without a number, breaks no rule.
func (c *composer) rules(wrong *problems) {
	r := &rulebook{c, wrong}
	if p, _ := r.profileOf(r.recipe.Driver); r.recipe.OneNode && p.Nodes > 1 {
		wrong.add(fault.New(fault.Usage, "--profile %s: %s runs on one node", p, r.recipe.Name))
	}
	switch c.recipe.Framework.Kind + "/" + c.recipe.Schema {
	case "verl/ppo":
		r.verlRL()
	case "verl/sft":
		r.verlSFT()
	case "nemo-rl/grpo":
		r.nemoCommon("grpo")
		r.nemoGRPO()
	case "nemo-rl/sft":
		r.nemoCommon("sft")
	case "nemo-rl/dpo":
		r.nemoCommon("dpo")
		r.nemoDPO()
	case "trl/sft", "trl/dpo", "trl/grpo", "trl/kto":
		r.trl()
	case "openrlhf/sft", "openrlhf/dpo":
		r.neverSaved("ckpt.save_steps", "-1")
	case "openrlhf/ppo":
		r.neverSaved("ckpt.save_steps", "-1")
		r.openRLHF()
	case "llamafactory/train":
		r.neverSaved("save_strategy", "no")
		r.llamaFactory()
	case "lm-eval/":
		r.lmEval()
	}
}

type rulebook struct {
	*composer
	wrong *problems
}

// fact is a value with the place that says it.
type fact struct {
	path, text, where string
	line              string // "config.yaml:3:5" or "-s", for the head of a message
}

func (f fact) known() bool { return f.text != "" && !strings.Contains(f.text, "${") }
func (f fact) null() bool  { return f.text == "null" || f.text == "" }
func (f fact) is(text string) bool {
	return f.text == text || strings.EqualFold(f.text, text) && coreBool.MatchString(text)
}

// String is "data.train_batch_size (256, config.yaml:5)".
func (f fact) String() string { return fmt.Sprintf("%s (%s, %s)", f.path, f.text, f.where) }

// interpolation is one that names another key of the configuration.
var interpolation = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_.]*)\}$`)

// fact is what a key will be: as set, as tp sets it, as config.yaml or the
// recipe says, or the framework's default.
func (r *rulebook) fact(key string) fact { return r.follow(key, 0) }

func (r *rulebook) follow(key string, depth int) fact {
	f := r.plain(key)
	if m := interpolation.FindStringSubmatch(f.text); m != nil && depth < 8 {
		if to := r.follow(m[1], depth+1); to.known() {
			f.text = to.text
		}
	}
	return f
}

func (r *rulebook) plain(key string) fact {
	f := fact{path: key}
	if o, ok := r.owns(key); ok {
		f.text, f.where, f.line = o.Value, "set by tp", key
		if in, given := r.inputs[o.From]; given {
			f.text, f.where = in.value, in.origin
		}
		return f
	}
	for _, x := range r.targets.list {
		if x.path != key {
			continue
		}
		switch {
		case x.set != nil:
			f.text, f.where, f.line = x.set.Text, x.set.Origin, x.set.Origin
			if x.set.Origin == "-s" {
				f.line = "-s " + x.set.Name
			}
			return f
		case x.value != nil:
			f.text, f.where, f.line = x.value.Text, r.targets.config.Origin(*x.value), r.targets.config.Place(*x.value)
			if x.value.Type == "" && !x.value.List {
				f.text = "null"
			}
			return f
		case x.param != nil && x.param.Default != nil:
			f.text, f.where, f.line = *x.param.Default, "default", key
			return f
		}
	}
	if k, ok := r.recipe.Keys.at(r.version)[key]; ok {
		f.text, f.where, f.line = k.Default, fmt.Sprintf("default of %s %s", r.recipe.Framework.Kind, r.version), configName
	}
	return f
}

// neverSaved warns of a value with which no checkpoint is ever written.
func (r *rulebook) neverSaved(key, value string) {
	if f := r.fact(key); f.is(value) {
		r.note(f, "%s (%s) never saves: what an interrupted run has learned is lost", value, f.where)
	}
}

// number is a whole or other number; false where it cannot be known.
func (f fact) number() (float64, bool) {
	n, err := strconv.ParseFloat(f.text, 64)
	return n, err == nil
}

// numbers are all of them, or none.
func numbers(facts ...fact) ([]float64, bool) {
	out := make([]float64, len(facts))
	for i, f := range facts {
		n, ok := f.number()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// say puts the place of a fact before what there is to say of it.
func (f fact) say(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	switch {
	case strings.HasPrefix(f.line, "-s "):
		return f.line + ": " + text
	case f.line == "" || f.line == f.path:
		return configName + ": " + f.path + ": " + text
	}
	return f.line + ": " + f.path + ": " + text
}

// bad is for what the framework refuses.
func (r *rulebook) bad(at fact, format string, args ...any) {
	text := at.say(format, args...)
	if r.opts.NoValidate {
		r.warn(text + "; taken as it is (--no-validate)")
		return
	}
	r.wrong.add(fault.New(fault.Usage, "%s", text))
}

// note is for what is probably not meant.
func (r *rulebook) note(at fact, format string, args ...any) { r.warn(at.say(format, args...)) }

// profileOf is the pool of a role; false where the role has none.
func (r *rulebook) profileOf(role string) (spec.Profile, bool) {
	for _, p := range r.spec.Profiles {
		if len(p.Roles) == 0 || slices.Contains(p.Roles, role) {
			return p, slices.Contains(r.roles, role)
		}
	}
	return spec.Profile{}, false
}

// gpus is how many a role's pool has, 0 where the profile leaves that to the
// hardware registry.
func (r *rulebook) gpus(role string) float64 {
	p, ok := r.profileOf(role)
	if !ok {
		return 0
	}
	return float64(p.Devices)
}

// pools are the GPUs on a node of the train and the rollout pool, where the
// profiles say so.
func (r *rulebook) pools() (train, rollout int) {
	a, _ := r.profileOf(r.recipe.Driver)
	b, _ := r.profileOf("rollout")
	return a.PerNode, b.PerNode
}

// file holds a path of the configuration against the lab, whose root it starts
// from; absolute paths are the cluster's.
func (r *rulebook) file(at fact) {
	if at.null() || !at.known() || path.IsAbs(at.text) || strings.Contains(at.text, "://") {
		return
	}
	rel := path.Clean(at.text)
	if !slices.ContainsFunc(r.spec.Dirs, func(dir string) bool { return strings.HasPrefix(rel, dir+"/") }) {
		r.bad(at, "%s is not packed; paths start at the lab's root, and only %s travel", at.text, joined(r.spec.Dirs))
		return
	}
	if _, err := os.Stat(filepath.Join(r.lab.Root, filepath.FromSlash(rel))); err != nil {
		r.bad(at, "there is no file %s; paths start at the lab's root", at.text)
	}
}

func whole(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
