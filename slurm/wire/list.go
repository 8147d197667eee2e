package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Text is a string that may come as null or {}, or as a number, which is then
// kept as it is written.
type Text string

// UnmarshalJSON never fails.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case bytes.Equal(b, []byte("null")), len(b) > 0 && (b[0] == '{' || b[0] == '['):
		*t = ""
	case json.Unmarshal(b, &s) == nil:
		*t = Text(s)
	default:
		*t = Text(b)
	}
	return nil
}

// List is a list that comes as "a,b", ["a","b"], {} or null.
type List []string

// UnmarshalJSON never fails.
func (c *List) UnmarshalJSON(b []byte) error {
	*c = nil
	var list []Text
	if json.Unmarshal(b, &list) == nil {
		for _, item := range list {
			*c = append(*c, string(item))
		}
	} else {
		var s string
		_ = json.Unmarshal(b, &s) // {} and anything else: an empty list
		*c = strings.Split(s, ",")
	}
	for i := range *c {
		(*c)[i] = strings.TrimSpace((*c)[i])
	}
	if *c = slices.DeleteFunc(*c, func(s string) bool { return s == "" }); len(*c) == 0 {
		*c = nil
	}
	return nil
}

// Words is a list of states or flags: ["A","B"], "a+b" or "A", upper-cased.
type Words []string

// UnmarshalJSON never fails.
func (w *Words) UnmarshalJSON(b []byte) error {
	var list List
	_ = list.UnmarshalJSON(b)
	*w = nil
	for _, item := range list {
		for word := range strings.SplitSeq(item, "+") {
			if word = strings.ToUpper(strings.TrimSpace(word)); word != "" {
				*w = append(*w, word)
			}
		}
	}
	return nil
}

// Maybe is an object in some dialects and something else in others; then it
// stays empty.
type Maybe[T any] struct{ V T }

// UnmarshalJSON never fails.
func (m *Maybe[T]) UnmarshalJSON(b []byte) error {
	var v T
	if json.Unmarshal(b, &v) == nil {
		m.V = v
	}
	return nil
}
