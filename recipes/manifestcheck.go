package recipes

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tuneplane/tp/internal/tomlfile"
)

// ownedFrom is what a key that tp owns can be set to.
var ownedFrom = []string{
	"model", "train_data", "validation_data", "train_split", "validation_split", // what the flags of that name say
	"nodes", "gpus_per_node", // of the pool of the driver, or of role
	"all_nodes",                  // of all pools together
	"host", "port", "group_port", // of the first server
	"output", "checkpoints", "logs", // the run's directory out/, or one within it
}

// inputNames are what --model, --train-data and so on give.
var inputNames = ownedFrom[:5]

// placeholders are the names in braces of a command.
var placeholders = slices.Concat([]string{"entry", "config", "overrides"}, ownedFrom)

var (
	placeholder      = regexp.MustCompile(`\{([a-z_]+)\}`)
	schemaName       = regexp.MustCompile(`^[a-z0-9-]+$`)
	frameworkKind    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	frameworkVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
	sourceDir        = regexp.MustCompile(`^/[A-Za-z0-9._+/-]+$`) // stands in the shell text as it is
	dottedPath       = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*(\.[A-Za-z0-9_$][A-Za-z0-9_$-]*)*$`)
)

// checker holds a manifest and its file while it is checked.
type checker struct {
	*Manifest
	file *tomlfile.File
}

func (m *Manifest) check(f *tomlfile.File) error {
	c := &checker{m, f}
	for _, step := range []func() error{c.plain, c.identity, c.roles, func() error { return c.checkLaunch(c.bad) }, c.command, c.owned, c.params} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) bad(key, format string, args ...any) error {
	return c.file.Errorf(strings.Split(key, "."), format, args...)
}

// plain refuses control characters anywhere: a recipe is shown on terminals.
func (c *checker) plain() error {
	for _, key := range c.file.Keys() {
		for _, word := range key.Path {
			if strings.ContainsFunc(word, unicode.IsControl) {
				return fmt.Errorf("%s:%d:%d: the key %q has a control character", c.file.Name, key.Line, key.Col, word)
			}
		}
	}
	text, err := json.Marshal(c.Manifest)
	if err != nil {
		return err
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if bad := control(all); bad != "" {
		return fmt.Errorf("%s: %q has a control character", c.file.Name, bad)
	}
	return nil
}

// control is a text within a value that has a control character, or "".
func control(value any) string {
	switch v := value.(type) {
	case string:
		if strings.ContainsFunc(v, unicode.IsControl) {
			return v
		}
	case []any:
		for _, x := range v {
			if bad := control(x); bad != "" {
				return bad
			}
		}
	case map[string]any:
		for _, x := range v {
			if bad := control(x); bad != "" {
				return bad
			}
		}
	}
	return ""
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = string(x)
	}
	if n := len(texts); n > 1 {
		return strings.Join(texts[:n-1], ", ") + " and " + texts[n-1]
	}
	return strings.Join(texts, "")
}

func (c *checker) identity() error {
	switch {
	case !recipeName.MatchString(c.Name):
		return c.bad("name", "%q is no <framework>/<method>", c.Name)
	case c.Version == "":
		return c.bad("version", "is missing")
	case c.Title == "" || c.Summary == "":
		return c.bad("title", "title and summary are needed")
	case !slices.Contains(launchers, c.Launcher):
		return c.bad("launcher", "%q is not known; there are %s", c.Launcher, joined(launchers))
	case !slices.Contains(configKinds, c.Config):
		return c.bad("config", "%q is not known; there are %s", c.Config, joined(configKinds))
	case c.Schema != "" && !schemaName.MatchString(c.Schema):
		return c.bad("schema", "%q is no name of a schema: lower-case letters, digits and -", c.Schema)
	case c.Config == Hydra && c.Schema == "":
		return c.bad("schema", "a hydra recipe needs one: Hydra refuses unknown keys")
	case c.Base != "" && c.Schema == "":
		return c.bad("base", "needs a schema, which holds its values")
	case c.Framework.Kind == "" || len(c.Framework.Versions) == 0:
		return c.bad("framework", "kind and versions are needed")
	case !frameworkKind.MatchString(c.Framework.Kind):
		return c.bad("framework.kind", "%q has other characters than lower-case letters, digits, dot, _ and -", c.Framework.Kind)
	case !slices.Contains(c.Framework.Versions, c.Framework.Default):
		return c.bad("framework.default", "%q is none of the versions", c.Framework.Default)
	case !slices.Contains([]string{"file", "module", "program", "experiment"}, c.Entrypoint.Kind):
		return c.bad("entrypoint.kind", "%q is not known; there are file, module, program and experiment", c.Entrypoint.Kind)
	case c.Entrypoint.Value == "":
		return c.bad("entrypoint.value", "is missing")
	case !slices.Contains([]string{"", "lab", "source"}, c.Dir):
		return c.bad("dir", "%q is not known; there are lab and source, and the experiment without it", c.Dir)
	case (c.Dir == "source" || c.Entrypoint.Kind == "file") && c.Source == nil:
		return c.bad("source", "is needed: where does the framework's source lie?")
	case c.Source != nil && (!sourceDir.MatchString(c.Source.Dir) || !posixName.MatchString(c.Source.Env)):
		return c.bad("source", "dir is an absolute path of letters, digits, dot, _, + and -, env the name of a variable")
	}
	for _, v := range c.Framework.Versions {
		if !frameworkVersion.MatchString(v) {
			return c.bad("framework.versions", "%q is no version", v)
		}
	}
	for _, action := range c.Lifecycle {
		if action != "export" && action != "eval" {
			return c.bad("lifecycle", "%q is not known; there are export and eval", action)
		}
	}
	for name, value := range c.Env {
		if err := checkEnv(name, value); err != nil {
			return c.bad("env."+name, "%w", err)
		}
	}
	for name, need := range c.Inputs {
		if !slices.Contains(inputNames, name) {
			return c.bad("inputs."+name, "is not known; there are %s", joined(inputNames))
		}
		if need != "required" && need != "optional" {
			return c.bad("inputs."+name, "%q is neither required nor optional", need)
		}
	}
	return nil
}

func (c *checker) roles() error {
	if len(c.Roles) == 0 {
		return c.bad("roles", "at least one is needed")
	}
	all := slices.Concat(c.Roles, c.OptionalRoles)
	for i, role := range all {
		if !roleName.MatchString(role) || slices.Contains(all[:i], role) {
			return c.bad("roles", "%q is no role name, or is there twice", role)
		}
	}
	if !slices.Contains(c.Roles, c.Driver) {
		return c.bad("driver", "%q is none of the roles", c.Driver)
	}
	for role, about := range c.Role {
		if !slices.Contains(all, role) {
			return c.bad("role."+role, "is none of the roles")
		}
		if err := c.versions("role."+role, about.Versions); err != nil {
			return err
		}
	}
	return nil
}

// command needs {overrides} wherever something can be set.
func (c *checker) command() error {
	if len(c.Command) == 0 {
		if c.Entrypoint.Kind != "experiment" || c.Config != ConfigNone && c.Config != YAMLFlat {
			return c.bad("command", "is missing; only files of an experiment have one of their own")
		}
		return nil
	}
	if err := c.words("command", c.Command); err != nil {
		return err
	}
	if has := slices.Contains(c.Command, "{overrides}"); has != (c.Config != ConfigNone) {
		return c.bad("command", "has {overrides} if config is not none, and only then")
	}
	return nil
}

func (c *checker) words(key string, words []string) error {
	for _, word := range words {
		for _, m := range placeholder.FindAllStringSubmatch(word, -1) {
			if p, ok := c.Params[m[1]]; ok && p.Path == "" {
				continue
			}
			if !slices.Contains(placeholders, m[1]) {
				return c.bad(key, "{%s} is not known; there are %s and the parameters without a path", m[1], joined(placeholders))
			}
			if slices.Contains(inputNames, m[1]) && c.Inputs[m[1]] == "" {
				return c.bad(key, "{%s} is none of the inputs", m[1])
			}
			if whole := word == m[0]; !whole && slices.Contains(placeholders[:3], m[1]) {
				return c.bad(key, "{%s} is a word of its own", m[1])
			}
		}
	}
	return nil
}

func (c *checker) owned() error {
	for _, o := range c.Owned {
		what := fmt.Sprintf("%q", o.Path)
		switch {
		case !dottedPath.MatchString(o.Path):
			return c.bad("owned", "%s is no dotted path", what)
		case (o.From == "") == (o.Value == ""):
			return c.bad("owned", "%s needs either from or value", what)
		case o.From != "" && !slices.Contains(ownedFrom, o.From):
			return c.bad("owned", "%s: from %q is not known; there are %s", what, o.From, joined(ownedFrom))
		case slices.Contains(inputNames, o.From) && c.Inputs[o.From] == "":
			return c.bad("owned", "%s: %s is none of the inputs", what, o.From)
		case o.Role != "" && !slices.Contains(c.OptionalRoles, o.Role):
			return c.bad("owned", "%s: role %q is no optional role", what, o.Role)
		case o.With != "" && c.Inputs[o.With] == "", o.Unless != "" && c.Inputs[o.Unless] == "":
			return c.bad("owned", "%s: with and unless name inputs", what)
		case slices.Contains([]string{"host", "port", "group_port"}, o.From) && (c.Server == nil || o.Role != c.Server.Role):
			return c.bad("owned", "%s: role is not that of the server", what)
		}
		if err := c.versions("owned", o.Versions); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) versions(key string, versions []string) error {
	for _, v := range versions {
		if !slices.Contains(c.Framework.Versions, v) {
			return c.bad(key, "version %q is none of the framework's", v)
		}
	}
	return nil
}

func (c *checker) params() error {
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		p, key := c.Params[name], "params."+name
		if !paramName.MatchString(name) {
			return c.bad(key, "a parameter's name has lower-case letters, digits and _")
		}
		if err := p.check(); err != nil {
			return c.bad(key, "%w", err)
		}
		if err := c.versions(key, slices.Concat(p.Versions, slices.Sorted(maps.Keys(p.Paths)))); err != nil {
			return err
		}
		for _, o := range c.Owned {
			if always := o.Role == "" && o.With == "" && !slices.Contains(inputNames, o.From); always && p.Path == o.Path {
				return c.bad(key, "%s is owned by tp", p.Path)
			}
		}
	}
	return nil
}
