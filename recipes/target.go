package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/lab"
)

// target is what -s can set: a parameter of the recipe, a key of config.yaml,
// a key that the framework knows, or one that is added to it.
type target struct {
	name  string
	path  string     // "" for the launcher's own
	param *Param     // nil for a plain key
	value *Value     // the key in config.yaml, if it is there
	known *SchemaKey // as the framework has it, where that is known
	set   *lab.Var
	json  string // what the overrides carry; "" for nothing
	at    string // where the key stands, for messages
}

// targets is all of them: the recipe's by name, then the configuration's in
// the order of the file, then what -s added.
type targets struct {
	recipe  *Recipe
	version string // of the framework
	config  *Config
	list    []*target
}

func newTargets(r *Recipe, version string, config *Config) *targets {
	t := &targets{recipe: r, version: version, config: config}
	bound := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		p, there := r.Params[name].in(version)
		if !there {
			continue
		}
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
	if x.path == "" {
		return x
	}
	if v, ok := t.config.Find(x.path); ok {
		x.value, x.at = &v, t.config.Origin(v)
	}
	if known, ok := t.recipe.Keys.at(t.version)[x.path]; ok {
		x.known = &known
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
		return nil, fmt.Errorf("%s is a parameter of %s and a key at %s as well; rename the key", name, t.recipe.Name, byPath.at)
	case byName != nil:
		return byName, nil
	case byPath != nil:
		return byPath, nil
	}
	if p, ok := t.recipe.Params[name]; ok {
		return nil, fmt.Errorf("%s %s has no such parameter; %s has it", t.recipe.Framework.Kind, t.version, strings.Join(p.Versions, ", "))
	}
	return t.further(name)
}

// further is a key that neither the recipe nor the configuration names: one
// that the framework has, or one with + in front, which adds it.
func (t *targets) further(name string) (*target, error) {
	if t.recipe.Keys == nil {
		return nil, t.unknown(name)
	}
	x := t.locate(&target{name: name, path: name})
	_, added := addsKey(name)
	switch {
	case added && !hydraKey.MatchString(name):
		return nil, fmt.Errorf("is no dotted path of names with + in front")
	case x.known == nil && !added:
		return nil, t.unknown(name)
	}
	t.list = append(t.list, x)
	return x, nil
}

// addsKey cuts +, ++ or ~ from a key of Hydra's grammar.
func addsKey(path string) (bare string, ok bool) {
	bare = strings.TrimPrefix(strings.TrimLeft(path, "+"), "~")
	return bare, bare != path
}

func (t *targets) unknown(name string) error {
	var params, keys []string
	for _, x := range t.list {
		if x.param != nil {
			params = append(params, x.name)
		}
		if x.path != "" {
			keys = append(keys, x.path)
		}
		if strings.HasPrefix(x.path, name+".") {
			return fmt.Errorf("holds several values; set one of them, such as %s", x.path)
		}
	}
	if t.recipe.Config == ConfigNone && len(params) == 0 {
		return fmt.Errorf("%s has no parameters; a script gets its values by --env NAME=VALUE", t.recipe.Name)
	}
	add := ""
	if schema := t.recipe.Keys; schema != nil {
		if text, certain := schema.missing(t.recipe.Framework.Kind, t.version, name); certain {
			return fmt.Errorf("%s", text)
		}
		add = fmt.Sprintf("; +%s adds the key", name)
		keys = slices.AppendSeq(keys, maps.Keys(schema.at(t.version)))
	}
	slices.Sort(keys)
	if near := meant(name, params, slices.Compact(keys)); near != nil {
		return fmt.Errorf("no such parameter%s", didYouMean(near))
	}
	return fmt.Errorf("no such parameter: neither one of %s nor a key of %s; tp methods %s lists them%s", t.recipe.Name, configName, t.recipe.Name, add)
}

// check reads a value for the target and returns its JSON. A plain key keeps
// the type it has in config.yaml, or in the framework. Ranges are the
// composer's affair.
func (x *target) check(text string) (string, error) {
	switch {
	case x.param != nil:
		return x.param.typed(text)
	case x.known != nil:
		return x.known.check(text)
	case x.value == nil: // added
		return anyJSON(text)
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

// check holds a value against the type of the framework's default. A whole
// number there says only that numbers are meant.
func (k *SchemaKey) check(text string) (string, error) {
	if text == "null" || strings.Contains(text, "${") {
		return anyJSON(text)
	}
	kind := map[string]Type{"int": Float, "float": Float, "bool": Bool, "list": List}[k.Type]
	switch {
	case kind != "":
		value, err := Param{Type: kind}.typed(text)
		if err != nil {
			return "", fmt.Errorf("%w; the framework's default is %s", err, k.Default)
		}
		return value, nil
	case k.Type == "map":
		if !json.Valid([]byte(text)) || strings.TrimSpace(text)[0] != '{' {
			return "", fmt.Errorf("%q is no JSON object, such as {\"a\": 1}", text)
		}
		return text, nil
	case k.Type == "str", k.Type == "group":
		return jsonText(text), nil
	}
	return anyJSON(text)
}

// anyJSON types a text where nothing says what is wanted.
func anyJSON(text string) (string, error) {
	switch {
	case jsonNumber.MatchString(text), text == "true", text == "false", text == "null":
		return text, nil
	case (strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")) && json.Valid([]byte(text)):
		return text, nil
	}
	return jsonText(text), nil
}

// checkConfig holds a value of config.yaml against the recipe's parameter.
// Interpolations and null are the framework's affair.
func (c *composer) checkConfig(x *target, v Value) error {
	if x.param == nil || v.Type == "" || strings.Contains(v.Text, "${") {
		return nil
	}
	if v.List != (x.param.Type == List) {
		if v.List {
			return fmt.Errorf("a list, where the %s %s is wanted", x.param.Type, x.name)
		}
		return nil // one item, where a list is allowed: the framework's affair
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
