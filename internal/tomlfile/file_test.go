package tomlfile

import (
	"slices"
	"testing"
)

type inner struct {
	Max int `toml:"max"`
}

type sample struct {
	Time    any               `toml:"time"`
	Tags    []string          `toml:"tags"`
	Requeue bool              `toml:"requeue"`
	Restart inner             `toml:"restart"`
	Env     map[string]string `toml:"env"`
	Params  map[string]inner  `toml:"params"`
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"requeue = true\n  tiem = '4h'\n", `job.toml:2:3: unknown key "tiem"; did you mean "time"?`},
		{"[restart]\nmax = 1\nmx = 2\n", `job.toml:3:1: unknown key "restart.mx"; did you mean "max"?`},
		{"[restrat]\nmax = 1\n[restrat.b]\nc=1\n", `job.toml:1:2: unknown key "restrat"; did you mean "restart"?`},
		{"a.b = 1\nxyzzy = 2\n", "job.toml:1:1: unknown key \"a\"; known: env, params, requeue, restart, tags, time\njob.toml:2:1: unknown key \"xyzzy\"; known: env, params, requeue, restart, tags, time"},
		{"[params.lr]\nmin = 1\n", `job.toml:2:1: unknown key "params.lr.min"; did you mean "max"?`},
		{"requeue = 'yes'\n", `job.toml:1:11: requeue: expected true or false, found a string`},
		{"tags = 'a'\n", `job.toml:1:8: tags: expected a list of strings, found a string`},
		{"[restart]\nmax = 'a'\n", `job.toml:2:7: restart.max: expected an integer, found a string`},
		{"time = \n", `job.toml:1:8: unexpected character U+000A at start of value`},
		{"time = 1\ntime = 2\n", `job.toml:2:1: key time is already defined`},
	} {
		f, err := Parse("job.toml", []byte(c.text))
		if err == nil {
			err = f.Decode(&sample{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got  %v\n want %s", c.text, err, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	f, err := Parse("job.toml", []byte("time = {train = '4h', \"a b\" = 1}\n[params]\nlr = 1e-5\nopt.x = true\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   []string
		origin string
		raw    string
	}{
		{[]string{"time"}, "job.toml:1", ""},
		{[]string{"time", "a b"}, "job.toml:1", "1"},
		{[]string{"params", "lr"}, "job.toml:3", "1e-5"},
		{[]string{"params", "opt", "x"}, "job.toml:4", "true"},
		{[]string{"nothing"}, "job.toml", ""},
	} {
		k, _ := f.Find(c.path...)
		if f.Origin(c.path...) != c.origin || k.Raw != c.raw {
			t.Errorf("%q: %s %q, want %s %q", c.path, f.Origin(c.path...), k.Raw, c.origin, c.raw)
		}
	}
	var names []string
	for _, k := range f.Keys() {
		names = append(names, k.Path[len(k.Path)-1])
	}
	if want := []string{"time", "train", "a b", "params", "lr", "opt", "x"}; !slices.Equal(names, want) {
		t.Errorf("keys %q, want %q", names, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a = 1\n[b.c]\nd = {e = [1, {f = 2}]}\n[[g]]\nh='''x'''\n"))
	f.Add([]byte("\"\" = 1\n'a.b'.c = 1979-05-27"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if err != nil {
			return
		}
		_ = file.Decode(&sample{})
		for _, k := range file.Keys() {
			if k.Line < 1 || k.Col < 1 {
				t.Fatalf("key %q at %d:%d", k.Path, k.Line, k.Col)
			}
		}
	})
}
