package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestStringIsNeverShown(t *testing.T) {
	const text = "hunter2hunter2"
	s := New(text)
	type config struct {
		Token  String
		token  String
		Ptr    *String
		Any    any
		ByName map[string]String
	}
	c := config{s, s, &s, s, map[string]String{"x": s}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		fmt.Fprintf(&out, verb+verb+verb, s, c, &c)
	}
	fmt.Fprintln(&out, s, c, fmt.Errorf("wrapped: %w", errors.New(s.String())))
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s, "c", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "s", s, "c", c)
	out.Write(log.Bytes())
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q was shown: %s", leak, out.String())
		}
	}
	if s.Reveal() != text || s.Empty() || !(String{}).Empty() {
		t.Error("Reveal or Empty")
	}
}

func TestMask(t *testing.T) {
	for _, c := range []struct {
		text   string
		values []string
		want   string
	}{
		{"token=abcdef!", []string{"abcdef"}, "token=***!"},
		{"abcdef abcd", []string{"abcd", "abcdef"}, "*** ***"},
		{"nothing", []string{"", "no"}, "nothing"},
		{"> -----BEGIN\n> c2VjcmV0\n", []string{"-----BEGIN\nc2VjcmV0\n"}, "> ***\n> ***\n"},
	} {
		if got := Mask(c.text, c.values...); got != c.want {
			t.Errorf("Mask(%q, %q) = %q, want %q", c.text, c.values, got, c.want)
		}
	}
}
