package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// List is the text of tp methods: one line each.
func (c *Catalog) List() string {
	width := 0
	for _, name := range c.Names() {
		width = max(width, len(name))
	}
	var b strings.Builder
	for _, name := range c.Names() {
		r := c.recipes[name]
		fmt.Fprintf(&b, "%-*s  %-7s %s\n", width, name, r.Version, r.Title)
	}
	return b.String()
}

// Recipes are all recipes in order; they marshal to the JSON of tp methods.
func (c *Catalog) Recipes() []*Recipe {
	var all []*Recipe
	for _, name := range c.Names() {
		all = append(all, c.recipes[name])
	}
	return all
}

// Describe is the text of tp methods NAME.
func (r *Recipe) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s — %s\n%s\n\n", r.Name, r.Version, r.Title, r.Summary)
	line := func(label string, values ...string) {
		if len(values) > 0 {
			fmt.Fprintf(&b, "%-11s %s\n", label, strings.Join(values, ", "))
		}
	}
	roles := slices.Clone(r.Roles)
	roles[slices.Index(roles, r.Driver)] += " (driver)"
	if r.OpenRoles {
		roles = append(roles, "and those that job.toml names")
	}
	line("roles", roles...)
	line("framework", fmt.Sprintf("%s %s", r.Framework.Kind, strings.Join(r.Framework.Versions, ", ")))
	line("entry", fmt.Sprintf("%s (%s)", r.Entrypoint.Value, r.Entrypoint.Kind))
	line("launcher", string(r.Launcher))
	line("then", r.Lifecycle...)
	line("metrics", r.Metrics.Primary...)
	line("serves", r.Serves...)
	line("digest", r.Digest)
	b.WriteString(r.describeParams())
	return b.String()
}

func (r *Recipe) describeParams() string {
	var b strings.Builder
	groups := map[string][]string{}
	for name, p := range r.Params {
		groups[p.Group] = append(groups[p.Group], name)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		heading := "parameters"
		if group != "" {
			heading += ": " + group
		}
		fmt.Fprintf(&b, "\n%s\n", heading)
		names := groups[group]
		slices.Sort(names)
		for _, name := range names {
			p := r.Params[name]
			about := []string{string(p.Type)}
			if text := p.Range(); text != "" {
				about = append(about, text)
			}
			switch {
			case p.Default != nil:
				about = append(about, "default "+*p.Default)
			case p.Required:
				about = append(about, "required")
			}
			fmt.Fprintf(&b, "  %s (%s)\n", name, strings.Join(about, "; "))
			if p.Path != "" {
				fmt.Fprintf(&b, "      %s\n", p.Path)
			}
			if p.Doc != "" {
				fmt.Fprintf(&b, "      %s\n", p.Doc)
			}
		}
	}
	switch r.Config {
	case YAMLFlat:
		b.WriteString("\nEvery key of config.yaml is a parameter as well, with the type it has there.\n")
	case ConfigNone:
		b.WriteString("\nIts scripts read what they like; values reach them by --env NAME=VALUE.\n")
	}
	return b.String()
}
