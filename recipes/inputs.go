package recipes

import (
	"fmt"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/shell"
)

// input is one of model, train_data, validation_data, train_split and
// validation_split.
type input struct{ value, origin string }

// readInputs takes model and data from the flags, else from the layers, and
// holds them against what the recipe needs.
func (c *composer) readInputs() error {
	c.inputs = map[string]input{}
	var wrong problems
	for _, x := range []struct {
		name, flag string
		into       *string
		of         func(*lab.JobFile) string
	}{
		{"model", c.opts.Model, &c.spec.Model, func(j *lab.JobFile) string { return j.Model }},
		{"train_data", c.opts.TrainData, &c.spec.Data.Train, func(j *lab.JobFile) string { return j.TrainData }},
		{"validation_data", c.opts.ValidationData, &c.spec.Data.Validation, func(j *lab.JobFile) string { return j.ValidationData }},
		{"train_split", c.opts.TrainSplit, &c.spec.Data.TrainSplit, func(j *lab.JobFile) string { return j.TrainSplit }},
		{"validation_split", c.opts.ValidationSplit, &c.spec.Data.ValidationSplit, func(j *lab.JobFile) string { return j.ValidationSplit }},
	} {
		in := c.input(x.name, x.flag, x.of)
		flag := "--" + strings.ReplaceAll(x.name, "_", "-")
		need := c.recipe.Inputs[x.name]
		switch {
		case in.value == "" && need == "required" && c.opts.Draft:
			c.warn(fmt.Sprintf("%s will want %s at submit, or %s in job.toml", c.recipe.Name, flag, x.name))
		case in.value == "" && need == "required":
			wrong.add(fault.New(fault.Usage, "%s needs %s", c.recipe.Name, flag).WithHint("%s, or %s = %q in job.toml", flag+" "+example[x.name], x.name, example[x.name]))
		case in.value != "" && need == "":
			wrong.add(fault.New(fault.Usage, "%s: %s takes no %s%s", in.origin, c.recipe.Name, flag, c.instead()))
		case in.value != "":
			if err := shell.Check(x.name, in.value); err != nil {
				wrong.add(fault.New(fault.Usage, "%s: %w", in.origin, err))
			}
		}
		if in.value != "" {
			*x.into, c.inputs[x.name] = in.value, in
			c.note(x.name, in.value, in.origin)
		}
	}
	return wrong.err()
}

// example is what a refusal proposes.
var example = map[string]string{
	"model": "Qwen/Qwen2.5-7B-Instruct", "train_data": "/shared/data/train.parquet", "validation_data": "/shared/data/validation.parquet",
	"train_split": "train", "validation_split": "test",
}

func (c *composer) instead() string {
	if c.recipe.Config == ConfigNone {
		return "; a script gets its values by --env NAME=VALUE"
	}
	return fmt.Sprintf("; its configuration says so: %s/%s", c.exp.Rel, configName)
}

// input is the flag, else the value of the highest layer; a shared default
// counts only where the recipe takes it.
func (c *composer) input(name, flag string, of func(*lab.JobFile) string) input {
	if flag != "" {
		return input{flag, "--" + strings.ReplaceAll(name, "_", "-")}
	}
	for _, l := range c.layers {
		if l.file != nil && of(l.file) != "" && (l.strict || c.recipe.Inputs[name] != "") {
			return input{of(l.file), l.file.Origin(name)}
		}
	}
	return input{}
}
