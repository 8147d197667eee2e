package recipes

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"go.yaml.in/yaml/v4"
)

// maxParents bounds a chain of defaults; the longest seen has five files.
const maxParents = 32

// chain reads a NeMo-RL configuration and its parents, in the order and by
// the rules of NeMo-RL's own loader (nemo_rl/utils/config.py at v0.5.0, v0.6.0
// and v0.7.0): parents from the first to the last, each over the ones before,
// then the file itself. Its "_override_: true" counts at the top level only.
type chain struct {
	lab     *lab.Lab
	recipe  *Recipe
	version string   // of NeMo-RL, as locked
	start   string   // directory of the experiment, relative to the lab
	dirs    []string // what is packed
	warn    func(string)
	files   []string // parents that were read, relative to the lab
}

// read is the merged configuration of one file. Shown is its name in
// messages, rel its path in the lab, above the files that lead to it.
func (c *chain) read(shown, rel string, data []byte, above []string) (*Config, error) {
	config, err := parseConfig(shown, data, true)
	if err != nil {
		return nil, err
	}
	if len(above) > 0 {
		for i := range config.Values {
			config.Values[i].File = shown
		}
	}
	parents, err := c.parents(config)
	if err != nil {
		return nil, err
	}
	replaced := c.overrides(config)
	merged := &Config{Name: shown, lenient: true, at: map[string]int{}}
	for _, p := range parents {
		parent, err := c.parent(config, p, rel, append(above, rel))
		if err != nil {
			return nil, err
		}
		if parent != nil {
			merged.over(parent, nil)
		}
	}
	merged.over(config, replaced)
	return merged, nil
}

// old says that the loader is the one before 0.6.
func (c *chain) old() bool { return c.version != "" && compareVersions(c.version, "0.6") < 0 }

// parents takes "defaults" out of a configuration: a text or a list of texts.
func (c *chain) parents(config *Config) ([]Value, error) {
	v, ok := config.Find("defaults")
	if !ok {
		for _, v := range config.Values {
			if strings.HasPrefix(v.Path, "defaults.") {
				return nil, fault.New(fault.Usage, "%s: defaults is a path or a list of paths", config.Place(v))
			}
		}
		return nil, nil
	}
	config.drop(func(path string) bool { return path == "defaults" })
	if !v.List {
		if v.Type != Str {
			return nil, fault.New(fault.Usage, "%s: defaults is a path or a list of paths", config.Place(v))
		}
		return []Value{v}, nil
	}
	var all []Value
	if v.node.Kind != yaml.SequenceNode {
		return nil, fault.New(fault.Usage, "%s: defaults is a path or a list of paths", config.Place(v))
	}
	for _, n := range v.node.Content {
		n = follow(n)
		if n.Kind != yaml.ScalarNode {
			return nil, fault.New(fault.Usage, "%s:%d:%d: defaults is a path or a list of paths", config.file(v), n.Line, n.Column)
		}
		all = append(all, Value{Path: "defaults", Text: n.Value, Line: n.Line, Col: n.Column, File: v.File})
	}
	return all, nil
}

// overrides takes the marks out and lists the top-level keys that replace
// what the parents say.
func (c *chain) overrides(config *Config) []string {
	var keys, drop []string
	for _, v := range config.Values {
		if v.Path != "_override_" && !strings.HasSuffix(v.Path, "._override_") {
			continue
		}
		key := strings.TrimSuffix(v.Path, "._override_")
		switch {
		case c.old():
			c.warn(fmt.Sprintf("%s: %s: NeMo-RL %s does not know _override_; what the parents say is merged", config.Place(v), v.Path, c.version))
		case strings.Contains(key, ".") || v.Path == "_override_":
			c.warn(fmt.Sprintf("%s: %s: NeMo-RL heeds _override_ only right below a top-level key; here it is merged as any other key", config.Place(v), v.Path))
		case v.JSON == "true":
			keys, drop = append(keys, key), append(drop, v.Path)
		}
	}
	config.drop(func(path string) bool { return slices.Contains(drop, path) })
	return keys
}

// parent reads one of the defaults. The framework's own example, which lies
// in its image and not here, is known by its schema.
func (c *chain) parent(config *Config, at Value, rel string, above []string) (*Config, error) {
	fail := func(format string, args ...any) error {
		return fault.New(fault.Usage, "%s: defaults: %s: %s", config.Place(at), at.Text, fmt.Sprintf(format, args...))
	}
	if path.IsAbs(at.Text) {
		if c.recipe.Base != "" && strings.HasSuffix(at.Text, "/"+c.recipe.Base) {
			return nil, nil // its values are those of the schema
		}
		return nil, fail("lies outside of the lab; of the framework's own files only %s is known here", c.recipe.Base)
	}
	base := path.Dir(rel)
	if c.old() { // all of them are looked for from the first file's directory
		base = c.start
	}
	target := path.Join(base, at.Text)
	switch {
	case !filepath.IsLocal(target) || !slices.ContainsFunc(c.dirs, func(dir string) bool { return strings.HasPrefix(target, dir+"/") }):
		return nil, fail("is not packed; only %s travel with the experiment", joined(c.dirs))
	case slices.Contains(above, target):
		return nil, fail("the defaults form a circle")
	case len(c.files) == maxParents:
		return nil, fail("more than %d parents", maxParents)
	}
	data, err := lab.ReadFile(filepath.Join(c.lab.Root, filepath.FromSlash(target)))
	if os.IsNotExist(err) {
		hint := ""
		if _, err := os.Stat(filepath.Join(c.lab.Root, filepath.FromSlash(target+".yaml"))); err == nil {
			hint = "; there is " + at.Text + ".yaml, and NeMo-RL adds no ending"
		}
		return nil, fail("there is no file %s%s", target, hint)
	}
	if err != nil {
		return nil, fail("%v", err)
	}
	c.files = append(c.files, target)
	return c.read(target, target, data, above)
}

// over lays other over c as OmegaConf merges: mappings key by key, everything
// else as a whole. Keys of replace lose what c has of them first.
func (c *Config) over(other *Config, replace []string) {
	c.drop(func(path string) bool {
		top, _, _ := strings.Cut(path, ".")
		return slices.Contains(replace, top)
	})
	for _, v := range other.Values {
		if v.Text == "{}" && v.List && c.has(v.Path+".") {
			continue // an empty mapping takes nothing away
		}
		c.drop(func(path string) bool {
			return strings.HasPrefix(path, v.Path+".") || strings.HasPrefix(v.Path, path+".")
		})
		if i, ok := c.at[v.Path]; ok {
			c.Values[i] = v
			continue
		}
		c.at[v.Path] = len(c.Values)
		c.Values = append(c.Values, v)
	}
}

func (c *Config) has(prefix string) bool {
	return slices.ContainsFunc(c.Values, func(v Value) bool { return strings.HasPrefix(v.Path, prefix) })
}

// drop removes the values whose paths which names.
func (c *Config) drop(which func(path string) bool) {
	kept := c.Values[:0:0]
	for _, v := range c.Values {
		if !which(v.Path) {
			kept = append(kept, v)
		}
	}
	if len(kept) == len(c.Values) {
		return
	}
	c.Values = kept
	clear(c.at)
	for i, v := range kept {
		c.at[v.Path] = i
	}
}
