// Package secret keeps values that must not be shown from being shown.
//
//	token := secret.New(text)
//	fmt.Println(token)                  // ***
//	request.Header.Set("X-SLURM-USER-TOKEN", token.Reveal())
//	secret.Mask(output, token.Reveal()) // for text that others wrote
package secret

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Hidden is what a secret prints as, whatever its length.
const Hidden = "***"

// String is a secret text. It prints as *** under every verb, as JSON, as text
// and in slog. The text is behind a pointer, for fmt calls no methods on
// unexported fields of a struct and would print what lies directly in them.
type String struct{ text *string }

// New hides a text.
func New(text string) String { return String{&text} }

// Reveal is the text itself. Its result belongs in a request or a 0600 file.
func (s String) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is no text; the zero String is empty.
func (s String) Empty() bool { return s.Reveal() == "" }

// Format implements fmt.Formatter for every verb.
func (s String) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Hidden)) }

func (s String) String() string               { return Hidden }
func (s String) GoString() string             { return Hidden }
func (s String) MarshalText() ([]byte, error) { return []byte(Hidden), nil }
func (s String) LogValue() slog.Value         { return slog.StringValue(Hidden) }

// minMask is the shortest value that Mask looks for: replacing every "ab" of a
// text would destroy it and hide nothing.
const minMask = 4

// Mask replaces every occurrence of the values in text, longest first. A value
// of several lines, such as a key, is also masked line by line, for programs
// indent and wrap what they quote. Values under 4 bytes are left alone.
func Mask(text string, values ...string) string {
	var parts []string
	for _, v := range values {
		v = strings.TrimSpace(v)
		parts = append(parts, v)
		if strings.Contains(v, "\n") {
			for line := range strings.Lines(v) {
				parts = append(parts, strings.TrimSpace(line))
			}
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, p := range parts {
		if len(p) >= minMask {
			text = strings.ReplaceAll(text, p, Hidden)
		}
	}
	return text
}
