package recipes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Type is the type of a parameter.
type Type string

// Types of parameters.
const (
	Int   Type = "int"
	Float Type = "float"
	Bool  Type = "bool"
	Str   Type = "str"
	Enum  Type = "enum"
	List  Type = "list" // as JSON
)

var paramTypes = []Type{Int, Float, Bool, Str, Enum, List}

// Param is one parameter of a manifest.
type Param struct {
	Type         Type              `toml:"type" json:"type"`
	Path         string            `toml:"path" json:"path,omitempty"`         // in config.yaml; none: the launcher uses it
	Paths        map[string]string `toml:"paths" json:"paths,omitempty"`       // where another version of the framework has it
	Versions     []string          `toml:"versions" json:"versions,omitempty"` // that have it; none: all
	Doc          string            `toml:"doc" json:"doc,omitempty"`
	Group        string            `toml:"group" json:"group,omitempty"` // heading in tp methods and the wizard
	Required     bool              `toml:"required" json:"required,omitempty"`
	Also         []string          `toml:"also" json:"also,omitempty"` // texts that are values as well, such as null
	Value        any               `toml:"default" json:"-"`
	Default      *string           `toml:"-" json:"default,omitempty"` // as typed
	Min          *float64          `toml:"min" json:"min,omitempty"`
	Max          *float64          `toml:"max" json:"max,omitempty"`
	ExclusiveMin bool              `toml:"exclusive_min" json:"exclusive_min,omitempty"`
	Choices      []string          `toml:"choices" json:"choices,omitempty"`
}

// in is the parameter as one version of the framework has it.
func (p Param) in(version string) (Param, bool) {
	if path, ok := p.Paths[version]; ok {
		p.Path = path
	}
	return p, at(p.Versions, version)
}

func (p Param) check() error {
	switch {
	case !slices.Contains(paramTypes, p.Type):
		return fmt.Errorf("type %q is not known; there are %s", p.Type, joined(paramTypes))
	case p.Type == Enum && len(p.Choices) == 0:
		return fmt.Errorf("an enum needs choices")
	case (p.Min != nil || p.Max != nil) && p.Type != Int && p.Type != Float:
		return fmt.Errorf("min and max are for numbers")
	case p.Min != nil && p.Max != nil && *p.Min > *p.Max:
		return fmt.Errorf("min is over max")
	case p.ExclusiveMin && p.Min == nil:
		return fmt.Errorf("exclusive_min needs min")
	case p.Required && p.Default != nil:
		return fmt.Errorf("what has a default is not required")
	}
	for _, choice := range p.Choices {
		if _, err := (Param{Type: p.Type}).Check(choice); err != nil && p.Type != Enum {
			return fmt.Errorf("choice: %w", err)
		}
	}
	if p.Default != nil {
		if _, err := p.Check(*p.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

var (
	jsonInt    = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// Check says whether text is a value of the parameter, and returns it as JSON.
// Numbers keep their text: 1e-5 stays 1e-5.
func (p Param) Check(text string) (string, error) {
	value, err := p.typed(text)
	if err == nil {
		err = p.allowed(text)
	}
	return value, err
}

// typed checks the type alone.
func (p Param) typed(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("%q is not UTF-8", text)
	}
	if slices.Contains(p.Also, text) {
		return anyJSON(text)
	}
	value := text
	switch p.Type {
	case Int:
		if !jsonInt.MatchString(text) {
			return "", fmt.Errorf("%q is no whole number%s", text, rewrite(text))
		}
	case Float:
		if !jsonNumber.MatchString(text) {
			return "", fmt.Errorf("%q is no number%s", text, rewrite(text))
		}
	case Bool:
		if text != "true" && text != "false" {
			return "", fmt.Errorf("%q is neither true nor false", text)
		}
	case List:
		if !json.Valid([]byte(text)) || strings.TrimSpace(text)[0] != '[' {
			return "", fmt.Errorf("%q is no JSON list, such as [1, 2] or [\"a\", \"b\"]", text)
		}
	default:
		value = jsonText(text)
	}
	return value, nil
}

// allowed holds a value of the right type against choices and range.
func (p Param) allowed(text string) error {
	if slices.Contains(p.Also, text) {
		return nil
	}
	if len(p.Choices) > 0 && !slices.Contains(p.Choices, text) {
		return fmt.Errorf("%q is none of %s", text, strings.Join(p.Choices, ", "))
	}
	return p.inRange(text)
}

func (p Param) inRange(text string) error {
	if p.Min == nil && p.Max == nil {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%s is out of any range", text)
	}
	switch {
	case p.Min != nil && p.ExclusiveMin && n <= *p.Min:
		return fmt.Errorf("%s is not over %s", text, short(*p.Min))
	case p.Min != nil && n < *p.Min:
		return fmt.Errorf("%s is under %s", text, short(*p.Min))
	case p.Max != nil && n > *p.Max:
		return fmt.Errorf("%s is over %s", text, short(*p.Max))
	}
	return nil
}

// Range is the allowed values in short: "≥ 1, ≤ 8", "> 0", "a | b".
func (p Param) Range() string {
	if len(p.Choices) > 0 {
		return strings.Join(p.Choices, " | ")
	}
	var parts []string
	if p.Min != nil {
		sign := "≥ "
		if p.ExclusiveMin {
			sign = "> "
		}
		parts = append(parts, sign+short(*p.Min))
	}
	if p.Max != nil {
		parts = append(parts, "≤ "+short(*p.Max))
	}
	if len(p.Also) > 0 {
		parts = append(parts, "or "+strings.Join(p.Also, ", "))
	}
	return strings.Join(parts, ", ")
}

func short(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// rewrite proposes the JSON form of a number that is written in another way,
// such as .5, +1, 08 or 0x1F.
func rewrite(text string) string {
	if jsonNumber.MatchString(text) {
		return "" // a fraction where a whole number is wanted
	}
	digits := strings.TrimPrefix(text, "+")
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil && strings.HasPrefix(digits, "0x") {
		return fmt.Sprintf("; write %d", n)
	}
	if n, err := strconv.ParseFloat(digits, 64); err == nil && strings.Trim(digits, "-0123456789.eE+") == "" {
		return "; write " + strconv.FormatFloat(n, 'g', -1, 64)
	}
	return ""
}

func jsonText(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has no encoding error
	return strings.TrimSuffix(b.String(), "\n")
}
