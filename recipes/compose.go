package recipes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

// composer holds one call of Compose.
type composer struct {
	Composition
	opts    Options
	lab     *lab.Lab
	exp     *lab.Experiment
	recipe  *Recipe
	version string // of the framework, as the recipe knows it
	layers  []layer
	roles   []string
	poolOf  map[string]string // role to profile, as written
	inputs  map[string]input
	targets *targets
	parents []string // of config.yaml
	spec    *spec.Spec
}

// layer is a file of settings below the flags. A strict one belongs to the
// experiment, so that what does not fit is an error; shared defaults may speak
// of other recipes.
type layer struct {
	file   *lab.JobFile
	strict bool
}

// Compose makes the spec of an experiment. Precedence: flag, job.toml, tp.toml,
// user file, site file; what each value comes from is in Settings. It reads
// files of the lab and executes nothing.
func Compose(l *lab.Lab, e *lab.Experiment, o Options) (*spec.Spec, *Composition, error) {
	c := &composer{opts: o.withDefaults(), lab: l, exp: e, spec: &spec.Spec{Experiment: e.Name, Dirs: l.PackedDirs(e)}}
	c.layers = []layer{{e.Job, true}, {l.Defaults, false}}
	for _, file := range c.opts.Defaults {
		c.layers = append(c.layers, layer{file, false})
	}
	if err := c.readLock(); err != nil {
		return nil, nil, err
	}
	if err := c.readRoles(); err != nil {
		return nil, nil, err
	}
	steps := []func() error{c.readProfiles, func() error { return c.readTexts(l) }, c.readInputs}
	for _, key := range c.perRoleKeys() {
		steps = append(steps, func() error { return c.readPerRole(key) })
	}
	var wrong problems
	for _, step := range append(steps, c.readSlurm, c.readEnv, c.readParams) {
		wrong.add(step())
	}
	if err := wrong.err(); err != nil {
		return nil, nil, err
	}
	return c.spec, &c.Composition, nil
}

func (c *composer) note(key, value, origin string) {
	c.Settings = append(c.Settings, Setting{key, value, origin})
}

func (c *composer) warn(text string) { c.Warnings = append(c.Warnings, text) }

func (c *composer) readLock() (err error) {
	if c.Lock = c.opts.Lock; c.Lock == nil {
		if c.Lock, err = ReadLock(c.exp); err != nil {
			return err
		}
	}
	c.recipe, c.State, c.Reasons, err = c.opts.Catalog.resolve(c.exp.Name, c.Lock)
	if err != nil {
		return err
	}
	c.Recipe = c.recipe
	c.version = c.recipe.Framework.nearest(c.Lock.Framework.Version)
	if c.State == Foreign {
		c.warn("foreign lock: " + strings.Join(c.Reasons, "; "))
		if v := c.Lock.Framework.Version; v != c.version && c.recipe.Keys != nil {
			c.warn(fmt.Sprintf("%s %s is none of the versions that %s was checked against (%s); it is taken for %s", c.recipe.Framework.Kind, v, c.recipe.Name, strings.Join(c.recipe.Framework.Versions, ", "), c.version))
		}
	}
	c.spec.Framework = c.Lock.Framework
	c.spec.Recipe = spec.Recipe{Name: c.Lock.Recipe.Name, Version: c.Lock.Recipe.Version, Digest: c.Lock.Recipe.Digest, Foreign: c.State == Foreign}
	return nil
}

// readTexts reads the settings that are one text or one list for the job.
func (c *composer) readTexts(l *lab.Lab) error {
	s := c.spec
	s.Name, s.Project = c.exp.Name, l.Name
	if c.opts.Name != "" {
		s.Name = c.opts.Name
	}
	if err := lab.CheckName(s.Name); err != nil {
		return fault.New(fault.Usage, "--name %q: %w", s.Name, err)
	}
	origin := l.Marker
	if c.opts.Project != "" {
		s.Project, origin = c.opts.Project, "--project"
		if err := lab.CheckName(s.Project); err != nil {
			return fault.New(fault.Usage, "--project %q: %w", s.Project, err)
		}
	}
	if s.Project != "" {
		c.note("project", s.Project, origin)
	}
	s.Description = c.text("description", c.opts.Description, func(j *lab.JobFile) string { return j.Description })
	if err := c.readContainer(); err != nil {
		return err
	}
	s.Tags = c.list("tags", c.opts.Tags, func(j *lab.JobFile) []string { return j.Tags })
	for _, tag := range s.Tags {
		if err := checkText(tag); err != nil {
			return fault.New(fault.Usage, "tag %q: %w", tag, err)
		}
	}
	s.Exclude = c.list("exclude", c.opts.Exclude, func(j *lab.JobFile) []string { return j.Exclude })
	s.Job.Prolog = c.list("prolog", c.opts.Prolog, func(j *lab.JobFile) []string { return j.Prolog })
	if i := slices.IndexFunc(s.Job.Prolog, func(line string) bool { return strings.ContainsRune(line, 0) }); i >= 0 {
		return fault.New(fault.Usage, "prolog line %d has a NUL character", i+1)
	}
	c.readRequeue()
	return nil
}

func (c *composer) readRequeue() {
	if c.opts.Requeue != nil {
		c.spec.Job.Requeue = *c.opts.Requeue
		c.note("requeue", strconv.FormatBool(*c.opts.Requeue), "--requeue")
		return
	}
	for _, l := range c.layers {
		if l.file != nil && l.file.Requeue != nil {
			c.spec.Job.Requeue = *l.file.Requeue
			c.note("requeue", strconv.FormatBool(*l.file.Requeue), l.file.Origin("requeue"))
			return
		}
	}
}

// text is the flag, else the value of the highest layer that has one.
func (c *composer) text(key, flag string, of func(*lab.JobFile) string) string {
	if flag != "" {
		c.note(key, flag, "--"+strings.ReplaceAll(key, "_", "-"))
		return flag
	}
	for _, l := range c.layers {
		if l.file != nil && of(l.file) != "" {
			c.note(key, of(l.file), l.file.Origin(key))
			return of(l.file)
		}
	}
	return ""
}

// list is the highest layer's list as a whole; lists are not joined, so that a
// higher layer can also take something away.
func (c *composer) list(key string, flag []string, of func(*lab.JobFile) []string) []string {
	if len(flag) > 0 {
		c.note(key, strings.Join(flag, ", "), "--"+strings.ReplaceAll(strings.TrimSuffix(key, "s"), "_", "-"))
		return flag
	}
	for _, l := range c.layers {
		if l.file != nil && of(l.file) != nil {
			c.note(key, strings.Join(of(l.file), ", "), l.file.Origin(key))
			return of(l.file)
		}
	}
	return nil
}
