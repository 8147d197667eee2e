// Package tomlfile reads the TOML files people write: strictly, and with the
// place of every key at hand. An unknown key is an error that says where it
// stands and which known key is nearest; a value remembers its line, so that
// a plan can say "job.toml:7" beside it.
//
//	f, err := tomlfile.Parse("job.toml", data)
//	err = f.Decode(&job)
//	f.Origin("time") // "job.toml:7"
package tomlfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tuneplane/tp/internal/fault"
)

// File is a parsed file: its text and where its keys are.
type File struct {
	Name string // as shown in messages
	data []byte
	keys []Key
	at   map[string]int // joined path to index in keys
}

// Key is one key of the file.
type Key struct {
	Path      []string
	Line, Col int    // from 1, in characters
	Raw       string // the value as typed, for numbers, booleans and dates; else ""
	Table     bool   // a [header] or an inline table
}

// Parse reads the syntax. Errors carry file, line and column.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name, data: data, at: map[string]int{}}
	var all any
	if err := toml.Unmarshal(data, &all); err != nil { // checks what the walk below does not, such as duplicates
		return nil, f.explain(err, nil)
	}
	p := unstable.Parser{}
	p.Reset(data)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = f.add(&p, nil, e.Key(), nil)
		case unstable.KeyValue:
			f.addValue(&p, table, e)
		}
	}
	if err := p.Error(); err != nil {
		return nil, f.explain(err, nil)
	}
	return f, nil
}

func (f *File) addValue(p *unstable.Parser, prefix []string, e *unstable.Node) {
	v := e.Value()
	path := f.add(p, prefix, e.Key(), v)
	if v.Kind != unstable.InlineTable {
		return
	}
	for it := v.Children(); it.Next(); {
		if n := it.Node(); n.Kind == unstable.KeyValue {
			f.addValue(p, path, n)
		}
	}
}

// add records every segment of a dotted key; the first place of a path stays.
func (f *File) add(p *unstable.Parser, prefix []string, it unstable.Iterator, value *unstable.Node) []string {
	path := append([]string(nil), prefix...)
	for it.Next() {
		n := it.Node()
		path = append(path, string(n.Data))
		if _, ok := f.at[join(path)]; ok {
			continue
		}
		at := p.Shape(n.Raw).Start
		f.at[join(path)] = len(f.keys)
		f.keys = append(f.keys, Key{Path: append([]string(nil), path...), Line: at.Line, Col: at.Column, Table: true})
	}
	if i, ok := f.at[join(path)]; ok && value != nil {
		f.keys[i].Table = value.Kind == unstable.InlineTable
		switch value.Kind {
		case unstable.Float, unstable.Integer, unstable.Bool, unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
			f.keys[i].Raw = string(value.Data)
		}
	}
	return path
}

func join(path []string) string { return strings.Join(path, "\x00") }

// Keys are all keys in the order of the file.
func (f *File) Keys() []Key { return f.keys }

// Find is the key at path.
func (f *File) Find(path ...string) (Key, bool) {
	i, ok := f.at[join(path)]
	if !ok {
		return Key{}, false
	}
	return f.keys[i], true
}

// Origin is "job.toml:7" for a key of the file, "job.toml" for others.
func (f *File) Origin(path ...string) string {
	if k, ok := f.Find(path...); ok {
		return fmt.Sprintf("%s:%d", f.Name, k.Line)
	}
	return f.Name
}

// Errorf is a usage error at a key: "job.toml:12:8: restart.max: …".
func (f *File) Errorf(path []string, format string, args ...any) *fault.Error {
	text := strings.Join(path, ".") + ": " + fmt.Errorf(format, args...).Error()
	if k, ok := f.Find(path...); ok {
		return fault.New(fault.Usage, "%s:%d:%d: %s", f.Name, k.Line, k.Col, text)
	}
	return fault.New(fault.Usage, "%s: %s", f.Name, text)
}

// Decode fills into, a pointer to a struct with toml tags. All unknown keys
// are reported at once.
func (f *File) Decode(into any) error {
	d := toml.NewDecoder(strings.NewReader(string(f.data)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return f.explain(err, into)
	}
	return nil
}

func (f *File) explain(err error, into any) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		lines, seen := []string(nil), map[string]bool{}
		for i := range strict.Errors {
			row, col := strict.Errors[i].Position()
			path, known := unknown(strict.Errors[i].Key(), into)
			if seen[join(path)] {
				continue
			}
			seen[join(path)] = true
			if k, ok := f.Find(path...); ok {
				row, col = k.Line, k.Col
			}
			text := fmt.Sprintf("%s:%d:%d: unknown key %q", f.Name, row, col, strings.Join(path, "."))
			if near := fault.Nearest(path[len(path)-1], known); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			} else if len(known) > 0 {
				text += "; known: " + strings.Join(known, ", ")
			}
			lines = append(lines, text)
		}
		return fault.New(fault.Usage, "%s", strings.Join(lines, "\n"))
	}
	var syntax *toml.DecodeError
	if errors.As(err, &syntax) {
		row, col := syntax.Position()
		return fault.New(fault.Usage, "%s:%d:%d: %s", f.Name, row, col, plain(syntax))
	}
	var parse *unstable.ParserError
	if errors.As(err, &parse) {
		return fault.New(fault.Usage, "%s: %s", f.Name, parse.Message)
	}
	return fault.New(fault.Usage, "%s: %w", f.Name, err)
}
