package site

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Value is one setting and where it comes from.
type Value struct {
	Key    string // "fleets.h200.url"
	Text   string // as effective; a list is JSON
	Origin string // "/etc/tp/site.toml:12" or "default"
}

// Values are all settings, sorted by key, for `tp config show`.
func (c *Config) Values() []Value {
	out := make([]Value, 0, len(c.values))
	for _, v := range c.values {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Origin is where the effective value of a key stands; "" when it is not set.
func (c *Config) Origin(key string) string { return c.values[key].Origin }

func (c *Config) note(key, text, origin string) {
	c.values[key] = Value{key, text, origin}
}

// remember notes every key of a file; a later file replaces an earlier one.
func (c *Config) remember(f *tomlfile.File, data []byte) error {
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, k := range f.Keys() {
		if k.Table {
			continue
		}
		var value any = all
		for _, p := range k.Path {
			table, _ := value.(map[string]any)
			value = table[p]
		}
		text := k.Raw
		if text == "" {
			text = textOf(value)
		}
		c.note(strings.Join(k.Path, "."), text, f.Origin(k.Path...))
	}
	return nil
}

func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	if data, err := json.Marshal(v); err == nil {
		return string(data)
	}
	return fmt.Sprint(v)
}
