package recipes

import (
	"fmt"
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
		r := c.has(name)
		fmt.Fprintf(&b, "%-*s  %-7s %s", width, name, r.Version, r.Title)
		if r.Origin != BuiltIn {
			fmt.Fprintf(&b, " (%s)", r.Origin)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Recipes are all recipes in order; they marshal to the JSON of tp methods.
func (c *Catalog) Recipes() []*Recipe {
	var all []*Recipe
	for _, name := range c.Names() {
		all = append(all, c.has(name))
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
	for _, role := range r.OptionalRoles {
		roles = append(roles, role+" (if a profile names it)")
	}
	if r.OpenRoles {
		roles = append(roles, "and those that job.toml names")
	}
	line("roles", roles...)
	for _, role := range sortedKeys(r.Role) {
		about := r.Role[role].Doc
		if versions := r.Role[role].Versions; len(versions) > 0 {
			about += fmt.Sprintf(" (%s %s)", r.Framework.Kind, joined(versions))
		}
		line("", role+": "+about)
	}
	line("framework", fmt.Sprintf("%s %s", r.Framework.Kind, strings.Join(r.Framework.Versions, ", ")))
	line("entry", fmt.Sprintf("%s (%s)", r.Entrypoint.Value, r.Entrypoint.Kind))
	line("launcher", string(r.Launcher))
	line("command", strings.Join(r.Command, " "))
	line("takes", r.describeInputs()...)
	line("then", r.Lifecycle...)
	line("metrics", r.Metrics.Primary...)
	line("serves", r.Serves...)
	if r.Checked != "" {
		line("checked", r.Checked)
	}
	if r.Origin != BuiltIn {
		line("from", r.Origin)
	}
	line("digest", r.Digest)
	b.WriteString(r.describeParams())
	b.WriteString(r.describeOwned())
	for i, p := range r.Presets {
		if i == 0 {
			b.WriteString("\npresets (tp new NAME --method " + r.Name + " --preset PRESET)\n")
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", p.Name, p.Doc)
	}
	switch r.Config {
	case YAMLFlat:
		b.WriteString("\nEvery key of config.yaml is a parameter as well, with the type it has there.\n")
	case ConfigNone:
		if len(r.Params) > 0 {
			break
		}
		b.WriteString("\nIts scripts read what they like; values reach them by --env NAME=VALUE.\n")
	default:
		fmt.Fprintf(&b, "\nEvery key that %s has can be set by its path as well; +PATH adds one.\n", r.Framework.Kind)
		if r.Keys != nil {
			fmt.Fprintf(&b, "Keys from %s.\n", r.Keys.Source)
		}
	}
	return b.String()
}

func (r *Recipe) describeInputs() []string {
	var all []string
	for _, name := range inputNames {
		if need := r.Inputs[name]; need != "" {
			all = append(all, "--"+strings.ReplaceAll(name, "_", "-")+" ("+need+")")
		}
	}
	return all
}

// describeOwned lists the keys that tp sets whatever the configuration says.
func (r *Recipe) describeOwned() string {
	var b strings.Builder
	for i, o := range r.Owned {
		if i == 0 {
			b.WriteString("\nset by tp\n")
		}
		what := strings.ReplaceAll(o.From, "_", " ")
		if o.From == "" {
			what = "always " + o.Value
		}
		if o.Role != "" {
			what += ", with a pool for " + o.Role
		}
		if o.With != "" {
			what += ", with --" + strings.ReplaceAll(o.With, "_", "-")
		}
		if o.Unless != "" {
			what += " and without --" + strings.ReplaceAll(o.Unless, "_", "-")
		}
		if len(o.Versions) > 0 {
			what += ", in " + joined(o.Versions)
		}
		fmt.Fprintf(&b, "  %s: %s\n", o.Path, what)
	}
	return b.String()
}

func (r *Recipe) describeParams() string {
	var b strings.Builder
	groups := map[string][]string{}
	for name, p := range r.Params {
		groups[p.Group] = append(groups[p.Group], name)
	}
	for _, group := range sortedKeys(groups) {
		heading := "parameters"
		if group != "" {
			heading += ": " + group
		}
		fmt.Fprintf(&b, "\n%s\n", heading)
		names := groups[group]
		slices.Sort(names)
		for _, name := range names {
			b.WriteString(r.describeParam(name))
		}
	}
	return b.String()
}

func (r *Recipe) describeParam(name string) string {
	var b strings.Builder
	p := r.Params[name]
	about := []string{string(p.Type)}
	if text := p.Range(); text != "" {
		about = append(about, text)
	}
	known, ok := r.Keys.at(r.Framework.Default)[p.Path]
	switch {
	case p.Default != nil:
		about = append(about, "default "+*p.Default)
	case p.Required:
		about = append(about, "required")
	case ok && known.Type != "null" && known.Default != "":
		about = append(about, r.Framework.Kind+"'s default "+known.Default)
	}
	if len(p.Versions) > 0 {
		about = append(about, "only "+r.Framework.Kind+" "+joined(p.Versions))
	}
	fmt.Fprintf(&b, "  %s (%s)\n", name, strings.Join(about, "; "))
	if p.Path != "" {
		fmt.Fprintf(&b, "      %s\n", p.Path)
	}
	for _, version := range sortedKeys(p.Paths) {
		fmt.Fprintf(&b, "      %s in %s\n", p.Paths[version], version)
	}
	if p.Doc != "" {
		fmt.Fprintf(&b, "      %s\n", p.Doc)
	}
	return b.String()
}
