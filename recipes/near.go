package recipes

import (
	"maps"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// meant guesses which keys a name stands for that nobody knows: one to three,
// or none. Params are parameter names, keys dotted paths.
func meant(name string, params, keys []string) []string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	dotted := last != name
	for _, guess := range []func() []string{
		func() []string { // the end of a path, or a parameter written as one
			if slices.Contains(params, last) && dotted {
				return []string{last}
			}
			return filter(keys, func(k string) bool { return strings.HasSuffix(k, "."+name) })
		},
		func() []string { // all its words, and more
			where := params
			if dotted {
				where = siblings(keys, name)
			}
			return filter(where, func(k string) bool { return holdsWords(k[strings.LastIndexByte(k, '.')+1:], last) })
		},
		func() []string { return one(fault.Nearest(name, params)) },
		func() []string { // another word in the same place
			near := siblings(keys, name)
			lasts := map[string]string{}
			for _, k := range near {
				lasts[k[strings.LastIndexByte(k, '.')+1:]] = k
			}
			return one(lasts[fault.Nearest(last, slices.Sorted(maps.Keys(lasts)))])
		},
		func() []string {
			if dotted && len(siblings(keys, name)) > 0 {
				return nil // the place is right, and nothing there is near
			}
			return one(fault.Nearest(name, keys))
		},
	} {
		if found := guess(); len(found) > 0 && len(found) <= 3 {
			return found
		}
	}
	return nil
}

func one(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func filter(list []string, keep func(string) bool) []string {
	var out []string
	for _, x := range list {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// siblings are the keys in the same section.
func siblings(keys []string, name string) []string {
	parent := name[:strings.LastIndexByte(name, '.')+1]
	return filter(keys, func(k string) bool {
		rest, ok := strings.CutPrefix(k, parent)
		return ok && !strings.Contains(rest, ".")
	})
}

// holdsWords says that whole has every word of part, in order.
func holdsWords(whole, part string) bool {
	words := strings.Split(whole, "_")
	for _, w := range strings.Split(part, "_") {
		i := slices.Index(words, w)
		if i < 0 {
			return false
		}
		words = words[i+1:]
	}
	return true
}

// didYouMean is `; did you mean "a" or "b"?`, or nothing.
func didYouMean(found []string) string {
	if len(found) == 0 {
		return ""
	}
	quoted := make([]string, len(found))
	for i, name := range found {
		quoted[i] = `"` + name + `"`
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}
