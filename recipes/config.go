package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/internal/fault"
	"go.yaml.in/yaml/v4"
)

// maxKeys bounds a configuration: more is not written by hand, and aliases of
// aliases grow without end.
const maxKeys = 10000

// Config is a config.yaml as a flat list of its values.
type Config struct {
	Name    string
	Values  []Value
	lenient bool
	at      map[string]int
	work    *int // mappings still to be visited
}

// Value is one leaf: a scalar, a list or an empty mapping.
type Value struct {
	Path      string // keys joined by dots
	Text      string // scalars: as typed; lists: JSON
	JSON      string // the value by the core schema of YAML 1.2; "" where JSON has none, such as .inf
	Type      Type   // "" for null, lists and mappings
	Line, Col int
	Differs   bool // readers of YAML 1.1, such as PyYAML, see another value
	List      bool
	Doubt     string // why YAML readers disagree about it, where that is no error
	File      string // a parent's name; "" for the file itself
	node      *yaml.Node
}

// ParseConfig reads a mapping by the core schema of YAML 1.2: no, on and 1:30
// are texts, 1e-5 is a number. A number that 1.1 and 1.2 read as different
// numbers (010) is refused, with its line.
func ParseConfig(name string, data []byte) (*Config, error) { return parseConfig(name, data, false) }

// parseConfig with lenient keeps what YAML readers disagree about, as typed:
// the file, or its text, goes to the framework's own reader.
func parseConfig(name string, data []byte, lenient bool) (*Config, error) {
	work := maxKeys
	c := &Config{Name: name, lenient: lenient, at: map[string]int{}, work: &work}
	data = bytes.TrimPrefix(data, []byte("\uFEFF")) // a byte order mark, as Windows editors write
	if line, col, bad := notUTF8(data); bad {
		return nil, fault.New(fault.Usage, "%s:%d:%d: not UTF-8; save the file as UTF-8", name, line, col)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && len(doc.Content) == 0) {
		return c, nil
	}
	if err != nil {
		return nil, c.syntax(err)
	}
	if err := d.Decode(&second); err == nil {
		return nil, fault.New(fault.Usage, "%s:%d: a second document begins; one is expected", name, second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, c.syntax(err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Style == 0 && coreNull.MatchString(root.Value) {
		return c, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, c.errorf(root, "", "expected keys with values")
	}
	return c, c.mapping("", root, 0)
}

func (c *Config) syntax(err error) error {
	var e *yaml.LoadError
	if errors.As(err, &e) && e.Mark.Line > 0 {
		text := e.Message
		if e.ContextMsg != "" {
			text += " (" + e.ContextMsg + ")"
		}
		return fault.New(fault.Usage, "%s:%d:%d: %s", c.Name, e.Mark.Line, max(e.Mark.Column, 1), text)
	}
	return fault.New(fault.Usage, "%s: %s", c.Name, strings.TrimPrefix(err.Error(), "yaml: "))
}

// notUTF8 is the place of the first byte that is not UTF-8.
func notUTF8(data []byte) (line, col int, bad bool) {
	if utf8.Valid(data) {
		return 0, 0, false
	}
	line, col = 1, 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if col++; r == '\n' {
			line, col = line+1, 1
		}
		data = data[n:]
	}
	return line, col, true
}

func (c *Config) errorf(n *yaml.Node, path, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	return fault.New(fault.Usage, "%s:%d:%d: %s", c.Name, n.Line, n.Column, text)
}

func (c *Config) mapping(prefix string, n *yaml.Node, depth int) error {
	if *c.work--; *c.work < 0 || depth > 64 {
		return c.errorf(n, prefix, "too many mappings, or nested too deeply")
	}
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return c.errorf(key, prefix, "a key is a text")
		}
		if key.Value == "<<" && key.Style == 0 {
			merged = append(merged, value)
			continue
		}
		path := key.Value
		if prefix != "" {
			path = prefix + "." + key.Value
		}
		if seen[key.Value] {
			return c.errorf(key, path, "the key is there twice")
		}
		seen[key.Value] = true
		if err := c.value(path, value, value, depth); err != nil {
			return err
		}
	}
	for _, m := range merged {
		for _, from := range mergeSources(m) {
			if err := c.merge(prefix, from, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// merge adds the keys of a "<<" mapping that are not there yet.
func (c *Config) merge(prefix string, from *yaml.Node, depth int) error {
	sub := &Config{Name: c.Name, lenient: c.lenient, at: map[string]int{}, work: c.work}
	if from.Kind != yaml.MappingNode {
		return c.errorf(from, prefix, "<< merges mappings")
	}
	if err := sub.mapping(prefix, from, depth+1); err != nil {
		return err
	}
	for _, v := range sub.Values {
		if _, ok := c.at[v.Path]; !ok {
			if err := c.add(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func mergeSources(n *yaml.Node) []*yaml.Node {
	n = follow(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	var all []*yaml.Node
	for _, item := range n.Content {
		all = append(all, follow(item))
	}
	return all
}

func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// value adds the leaves of one key. At is where the key's value is written,
// which for an alias is not where its content is.
func (c *Config) value(path string, n, at *yaml.Node, depth int) error {
	n = follow(n)
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		return c.mapping(path, n, depth+1)
	}
	v := Value{Path: path, Line: at.Line, Col: at.Column, node: n}
	if n.Kind == yaml.ScalarNode {
		s, err := readScalar(n)
		if err != nil && (!c.lenient || n.Style&yaml.TaggedStyle != 0) {
			return c.errorf(n, path, "%v", err)
		} else if err != nil {
			v.Doubt, s.kind = err.Error(), Str
		}
		v.Text, v.JSON, v.Type, v.Differs = n.Value, s.json, s.kind, s.differs
		return c.add(v)
	}
	budget := maxKeys
	text, differs, err := listJSON(n, &budget, 0)
	if err != nil {
		if !c.lenient || budget < 0 {
			return c.errorf(n, path, "%v", err)
		}
		v.Doubt, text = err.Error(), "[…]"
		v.Text, v.List = text, true
		return c.add(v)
	}
	v.Text, v.JSON, v.Differs, v.List = text, text, differs, true
	return c.add(v)
}

func (c *Config) add(v Value) error {
	if len(c.Values) == maxKeys {
		return fault.New(fault.Usage, "%s: more than %d keys", c.Name, maxKeys)
	}
	c.at[v.Path] = len(c.Values)
	c.Values = append(c.Values, v)
	return nil
}

// Find is the value at a dotted path.
func (c *Config) Find(path string) (Value, bool) {
	i, ok := c.at[path]
	if !ok {
		return Value{}, false
	}
	return c.Values[i], true
}

// Origin is "config.yaml:12".
func (c *Config) Origin(v Value) string { return fmt.Sprintf("%s:%d", c.file(v), v.Line) }

// Place is "config.yaml:12:3".
func (c *Config) Place(v Value) string { return fmt.Sprintf("%s:%d:%d", c.file(v), v.Line, v.Col) }

func (c *Config) file(v Value) string {
	if v.File != "" {
		return v.File
	}
	return c.Name
}
