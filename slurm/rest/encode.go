package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
)

// part is what an encoder looks at: one component of a request in a dialect.
type part struct {
	*slurm.Component
	r     *slurm.Request
	index int
	d     dialect
	host  string
}

// lost is a value that the dialect cannot express and that the job can do
// without: it becomes a warning with this text.
type lost string

// refused is a value that the dialect cannot express and that the job needs.
type refused string

type scope int

const (
	every  scope = iota // REST propagates nothing: all components repeat it
	leader              // component 0 only
)

// row says how one field of slurm.Request travels: under which key and as
// which value in v0.0.38 (sbatch's option names) and in v0.0.39 and later
// (job_desc_msg). No function means that this row is not for that language,
// and one without a key that the language lacks the field; a nil value is left
// out, for null is read as 0.
type row struct {
	field string
	scope scope
	key38 string
	val38 func(part) any
	key   string
	val   func(part) any
}

func same(field string, s scope, key string, val func(part) any) row {
	return row{field, s, key, val, key, val}
}

// table holds every field, as docs/slurm-fields.md shows it by release. A field
// whose language lacks it returns lost or refused there. GPUOption has no row:
// over REST, gres and gpus-per-node become the same tres_per_node.
var table = []row{
	same("Name", every, "name", func(p part) any { return word(p.r.Name) }),
	same("Comment", every, "comment", func(p part) any { return word(p.r.Comment) }),
	same("WorkDir", every, "current_working_directory", func(p part) any { return word(p.r.WorkDir) }),
	same("Output", every, "standard_output", func(p part) any { return word(p.r.Output) }),
	same("Error", every, "standard_error", func(p part) any { return word(p.r.Error) }),
	same("Array", every, "array", func(p part) any { return word(p.r.Array) }),
	same("WCKey", every, "wckey", func(p part) any { return word(p.r.WCKey) }),
	same("Container", every, "container", func(p part) any { return word(p.r.Container) }),
	same("Dependency", every, "dependency", func(p part) any { return word(p.r.Dependency) }),
	same("Hold", every, "hold", func(p part) any { return flag(p.r.Hold) }),
	same("Nice", every, "nice", func(p part) any { return number(p.r.Nice) }),
	same("MailUser", leader, "mail_user", func(p part) any { return word(p.r.MailUser) }),
	same("Partition", every, "partition", func(p part) any { return word(p.Partition) }),
	same("Account", every, "account", func(p part) any { return word(p.Account) }),
	same("QOS", every, "qos", func(p part) any { return word(p.QOS) }),
	same("Reservation", every, "reservation", func(p part) any { return word(p.Reservation) }),
	same("Constraint", every, "constraints", func(p part) any { return word(p.Constraint) }),
	same("Prefer", every, "prefer", func(p part) any { return word(p.Prefer) }),
	same("Licenses", leader, "licenses", func(p part) any { return word(p.Licenses) }),
	same("TasksPerNode", every, "tasks_per_node", func(p part) any { return max(1, p.TasksPerNode) }),
	same("TasksPerNode", every, "tasks", func(p part) any { return p.Tasks() }),
	same("CPUsPerTask", every, "cpus_per_task", func(p part) any { return number(p.CPUsPerTask) }),

	{"Env", every, "environment", env38, "environment", envList},
	{"Dependency", every, "kill_on_invalid_dependency", killInvalid38, "flags", killInvalid},
	{"Deadline", every, "deadline", func(p part) any { return uts(p.r.Deadline) }, "deadline", deadline},
	{"Priority", every, "priority", func(p part) any { return number(p.r.Priority) }, "priority", func(p part) any { return set(int64(p.r.Priority)) }},
	{"Extra", every, "", func(p part) any { return lacks(p.r.Extra != "") }, "extra", func(p part) any { return word(p.r.Extra) }},
	{"Begin", every, "begin_time", func(p part) any { return uts(p.r.Begin) }, "begin_time", begin},
	{"Requeue", every, "no_requeue", noRequeue38, "requeue", func(p part) any { return p.r.Requeue }},
	{"Requeue", every, "requeue", requeue38, "", nil},
	// A requeued job must not truncate the log of its first life.
	{"Output", every, "open_mode", func(part) any { return "append" }, "open_mode", func(part) any { return []string{"APPEND"} }},
	{"Signal", every, "signal", signal38, "kill_warning_signal", func(p part) any { return word(p.r.Signal.Name) }},
	{"Signal", every, "", nil, "kill_warning_delay", signalDelay},
	{"Signal", every, "", nil, "kill_warning_flags", signalFlags},
	{"MailType", leader, "mail_type", mail38, "mail_type", mail},
	{"NodeList", every, "nodelist", func(p part) any { return joined(p.NodeList) }, "required_nodes", func(p part) any { return list(p.NodeList) }},
	{"Exclude", every, "exclude_nodes", func(p part) any { return joined(p.Exclude) }, "excluded_nodes", func(p part) any { return list(p.Exclude) }},
	{"Nodes", every, "nodes", func(p part) any { return []int{p.Nodes, p.Nodes} }, "minimum_nodes", func(p part) any { return p.Nodes }},
	{"Nodes", every, "", nil, "maximum_nodes", func(p part) any { return p.Nodes }},
	{"Memory", every, "memory_per_node", memory38, "memory_per_node", memory},
	{"MemoryPerCPU", every, "memory_per_cpu", func(p part) any { return number(int(p.MemoryPerCPU)) }, "memory_per_cpu", memoryPerCPU},
	{"MemoryPerGPU", every, "memory_per_gpu", func(p part) any { return number(int(p.MemoryPerGPU)) }, "memory_per_tres", memoryPerGPU},
	{"GRES", every, "gres", gres38, "tres_per_node", tresPerNode},
	{"TimeLimit", every, "time_limit", limit38, "time_limit", limit},
	{"TimeMin", every, "time_minimum", func(p part) any { return number(int(p.TimeMin)) }, "time_minimum", func(p part) any { return set(int64(p.TimeMin)) }},
	{"Share", every, "exclusive", exclusive38, "shared", shared},
	{"Share", every, "oversubscribe", func(p part) any { return flag(p.Share == slurm.Oversubscribe) }, "", nil},
	{"Network", every, "", func(p part) any { return lacks(p.Network != "") }, "network", func(p part) any { return word(p.Network) }},
	{"Switches", every, "", func(p part) any { return lacks(p.Switches > 0) }, "required_switches", func(p part) any { return set(int64(p.Switches)) }},
	{"SwitchWait", every, "", func(p part) any { return lacks(p.SwitchWait > 0) }, "wait_for_switch", func(p part) any { return number(seconds(p.SwitchWait)) }},
	{"Segment", every, "", func(p part) any { return lacks(p.Segment > 0) }, "segment_size", segment},
}

