// Package recipes knows how training frameworks are started. A recipe
// "<framework>/<method>" is a manifest with typed parameters and roles, a
// template for new experiments and a launcher; an experiment names its recipe
// in recipe.lock.json.
//
//	exp, err := l.Experiment("ddp_mnist")
//	c, err := recipes.Compose(l, exp, recipes.Options{Set: []string{"lr=3e-4"}, Profiles: []string{"h200:8"}})
//	// c.Spec is what is wanted, c.Settings says where each value comes from
//
// Compose checks everything that can be checked without a cluster, before
// anything is packed or asked.
package recipes

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/tuneplane/tp/internal/fault"
)

//go:embed catalog launch
var files embed.FS

// Recipe is one entry of the catalogue.
type Recipe struct {
	Manifest
	Digests
	Origin   string   `json:"origin"` // BuiltIn, or whose directory it comes from
	Keys     *Schema  `json:"-"`      // what the framework's configuration has; nil where nobody says
	Template fs.FS    `json:"-"`      // files of a new experiment
	Presets  []Preset `json:"presets,omitempty"`

	presets, shared fs.FS // of each preset a directory; files that go along with all of them
}

// BuiltIn is the origin of this program's own recipes.
const BuiltIn = "built in"

// Digests identify a recipe's content. Digest covers the launcher as well.
type Digests struct {
	Digest         string `json:"digest"`
	ManifestDigest string `json:"manifest_digest"`
	TemplateDigest string `json:"template_digest"`
}

// Catalog is a set of recipes by name. Each is read when it is asked for: all
// of them take longer than a whole tp submit should.
type Catalog struct {
	names   []string // those that are built in come first, then in the order they were added
	places  map[string]place
	mu      sync.Mutex
	recipes map[string]*Recipe // those that were read
}

// place is where a recipe's directory lies in a tree.
type place struct {
	tree   fs.FS
	above  string // the directory over that of its framework
	origin string
}

var embedded = sync.OnceValues(func() (*Catalog, error) { return open(files) })

// Embedded is the catalogue that is built in.
func Embedded() *Catalog {
	c, err := embedded()
	if err != nil {
		panic(err) // a test reads the same bytes
	}
	return c
}

// Load reads a whole catalogue: catalog/<framework>/<method>/ of a tree.
// Launchers are those that are built in.
func Load(tree fs.FS) (*Catalog, error) {
	c, err := open(tree)
	if err != nil {
		return nil, err
	}
	for _, name := range c.names {
		if _, err := c.read(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func open(tree fs.FS) (*Catalog, error) {
	manifests, err := fs.Glob(tree, "catalog/*/*/recipe.toml")
	c := &Catalog{places: map[string]place{}, recipes: map[string]*Recipe{}}
	for _, file := range manifests {
		name := strings.TrimPrefix(path.Dir(file), "catalog/")
		c.names = append(c.names, name)
		c.places[name] = place{tree, "catalog", BuiltIn}
	}
	slices.Sort(c.names)
	return c, err
}

// has is the recipe of that name, or nil.
func (c *Catalog) has(name string) *Recipe {
	if _, ok := c.places[name]; !ok {
		return nil
	}
	r, err := c.read(name)
	if err != nil {
		panic(err) // Load or With has read it, or a test the same bytes
	}
	return r
}

func (c *Catalog) read(name string) (*Recipe, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.recipes[name]; ok {
		return r, nil
	}
	at := c.places[name]
	dir := path.Join(at.above, name)
	data, err := fs.ReadFile(at.tree, dir+"/recipe.toml")
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(dir+"/recipe.toml", data)
	if err != nil {
		return nil, err
	}
	if m.Name != name {
		return nil, fmt.Errorf("%s/recipe.toml: name %q does not match its directory %q", dir, m.Name, name)
	}
	template, err := fs.Sub(at.tree, dir+"/template")
	if err != nil {
		return nil, err
	}
	launch, err := m.launchText()
	if err != nil {
		return nil, err
	}
	r := &Recipe{Manifest: *m, Origin: at.origin, Template: template}
	if r.presets, r.shared, r.Presets, err = readPresets(at.tree, dir); err != nil {
		return nil, err
	}
	if m.Schema != "" {
		file := path.Dir(dir) + "/schema/" + m.Schema + ".tsv"
		text, err := fs.ReadFile(at.tree, file)
		if err != nil {
			return nil, err
		}
		if r.Keys, err = ParseSchema(file, text); err != nil {
			return nil, err
		}
		launch = append(launch, text...)
	}
	if r.Digests, err = digests(m, template, launch); err != nil {
		return nil, err
	}
	c.recipes[name] = r
	return r, nil
}

// Names are all recipes in order.
func (c *Catalog) Names() []string { return slices.Sorted(slices.Values(c.names)) }

// Get is the recipe of that name; an unknown one is a usage error that names
// the nearest.
func (c *Catalog) Get(name string) (*Recipe, error) {
	if r := c.has(name); r != nil {
		return r, nil
	}
	err := fault.New(fault.Usage, "no recipe %q in the catalogue; there are %s", name, strings.Join(c.Names(), ", "))
	if near := fault.Nearest(name, c.Names()); near != "" {
		return nil, err.WithHint("did you mean %q? tp methods %s describes it", near, near)
	}
	return nil, err.WithHint("tp methods")
}

// server is the recipe that can launch a foreign lock's recipe: the one of
// that name, else the first whose serves list matches, built-in ones first.
func (c *Catalog) server(name string) *Recipe {
	if r := c.has(name); r != nil {
		return r
	}
	for _, own := range c.names {
		r := c.has(own)
		for _, pattern := range r.Serves {
			if ok, _ := path.Match(pattern, name); ok {
				return r
			}
		}
	}
	return nil
}
