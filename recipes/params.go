package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
)

// configName is the framework's own configuration in an experiment.
const configName = "config.yaml"

// ParseSet reads one -s KEY=VALUE. The value is the rest as it is and may be
// empty; nothing is trimmed or converted.
func ParseSet(text string) (key, value string, err error) {
	key, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return "", "", fmt.Errorf("-s %q: expected KEY=VALUE", text)
	case key == "" || strings.TrimSpace(key) != key:
		return "", "", fmt.Errorf("-s %q: the key is empty or has blanks around it", text)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", "", fmt.Errorf("-s %q: not a UTF-8 text without NUL", text)
	}
	return key, value, shell.Check("-s: the key", key)
}

// assignment is a value for a parameter, before anybody knows which.
type assignment struct {
	lab.Var
	fail   func(error) error // adds the place
	strict bool              // unknown names are errors
}

// assignments lists all, the highest layer first.
func (c *composer) assignments() ([]assignment, error) {
	var all []assignment
	seen := map[string]bool{}
	for _, text := range c.opts.Set {
		key, value, err := ParseSet(text)
		if err != nil {
			return nil, fault.New(fault.Usage, "%w", err)
		}
		if seen[key] {
			return nil, fault.New(fault.Usage, "-s %s is given twice", key)
		}
		seen[key] = true
		all = append(all, assignment{lab.Var{Name: key, Text: value, Origin: "-s"},
			func(err error) error { return fault.New(fault.Usage, "-s %s: %w", key, err) }, true})
	}
	for _, l := range c.layers {
		if l.file == nil {
			continue
		}
		for _, v := range l.file.Values {
			path := append([]string{"params"}, strings.Split(v.Name, ".")...)
			all = append(all, assignment{v, func(err error) error { return l.file.Errorf(path, "%w", err) }, l.strict})
		}
	}
	return all, nil
}

// readParams gives every parameter its value: assignments first, then
// config.yaml, then the recipe's defaults.
func (c *composer) readParams() error {
	config := &Config{Name: configName}
	if c.recipe.Config == YAMLFlat {
		data, err := lab.ReadFile(c.exp.Path(configName))
		if err != nil {
			return fault.New(fault.Usage, "%s has no readable %s: %w", c.exp.Rel, configName, err).WithHint("tp new makes one from the recipe's template")
		}
		if config, err = ParseConfig(configName, data); err != nil {
			return err
		}
	}
	t := newTargets(c.recipe, config)
	all, err := c.assignments()
	if err != nil {
		return err
	}
	for _, a := range all {
		target, err := t.find(a.Name)
		if err != nil {
			if !a.strict {
				c.warn(fmt.Sprintf("%s: params.%s is no parameter of %s and is left out", a.Origin, a.Name, c.recipe.Name))
				continue
			}
			return a.fail(err)
		}
		if target.set != nil {
			if target.set.Origin == a.Origin && target.set.Name != a.Name {
				return a.fail(fmt.Errorf("sets the same value as %s", target.set.Name))
			}
			continue // a higher layer has spoken
		}
		if target.json, err = target.check(a.Text); err != nil {
			return a.fail(err)
		}
		if err := c.allow(target, a.Text); err != nil {
			return a.fail(err)
		}
		set := a.Var
		target.set = &set
	}
	return c.finishParams(t)
}

// allow holds a value against the parameter's range and choices; with
// NoValidate what does not fit is only said.
func (c *composer) allow(x *target, text string) error {
	if x.param == nil {
		return nil
	}
	err := x.param.allowed(text)
	if err == nil || !c.opts.NoValidate {
		return err
	}
	c.warn(fmt.Sprintf("parameter %s: %v; taken as it is (--no-validate)", x.name, err))
	return nil
}

func (c *composer) finishParams(t *targets) error {
	overrides := map[string]string{}
	launch := map[string]string{}
	for _, target := range t.list {
		p := spec.Param{Name: target.name, Path: target.path}
		value, inConfig := t.config.Find(target.path)
		switch {
		case target.set != nil:
			p.Value, p.Origin = target.set.Text, target.set.Origin
		case inConfig && target.path != "":
			p.Value, p.Origin = value.Text, t.config.Origin(value)
			if err := c.checkConfig(target, value); err != nil {
				return fault.New(fault.Usage, "%s:%d:%d: %s: %w", t.config.Name, value.Line, value.Col, value.Path, err)
			}
			if value.Differs {
				target.json = value.JSON
			}
		case target.param != nil && target.param.Default != nil:
			p.Value, p.Origin = *target.param.Default, "default"
			target.json, _ = target.param.Check(p.Value) // the manifest was checked
		case target.param != nil && target.param.Required:
			return fault.New(fault.Usage, "%s needs the parameter %s (%s): %s", c.recipe.Name, target.name, target.param.Type, target.param.Doc).
				WithHint("-s %s=VALUE", target.name)
		default:
			continue
		}
		if target.json != "" && target.path != "" {
			overrides[target.path] = target.json
		}
		if target.path == "" {
			launch[target.name] = p.Value
		}
		c.spec.Params = append(c.spec.Params, p)
		c.note("params."+p.Name, p.Value, p.Origin)
	}
	return c.launch(launch, overridesJSON(overrides))
}

// overridesJSON is one object with sorted keys. A dotted key names a nested
// value: a nested object could not say whether it replaces or extends. Numbers
// keep the text that was typed, which is why this is no json.Marshal.
func overridesJSON(values map[string]string) string {
	var items []string
	for _, path := range slices.Sorted(maps.Keys(values)) {
		items = append(items, jsonText(path)+": "+values[path])
	}
	return "{" + strings.Join(items, ", ") + "}"
}