// encode makes the body of POST /job/submit. Warnings name what the dialect
// cannot carry.
func encode(r *slurm.Request, d dialect, host string) (body []byte, warnings []string, err error) {
	if err := r.Validate(); err != nil {
		return nil, nil, err
	}
	if err := textual(r); err != nil {
		return nil, nil, err
	}
	jobs := make([]map[string]any, len(r.Components))
	for i := range r.Components {
		p := part{Component: &r.Components[i], r: r, index: i, d: d, host: host}
		jobs[i] = map[string]any{}
		for _, row := range table {
			if row.scope == leader && i > 0 {
				continue
			}
			key, val := row.key, row.val
			if d == 38 {
				key, val = row.key38, row.val38
			}
			if val == nil {
				continue
			}
			switch v := val(p).(type) {
			case nil:
			case lost:
				if note := fmt.Sprintf("%s: %s (%s, %s)", row.field, v, d, d.serves()); !slices.Contains(warnings, note) {
					warnings = append(warnings, note)
				}
			case refused:
				return nil, nil, fmt.Errorf("component %d: %s: %s (%s, %s)", i, row.field, v, d, d.serves())
			default:
				jobs[i][key] = v
			}
		}
	}
	// The script stands at top level: v0.0.38 and 23.11.0–.4 know no other
	// place, and every later release honours it.
	doc := map[string]any{"script": r.Script}
	if len(jobs) == 1 {
		doc["job"] = jobs[0] // "jobs" with one entry would be a het job of one
	} else {
		doc["jobs"] = jobs
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(doc)
	return b.Bytes(), warnings, err
}

// textual refuses bytes that encoding/json would replace in silence.
func textual(r *slurm.Request) error {
	if !utf8.ValidString(r.Script) {
		return errors.New("the batch script is not valid UTF-8, which JSON cannot carry")
	}
	for _, v := range r.Env {
		if !utf8.ValidString(v.Value) {
			return fmt.Errorf("environment variable %s is not valid UTF-8, which JSON cannot carry", v.Name)
		}
	}
	return nil
}

// lacks is the value of a field that a language has no key for.
func lacks(wanted bool) any {
	if !wanted {
		return nil
	}
	return refused("this version of slurmrestd's language has no such field")
}

func word(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func flag(b bool) any {
	if !b {
		return nil
	}
	return true
}

func list(items []string) any {
	if len(items) == 0 {
		return nil
	}
	return items
}
