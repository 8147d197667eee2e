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
	Keys     *Schema `json:"-"` // what the framework's configuration has; nil where nobody says
	Template fs.FS   `json:"-"` // files of a new experiment
}

// Digests identify a recipe's content. Digest covers the launcher as well.
type Digests struct {
	Digest         string `json:"digest"`
	ManifestDigest string `json:"manifest_digest"`
	TemplateDigest string `json:"template_digest"`
}

// Catalog is a set of recipes by name.
type Catalog struct{ recipes map[string]*Recipe }

var embedded = sync.OnceValues(func() (*Catalog, error) { return Load(files) })

// Embedded is the catalogue that is built in. It is read on first use.
func Embedded() *Catalog {
	c, err := embedded()
	if err != nil {
		panic(err) // a test reads the same bytes
	}
	return c
}

// Load reads a catalogue: catalog/<framework>/<method>/ of a tree. Launchers
// are those that are built in.
func Load(tree fs.FS) (*Catalog, error) {
	c := &Catalog{recipes: map[string]*Recipe{}}
	manifests, err := fs.Glob(tree, "catalog/*/*/recipe.toml")
	if err != nil {
		return nil, err
	}
	for _, file := range manifests {
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		m, err := ParseManifest(file, data)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(file)
		if want := strings.TrimPrefix(dir, "catalog/"); m.Name != want {
			return nil, fmt.Errorf("%s: name %q does not match its directory %q", file, m.Name, want)
		}
		template, err := fs.Sub(tree, dir+"/template")
		if err != nil {
			return nil, err
		}
		launch, err := m.launchText()
		if err != nil {
			return nil, err
		}
		r := &Recipe{Manifest: *m, Template: template}
		if m.Schema != "" {
			name := path.Dir(dir) + "/schema/" + m.Schema + ".tsv"
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return nil, err
			}
			if r.Keys, err = ParseSchema(name, text); err != nil {
				return nil, err
			}
			launch = append(launch, text...)
		}
		if r.Digests, err = digests(m, template, launch); err != nil {
			return nil, err
		}
		c.recipes[m.Name] = r
	}
	return c, nil
}

// Names are all recipes in order.
func (c *Catalog) Names() []string {
	var names []string
	for name := range c.recipes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Get is the recipe of that name; an unknown one is a usage error that names
// the nearest.
func (c *Catalog) Get(name string) (*Recipe, error) {
	if r, ok := c.recipes[name]; ok {
		return r, nil
	}
	err := fault.New(fault.Usage, "no recipe %q in the catalogue; there are %s", name, strings.Join(c.Names(), ", "))
	if near := fault.Nearest(name, c.Names()); near != "" {
		return nil, err.WithHint("did you mean %q? tp methods %s describes it", near, near)
	}
	return nil, err.WithHint("tp methods")
}

// server is the recipe that can launch a foreign lock's recipe: the one of
// that name, else the first whose serves list matches.
func (c *Catalog) server(name string) *Recipe {
	if r, ok := c.recipes[name]; ok {
		return r
	}
	for _, own := range c.Names() {
		for _, pattern := range c.recipes[own].Serves {
			if ok, _ := path.Match(pattern, name); ok {
				return c.recipes[own]
			}
		}
	}
	return nil
}
