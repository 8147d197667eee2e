package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// JobFile is a job.toml, or a [defaults] table: values as written and, for
// each, where it stands. A nil JobFile has no values.
type JobFile struct {
	spec.JobKeys
	PerRole map[string]spec.PerRole // "time", "cpus_per_node", "mem", "account", …
	Vars    []Var                   // env, in the order of the file
	Values  []Var                   // params, nested tables as dotted names, in the order of the file

	file   *tomlfile.File
	prefix []string
}

// Var is a name with a text and its place.
type Var struct{ Name, Text, Origin string }

// ReadJobFile reads a job.toml. A file that does not exist is an empty one.
// Shown is the name in messages and origins.
func ReadJobFile(path, shown string) (*JobFile, error) {
	data, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ParseJob(shown, data)
}

// ParseJob reads the text of a job.toml and refuses what a lab may not decide.
func ParseJob(shown string, data []byte) (*JobFile, error) {
	f, err := tomlfile.Parse(shown, data)
	if err != nil {
		return nil, err
	}
	if err := refuse(f); err != nil {
		return nil, err
	}
	var keys spec.JobKeys
	if err := f.Decode(&keys); err != nil {
		return nil, err
	}
	return NewJobFile(f, nil, keys)
}

// NewJobFile types the keys that f holds under prefix. The user file and the
// site file use it for their own [defaults].
func NewJobFile(f *tomlfile.File, prefix []string, keys spec.JobKeys) (*JobFile, error) {
	j := &JobFile{JobKeys: keys, PerRole: map[string]spec.PerRole{}, file: f, prefix: prefix}
	for name, value := range map[string]any{
		"time": keys.Time, "cpus_per_node": keys.CPUsPerNode, "mem": keys.Memory, "account": keys.Account,
		"partition": keys.Partition, "qos": keys.QOS, "reservation": keys.Reservation, "constraint": keys.Constraint,
		"mem_per_cpu": keys.MemPerCPU, "mem_per_gpu": keys.MemPerGPU, "time_min": keys.TimeMin, "prefer": keys.Prefer,
		"nodelist": keys.NodeList, "exclude_nodes": keys.ExcludeNodes, "exclusive": keys.Exclusive, "switches": keys.Switches,
		"segment": keys.Segment, "network": keys.Network,
	} {
		if value == nil {
			continue
		}
		per, err := j.perRole(name, value)
		if err != nil {
			return nil, err
		}
		j.PerRole[name] = per
	}
	for name := range keys.Env {
		if err := j.scalarOnly("env", name, keys.Env[name]); err != nil {
			return nil, err
		}
	}
	var err error
	if j.Vars, err = j.vars("env", keys.Env); err != nil {
		return nil, err
	}
	j.Values, err = j.vars("params", keys.Params)
	return j, err
}

// Origin is where a key stands: "job.toml:7".
func (j *JobFile) Origin(key ...string) string {
	return j.file.Origin(j.path(key)...)
}

// Errorf is a usage error at the place of a key.
func (j *JobFile) Errorf(key []string, format string, args ...any) error {
	return j.file.Errorf(j.path(key), format, args...)
}

func (j *JobFile) path(key []string) []string {
	return append(append([]string(nil), j.prefix...), key...)
}

func (j *JobFile) perRole(name string, value any) (spec.PerRole, error) {
	table, ok := value.(map[string]any)
	if !ok {
		text, ok := j.text([]string{name}, value)
		if !ok {
			return nil, j.Errorf([]string{name}, "expected a text, or a table of texts by role")
		}
		return spec.PerRole{"": text}, nil
	}
	per := spec.PerRole{}
	for role, v := range table {
		text, ok := j.text([]string{name, role}, v)
		if !ok {
			return nil, j.Errorf([]string{name, role}, "expected a text")
		}
		per[role] = text
	}
	return per, nil
}

func (j *JobFile) scalarOnly(table, name string, value any) error {
	if _, ok := j.text([]string{table, name}, value); !ok {
		return j.Errorf([]string{table, name}, "expected a text or a number")
	}
	return nil
}

// text is a scalar as typed: 1e-5 stays 1e-5.
func (j *JobFile) text(key []string, value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []any, map[string]any:
		return "", false
	default:
		if k, ok := j.file.Find(j.path(key)...); ok && k.Raw != "" {
			return k.Raw, true
		}
		return fmt.Sprint(v), true
	}
}

// vars flattens a table in the order of the file; lists become JSON.
func (j *JobFile) vars(name string, table map[string]any) ([]Var, error) {
	var vars []Var
	depth := len(j.prefix) + 1
	for _, key := range j.file.Keys() {
		if key.Table || len(key.Path) <= depth || !hasPrefix(key.Path, j.path([]string{name})) {
			continue
		}
		rest := key.Path[depth:]
		var value any = table
		for _, segment := range rest {
			at, ok := value.(map[string]any)
			if !ok {
				return nil, j.Errorf([]string{name, rest[0]}, "lists of tables are not read here")
			}
			value = at[segment]
		}
		text, ok := j.text(append([]string{name}, rest...), value)
		if !ok {
			list, _ := json.Marshal(value)
			text = string(list)
		}
		vars = append(vars, Var{strings.Join(rest, "."), text, j.Origin(append([]string{name}, rest...)...)})
	}
	return vars, nil
}

func hasPrefix(path, prefix []string) bool {
	if len(path) < len(prefix) {
		return false
	}
	for i := range prefix {
		if path[i] != prefix[i] {
			return false
		}
	}
	return true
}
