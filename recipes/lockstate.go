package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
)

// LockState says how a lock stands to the catalogue.
type LockState string

// States of a lock. A file that cannot be read at all is malformed; ReadLock
// says so with an error.
const (
	Current   LockState = "current"   // equal to our catalogue
	Stale     LockState = "stale"     // ours, and the catalogue has moved on
	Foreign   LockState = "foreign"   // another tool's; its typed bindings are used
	Malformed LockState = "malformed" // not readable, or nothing can launch it
	Removed   LockState = "removed"   // ours, for a framework version that is no longer supported
)

// Check compares a lock with the catalogue. Reasons say what differs; they
// are empty for a current lock. created_by and bindings are not compared: a
// binding records what the recipe was, the digests already say whether it is.
func (c *Catalog) Check(l *Lock) (LockState, []string) {
	if l.Tool != lockTool {
		why := []string{fmt.Sprintf("written by another tool (%s): its digests are not in our catalogue", l.APIVersion)}
		if r := c.server(l.Recipe.Name); r == nil {
			return Malformed, append(why, fmt.Sprintf("no recipe here can launch %s; there are %s", l.Recipe.Name, strings.Join(c.Names(), ", ")))
		} else if r.Name != l.Recipe.Name {
			why = append(why, "launched as "+r.Name)
		}
		return Foreign, why
	}
	r := c.has(l.Recipe.Name)
	if r == nil {
		return Stale, []string{fmt.Sprintf("recipe %s has left the catalogue", l.Recipe.Name)}
	}
	if !slices.Contains(r.Framework.Versions, l.Framework.Version) {
		return Removed, []string{fmt.Sprintf("%s %s is no longer supported; there are %s", r.Framework.Kind, l.Framework.Version, strings.Join(r.Framework.Versions, ", "))}
	}
	want := &Lock{APIVersion: LockVersion, Recipe: LockedRecipe{r.Name, r.Version, r.Digests},
		Framework: spec.Framework{Kind: r.Framework.Kind, Version: l.Framework.Version, RuntimeID: r.runtimeID(l.Framework.Version)}}
	var why []string
	for _, field := range []struct{ name, locked, now string }{
		{"apiVersion", l.APIVersion, want.APIVersion},
		{"recipe.version", l.Recipe.Version, want.Recipe.Version},
		{"recipe.digest", l.Recipe.Digest, want.Recipe.Digest},
		{"recipe.manifest_digest", l.Recipe.ManifestDigest, want.Recipe.ManifestDigest},
		{"recipe.template_digest", l.Recipe.TemplateDigest, want.Recipe.TemplateDigest},
		{"framework.kind", l.Framework.Kind, want.Framework.Kind},
		{"framework.runtime_id", l.Framework.RuntimeID, want.Framework.RuntimeID},
	} {
		if field.locked != field.now {
			why = append(why, fmt.Sprintf("%s: locked %s, catalogue %s", field.name, brief(field.locked), brief(field.now)))
		}
	}
	if len(why) > 0 {
		return Stale, why
	}
	return Current, nil
}

// brief shortens a digest; two that differ do so in the first digits.
func brief(text string) string {
	switch {
	case text == "":
		return "nothing"
	case len(text) > 20:
		return text[:19] + "…"
	}
	return text
}

// resolve is the recipe that launches a lock, with the lock's own bindings
// when it is foreign. A stale lock is refused here, before every gate.
func (c *Catalog) resolve(experiment string, l *Lock) (*Recipe, LockState, []string, error) {
	state, why := c.Check(l)
	switch state {
	case Stale:
		return nil, state, why, fault.New(fault.Usage, "the recipe lock of %s is stale:\n  %s", experiment, strings.Join(why, "\n  ")).
			WithHint("tp recipe upgrade %s, or tp submit %s --upgrade-recipe", experiment, experiment)
	case Removed:
		return nil, state, why, fault.New(fault.Usage, "the recipe lock of %s cannot be used:\n  %s", experiment, strings.Join(why, "\n  ")).
			WithHint("tp recipe upgrade %s --framework-version VERSION", experiment)
	case Malformed:
		return nil, state, why, fault.New(fault.Usage, "the recipe lock of %s cannot be used:\n  %s", experiment, strings.Join(why, "\n  ")).
			WithHint("tp methods lists what can be launched")
	}
	r := c.server(l.Recipe.Name)
	if state == Foreign {
		r = r.bound(l)
	}
	return r, state, why, nil
}

// bound is the recipe with a foreign lock's parameters and entry point. Where
// both know a path, the lock's name and type count, and our range stays.
func (r *Recipe) bound(l *Lock) *Recipe {
	mixed := *r
	mixed.Params = map[string]Param{}
	ours := map[string]Param{}
	for name, p := range r.Params {
		mixed.Params[name] = p
		if p, there := p.in(r.Framework.nearest(l.Framework.Version)); there && p.Path != "" {
			ours[p.Path] = p
		}
	}
	for name, p := range r.Params {
		for _, b := range l.Params {
			if p.Path == b.Path && p.Path != "" {
				delete(mixed.Params, name)
			}
		}
	}
	for name, b := range l.Params {
		p, known := ours[b.Path]
		if !known || b.Type != p.Type && !(b.Type == Int && p.Type == Float) {
			p = Param{Type: b.Type, Path: b.Path, Group: "lock"}
			if p.Type == Enum { // the lock does not say which choices
				p.Type = Str
			}
		}
		p.Path, p.Paths, p.Versions, p.Type = b.Path, nil, nil, keepType(p.Type, b.Type)
		mixed.Params[name] = p
	}
	if l.Entrypoint.Value != "" {
		mixed.Entrypoint = l.Entrypoint
	}
	return &mixed
}

func keepType(ours, locked Type) Type {
	if locked == Enum {
		return ours
	}
	return locked
}
