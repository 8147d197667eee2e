package site

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// merge lays the shared keys of a file over what is there: a key that is set
// wins, one that is not leaves the layer below.
func (c *Config) merge(o Options, f *tomlfile.File, data []byte, k Shared) error {
	if err := c.remember(f, data); err != nil {
		return err
	}
	for _, dir := range []struct {
		key, text string
		into      *string
	}{{"run_root", k.RunRoot, &c.RunRoot}, {"state_dir", k.StateDir, &c.StateDir}} {
		if dir.text == "" {
			continue
		}
		path, ok := expand(o, dir.text)
		if !ok {
			return f.Errorf([]string{dir.key}, "%q is no absolute path", dir.text)
		}
		*dir.into = path
	}
	set(&c.DefaultFleet, k.DefaultFleet)
	if err := c.objects(o, f, k.Objects); err != nil {
		return err
	}
	for _, name := range sorted(k.Fleets) {
		fleet, err := c.Fleets[name].overlay(o, f, name, k.Fleets[name])
		if err != nil {
			return err
		}
		c.Fleets[name] = fleet
		if keys, given := k.Fleets[name].job(); given {
			c.fleets[name] = append(c.fleets[name], Layer{f, []string{"fleets", name}, keys})
		}
	}
	if _, ok := f.Find("defaults"); ok {
		c.Defaults = append(c.Defaults, Layer{f, []string{"defaults"}, k.Defaults})
	}
	return nil
}

// policy takes the keys that only the site file has.
func (c *Config) policy(o Options, f *tomlfile.File, k siteKeys) error {
	var err error
	if k.PlanTTL != "" {
		if c.PlanTTL, err = duration(f, []string{"plan_ttl"}, k.PlanTTL, time.Minute, 7*24*time.Hour); err != nil {
			return err
		}
	}
	if _, ok := f.Find("poll_seconds"); ok {
		if k.PollSeconds < minPoll || k.PollSeconds > 3600 {
			return f.Errorf([]string{"poll_seconds"}, "%d is not between %d and 3600", k.PollSeconds, minPoll)
		}
		c.Poll = time.Duration(k.PollSeconds) * time.Second
	}
	if err := c.requests(f, k.Requests); err != nil {
		return err
	}
	for _, key := range f.Keys() { // in the order of the file
		if len(key.Path) == 2 && key.Path[0] == "series" {
			s, err := newSeries(f, key.Path[1], k.Series[key.Path[1]], c.Requests)
			if err != nil {
				return err
			}
			c.Series = append(c.Series, s)
		}
	}
	if err := checkAliases(f, c.Series); err != nil {
		return err
	}
	if c.Recipes = k.Recipes; c.Recipes != "" && !filepath.IsAbs(c.Recipes) {
		return f.Errorf([]string{"recipes"}, "%q is no absolute path", c.Recipes)
	}
	if err := c.software(o, f, k); err != nil {
		return err
	}
	for _, name := range k.Environment.Pass {
		if !isVariable(name) {
			return f.Errorf([]string{"environment", "pass"}, "%q is no name of a variable", name)
		}
	}
	c.Environment = Environment{Pass: k.Environment.Pass, GetUserEnv: k.Environment.GetUserEnv}
	c.Network = Network(k.Network)
	return oneOf(f, []string{"network", "family"}, c.Network.Family, "ipv4", "ipv6")
}

// check looks at what only both files together can tell.
func (c *Config) check() error {
	if c.DefaultFleet != "" && len(c.Fleets) > 0 {
		if _, ok := c.Fleets[c.DefaultFleet]; !ok {
			return fault.New(fault.Usage, "%s: default_fleet %q is no fleet; known: %s", c.Origin("default_fleet"), c.DefaultFleet, strings.Join(sorted(c.Fleets), ", "))
		}
	}
	switch o := c.Objects; {
	case o.Kind == "dir" && o.Path == "":
		return fault.New(fault.Usage, "%s: objects of kind dir need a path", c.Origin("objects.kind"))
	case o.Kind == "s3" && (o.Endpoint == "" || o.Bucket == ""):
		return fault.New(fault.Usage, "%s: objects of kind s3 need an endpoint and a bucket", c.Origin("objects.kind"))
	}
	return nil
}

func duration(f *tomlfile.File, key []string, text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return 0, f.Errorf(key, "%q: expected a duration from %v to %v, such as 30m", text, least, most)
	}
	return d, nil
}

func checkTime(f *tomlfile.File, key []string, text string) error {
	if text == "" {
		return nil
	}
	if _, err := spec.ParseTime(text); err != nil {
		return f.Errorf(key, "%w", err)
	}
	return nil
}

func oneOf(f *tomlfile.File, key []string, text string, valid ...string) error {
	if text == "" || slices.Contains(valid, text) {
		return nil
	}
	return f.Errorf(key, "%q: expected %s", text, strings.Join(valid, " or "))
}

func isVariable(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// set overrides what a lower layer said, if anything is said.
func set(into *string, text string) {
	if text != "" {
		*into = text
	}
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
