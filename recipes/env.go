package recipes

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

var (
	// posixName allows lower case: OpenMPI's OMPI_MCA_btl needs it.
	posixName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// bashOwn are variables that bash sets, refuses to set or obeys: exporting
	// one ends the script or changes how it reads itself.
	bashOwn = regexp.MustCompile(`^(_|IFS|UID|EUID|PPID|GROUPS|SHELLOPTS|BASH.*|POSIXLY_CORRECT|OPTIND|OPTARG|OPTERR|LINENO|FUNCNAME|DIRSTACK|PIPESTATUS|RANDOM|SECONDS|PS4|PROMPT_COMMAND)$`)
	// secretLike are names of values that should not be shown or stored.
	secretLike = regexp.MustCompile(`(?i)(^|_)(TOKEN|API_?KEY|SECRET|SECRET_KEY|ACCESS_KEY|PASSWORD|PASSWD|CREDENTIALS)$`)
)

func checkEnv(name, value string) error {
	switch {
	case !posixName.MatchString(name):
		return fmt.Errorf("%q is no variable name: letters, digits and _, no digit first", name)
	case strings.HasPrefix(name, "TP_"), strings.HasPrefix(name, "SLURM_"):
		return fmt.Errorf("%s belongs to tp or to Slurm; TP_ and SLURM_ names cannot be set", name)
	case bashOwn.MatchString(name):
		return fmt.Errorf("%s belongs to bash and cannot be set", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the value of %s has a NUL character, which no variable can hold", name)
	case !utf8.ValidString(value):
		return fmt.Errorf("the value of %s is not UTF-8", name)
	}
	return nil
}

// readEnv merges the variables once: --env, --env-file, job.toml, tp.toml, user
// file, site file. The result is sorted by name.
func (c *composer) readEnv() error {
	merged := map[string]spec.EnvVar{}
	add := func(v spec.EnvVar) {
		if _, ok := merged[v.Name]; !ok {
			merged[v.Name] = v
		}
	}
	flags := map[string]bool{}
	for _, text := range c.opts.Env {
		v, err := c.envFlag(text)
		if err != nil {
			return fault.New(fault.Usage, "--env: %w", err)
		}
		if flags[v.Name] {
			return fault.New(fault.Usage, "--env: %s is given twice", v.Name)
		}
		flags[v.Name] = true
		add(v)
	}
	for _, file := range slices.Backward(c.opts.EnvFiles) { // the last file wins
		vars, err := readEnvFile(file)
		if err != nil {
			return err
		}
		for _, v := range vars {
			add(v)
		}
	}
	for _, l := range c.layers {
		if l.file == nil {
			continue
		}
		for _, v := range l.file.Vars {
			if err := checkEnv(v.Name, v.Text); err != nil {
				return l.file.Errorf([]string{"env", v.Name}, "%w", err)
			}
			add(spec.EnvVar{Name: v.Name, Value: v.Text, Origin: v.Origin})
		}
		for _, name := range l.file.EnvFromCaller {
			value, ok := c.opts.LookupEnv(name)
			if err := checkEnv(name, value); err != nil {
				return l.file.Errorf([]string{"env_from_caller"}, "%w", err)
			}
			if _, set := merged[name]; !ok && !set && l.strict {
				c.warn(fmt.Sprintf("%s: %s is not set here, so the job goes without it", l.file.Origin("env_from_caller"), name))
			}
			if ok {
				add(spec.EnvVar{Name: name, Value: value, Origin: "caller, by " + l.file.Origin("env_from_caller")})
			}
		}
	}
	for name, value := range c.recipe.Env {
		add(spec.EnvVar{Name: name, Value: value, Origin: "recipe"})
	}
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		v := merged[name]
		c.spec.Env = append(c.spec.Env, v)
		c.note("env."+name, v.Value, v.Origin)
		if secretLike.MatchString(name) && v.Value != "" {
			c.warn(fmt.Sprintf("%s looks like a secret; the values of variables are shown in the preview and kept with the run", name))
		}
	}
	return nil
}

// envFlag reads NAME=VALUE, or NAME for the caller's value.
func (c *composer) envFlag(text string) (spec.EnvVar, error) {
	name, value, ok := strings.Cut(text, "=")
	v := spec.EnvVar{Name: name, Value: value, Origin: "--env"}
	if !ok {
		if v.Value, ok = c.opts.LookupEnv(name); !ok && posixName.MatchString(name) {
			return v, fmt.Errorf("%s has no value here; write %s=VALUE", name, name)
		}
		v.Origin = "caller, by --env"
	}
	return v, checkEnv(v.Name, v.Value)
}

// readEnvFile reads lines NAME=VALUE. The value is the rest of the line as it
// is: no quotes, no expansion. Empty lines and lines with # first are left out.
func readEnvFile(path string) ([]spec.EnvVar, error) {
	data, err := lab.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Usage, "--env-file: %w", err)
	}
	var vars []spec.EnvVar
	seen := map[string]int{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		err := checkEnv(name, value)
		if !ok {
			err = fmt.Errorf("expected NAME=VALUE")
		} else if first := seen[name]; err == nil && first > 0 {
			err = fmt.Errorf("%s is set in line %d already", name, first)
		}
		if err != nil {
			return nil, fault.New(fault.Usage, "%s:%d: %w", path, i+1, err)
		}
		seen[name] = i + 1
		vars = append(vars, spec.EnvVar{Name: name, Value: value, Origin: fmt.Sprintf("%s:%d", path, i+1)})
	}
	return vars, nil
}
