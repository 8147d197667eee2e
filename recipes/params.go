package recipes

import (
	"fmt"
	"path"
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

// readConfig reads config.yaml in the rules of the recipe.
func (c *composer) readConfig() (*Config, error) {
	if c.recipe.Config == ConfigNone {
		return &Config{Name: configName}, nil
	}
	name := c.exp.Rel + "/" + configName
	data, err := lab.ReadFile(c.exp.Path(configName))
	if err != nil {
		return nil, fault.New(fault.Usage, "%s has no readable %s: %w", c.exp.Rel, configName, err).WithHint("tp new makes one from the recipe's template")
	}
	if c.recipe.Config == NeMoYAML {
		chain := &chain{lab: c.lab, recipe: c.recipe, version: c.Lock.Framework.Version, start: path.Dir(name), dirs: c.spec.Dirs, warn: c.warn}
		config, err := chain.read(configName, name, data, nil)
		c.parents = chain.files
		return config, err
	}
	return parseConfig(configName, data, c.recipe.Config != YAMLFlat)
}

// readParams gives every parameter its value: assignments first, then
// config.yaml, then the recipe's defaults.
func (c *composer) readParams() error {
	config, err := c.readConfig()
	if err != nil {
		return err
	}
	c.targets = newTargets(c.recipe, c.version, config)
	all, err := c.assignments()
	if err != nil {
		return err
	}
	var wrong problems
	for _, a := range all {
		if err := c.assign(a); err != nil {
			wrong.add(a.fail(err))
		}
	}
	for _, x := range c.targets.list {
		wrong.add(c.finish(x))
	}
	c.own(&wrong)
	if len(wrong.list) == 0 {
		c.rules(&wrong)
	}
	if err := wrong.err(); err != nil {
		return err
	}
	return c.launch()
}

func (c *composer) assign(a assignment) error {
	if o, ok := c.owns(a.Name); ok {
		return fmt.Errorf("tp sets it, %s", c.ownedBy(o))
	}
	x, err := c.targets.find(a.Name)
	if err != nil {
		if !a.strict {
			c.warn(fmt.Sprintf("%s: params.%s is no parameter of %s and is left out", a.Origin, a.Name, c.recipe.Name))
			return nil
		}
		return err
	}
	if o, ok := c.owns(x.path); ok && x.path != "" {
		return fmt.Errorf("tp sets it, %s", c.ownedBy(o))
	}
	if x.set != nil {
		if x.set.Origin == a.Origin && x.set.Name != a.Name {
			return fmt.Errorf("sets the same value as %s", x.set.Name)
		}
		return nil // a higher layer has spoken
	}
	if x.json, err = x.check(a.Text); err != nil {
		return err
	}
	if x.value == nil { // else it is held against the framework as a key of config.yaml
		if err := c.checkKey(x, func(text string) { c.warn(fmt.Sprintf("%s: %s: %s", a.Origin, a.Name, text)) }); err != nil {
			return err
		}
	}
	if err := c.allow(x, a.Text); err != nil {
		return err
	}
	set := a.Var
	x.set = &set
	return nil
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

// finish settles a target's value and where it comes from.
func (c *composer) finish(x *target) error {
	if _, ok := c.owns(x.path); ok && x.path != "" {
		return nil // said by own
	}
	config := c.targets.config
	p := spec.Param{Name: x.name, Path: x.path}
	value, inConfig := config.Find(x.path)
	switch {
	case x.set != nil:
		p.Value, p.Origin = x.set.Text, x.set.Origin
	case inConfig && x.path != "":
		p.Value, p.Origin = value.Text, config.Origin(value)
		if err := c.checkValue(x, value); err != nil {
			return fault.New(fault.Usage, "%s: %s: %w", config.Place(value), value.Path, err)
		}
		if value.Differs && c.recipe.Config != NeMoYAML && c.recipe.Config != YAMLArgs {
			x.json = value.JSON
		}
		if value.File != "" && x.param == nil {
			return nil // a parent's affair, not worth a line in the plan
		}
	case x.param != nil && x.param.Default != nil:
		p.Value, p.Origin = *x.param.Default, "default"
		x.json, _ = x.param.Check(p.Value) // the manifest was checked
	case x.param != nil && x.param.Required:
		return fault.New(fault.Usage, "%s needs the parameter %s (%s): %s", c.recipe.Name, x.name, x.param.Type, x.param.Doc).
			WithHint("-s %s=VALUE", x.name)
	default:
		return nil
	}
	c.spec.Params = append(c.spec.Params, p)
	c.note("params."+p.Name, p.Value, p.Origin)
	return nil
}

// checkValue holds a key of config.yaml against what the framework has and
// what the parameter allows.
func (c *composer) checkValue(x *target, v Value) error {
	if v.Doubt != "" && c.recipe.Config != Hydra { // Hydra's words are noted where they are made
		c.warn(fmt.Sprintf("%s: %s: %s; it is passed on as typed", c.targets.config.Place(v), v.Path, v.Doubt))
	}
	if err := c.checkConfig(x, v); err != nil {
		return err
	}
	return c.checkKey(x, func(text string) { c.warn(fmt.Sprintf("%s: %s: %s", c.targets.config.Place(v), v.Path, text)) })
}

// checkKey holds a key against those that the framework has. Where it refuses
// unknown ones, that is an error; elsewhere say gets what is known.
func (c *composer) checkKey(x *target, say func(string)) error {
	if x.known != nil || c.recipe.Keys == nil || x.path == "" {
		return nil
	}
	bare, added := addsKey(x.path)
	if added {
		if !hydraKey.MatchString(x.path) {
			return fmt.Errorf("%q is no key of Hydra's grammar", bare)
		}
		return nil
	}
	text, certain := c.recipe.Keys.missing(c.recipe.Framework.Kind, c.version, x.path)
	closed := c.recipe.Config == Hydra || c.recipe.Config == Flags
	switch {
	case c.recipe.Config == Hydra && !certain && !strings.Contains(text, "did you mean"):
		text += fmt.Sprintf("; %q adds it", "+"+x.path)
	case c.recipe.Config == NeMoYAML && (x.value != nil && x.value.File != "" || c.keptOpen(x.path)):
		return nil
	}
	if (closed || certain && c.recipe.Config != NeMoYAML) && !c.opts.NoValidate {
		return fmt.Errorf("%s", text)
	}
	say(text)
	return nil
}

// keptOpen says that a key's section holds whatever is put there: an empty
// mapping or nothing in the framework's own example, or no section of it.
func (c *composer) keptOpen(key string) bool {
	keys := c.recipe.Keys.at(c.version)
	top, _, _ := strings.Cut(key, ".")
	if firstBelow(keys, top+".") == "" {
		return true
	}
	for at := key; at != ""; {
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			return false
		}
		at = at[:i]
		if k, ok := keys[at]; ok && (k.Type == "map" || k.Type == "null" || k.Type == "list") {
			return true
		}
	}
	return false
}
