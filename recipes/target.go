package recipes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
)

// target is what -s can set: a parameter of the recipe, a key of config.yaml,
// or one that is both.
type target struct {
	name  string
	path  string // "" for the launcher's own
	param *Param // nil for a plain key
	value *Value // the key in config.yaml, if it is there
	set   *lab.Var
	json  string // what the overrides carry; "" for nothing
	at    string // where the key stands, for messages
}

// targets is all of them: the recipe's by name, then the configuration's in
// the order of the file.
type targets struct {
	recipe string
	config *Config
	list   []*target
}

func newTargets(r *Recipe, config *Config) *targets {
	t := &targets{recipe: r.Name, config: config}
	bound := map[string]bool{}
	names := make([]string, 0, len(r.Params))
	for name := range r.Params {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := r.Params[name]
		bound[p.Path] = true
		t.list = append(t.list, t.locate(&target{name: name, path: p.Path, param: &p}))
	}
	for _, v := range config.Values {
		if !bound[v.Path] {
			t.list = append(t.list, t.locate(&target{name: v.Path, path: v.Path}))
		}
	}
	return t
}

func (t *targets) locate(x *target) *target {
	if v, ok := t.config.Find(x.path); ok && x.path != "" {
		x.value, x.at = &v, t.config.Origin(v)
	}
	return x
}

// find is the target of a name or a dotted path.
func (t *targets) find(name string) (*target, error) {
	var byName, byPath *target
	for _, x := range t.list {
		if x.name == name && byName == nil {
			byName = x
		}
		if x.path == name && byPath == nil {
			byPath = x
		}
	}
	switch {
	case byName != nil && byPath != nil && byName != byPath:
		return nil, fmt.Errorf("%s is a parameter of %s and a key at %s as well; rename the key", name, t.recipe, byPath.at)
	case byName != nil:
		return byName, nil
	case byPath != nil:
		return byPath, nil
	}
	return nil, t.unknown(name)
}

func (t *targets) unknown(name string) error {
	var known []string
	for _, x := range t.list {
		known = append(known, x.name)
		if x.path != "" && x.path != x.name {
			known = append(known, x.path)
		}
		if strings.HasPrefix(x.path, name+".") {
			return fmt.Errorf("holds several values; set one of them, such as %s", x.path)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("%s has no parameters; a script gets its values by --env NAME=VALUE", t.recipe)
	}
	if near := fault.Nearest(name, known); near != "" {
		return fmt.Errorf("no such parameter; did you mean %q?", near)
	}
	return fmt.Errorf("no such parameter: neither one of %s nor a key of %s; tp methods %s lists them", t.recipe, configName, t.recipe)
}

// check reads a value for the target and returns its JSON. A plain key keeps
// the type it has in config.yaml. Ranges are the composer's affair.
func (x *target) check(text string) (string, error) {
	if x.param != nil {
		return x.param.typed(text)
	}
	v := x.value
	switch {
	case v.List:
		return x.checkList(text)
	case v.Type == "": // null: any value, by the rules of YAML
		return anyJSON(text)
	}
	value, err := Param{Type: v.Type}.Check(text)
	if err != nil && v.Type == Int && jsonNumber.MatchString(text) {
		return "", fmt.Errorf("%w, but %s has one (%s); write %s.0 there if fractions are meant", err, x.at, v.Text, v.Text)
	}
	if err != nil {
		return "", fmt.Errorf("%w; %s has the %s %s", err, x.at, v.Type, v.Text)
	}
	return value, nil
}

func (x *target) checkList(text string) (string, error) {
	if !json.Valid([]byte(text)) || strings.TrimSpace(text)[0] != x.value.JSON[0] {
		return "", fmt.Errorf("%q is no JSON list like the one at %s: %s", text, x.at, x.value.JSON)
	}
	return text, nil
}

// anyJSON types a text where nothing says what is wanted.
func anyJSON(text string) (string, error) {
	switch {
	case jsonNumber.MatchString(text), text == "true", text == "false", text == "null":
		return text, nil
	}
	return jsonText(text), nil
}

// checkConfig holds a value of config.yaml against the recipe's parameter.
// Interpolations and null are the framework's affair.
func (c *composer) checkConfig(x *target, v Value) error {
	if x.param == nil || v.Type == "" || v.List || strings.Contains(v.Text, "${") {
		return nil
	}
	text := v.Text
	if v.Type != Str && v.JSON != "" {
		text = v.JSON // 0x1F and .5 are fine in YAML
	}
	if _, err := x.param.typed(text); err != nil {
		return err
	}
	return c.allow(x, text)
}
