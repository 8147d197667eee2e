package recipes

import (
	"strings"
	"testing"
)

// TestNoValidateSkipsRangesNotTypes: what is out of range is taken with a
// warning that names it; what has the wrong type is an error all the same.
func TestNoValidateSkipsRangesNotTypes(t *testing.T) {
	l, e := newLab(t, "pytorch/ddp", "x", map[string]string{"config.yaml": "steps: 1\n", "job.toml": "[params]\nprocs_per_node = 5000\n"})
	o := Options{Profiles: []string{"h200:8"}}
	if _, _, err := Compose(l, e, o); err == nil || !strings.Contains(err.Error(), "job.toml:2:1: params.procs_per_node: 5000 is over 1024") {
		t.Errorf("with validation: %v", err)
	}
	o.NoValidate = true
	s, how := compose(t, l, e, o)
	if len(how.Warnings) != 1 || how.Warnings[0] != "parameter procs_per_node: 5000 is over 1024; taken as it is (--no-validate)" {
		t.Errorf("warnings %q", how.Warnings)
	}
	if body := s.Roles[0].Body; !strings.Contains(body, "5000") {
		t.Errorf("the value must reach the launcher:\n%s", body)
	}
	// The highest layer speaks alone, also to warnings.
	o.Set = []string{"procs_per_node=8"}
	if _, how := compose(t, l, e, o); len(how.Warnings) != 0 {
		t.Errorf("warnings of a value that is not used: %q", how.Warnings)
	}
	for _, set := range []string{"procs_per_node=many", "procs_per_node=1.5", "steps=x"} {
		o.Set = []string{set}
		if _, _, err := Compose(l, e, o); err == nil {
			t.Errorf("-s %s: a type must be checked with --no-validate too", set)
		}
	}
}

func TestNoValidateInConfig(t *testing.T) {
	low := 10.0
	c := &composer{opts: Options{NoValidate: true}}
	x := &target{name: "steps", param: &Param{Type: Int, Min: &low}}
	if err := c.checkConfig(x, Value{Text: "5", JSON: "5", Type: Int}); err != nil || len(c.Warnings) != 1 {
		t.Errorf("%v, warnings %q", err, c.Warnings)
	}
	if err := c.checkConfig(x, Value{Text: "a", Type: Str}); err == nil {
		t.Error("a text is no number")
	}
	x.param = &Param{Type: Enum, Choices: []string{"a", "b"}}
	if err := c.allow(x, "c"); err != nil || !strings.Contains(c.Warnings[1], `"c" is none of a, b`) {
		t.Errorf("%v, warnings %q", err, c.Warnings)
	}
	c.opts.NoValidate = false
	if err := c.allow(x, "c"); err == nil {
		t.Error("a choice is checked without the flag")
	}
}
