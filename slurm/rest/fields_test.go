package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// sample sets one field. Some are samples of one value of a field.
type sample struct {
	field, value string
	set          func(*slurm.Request, *slurm.Component)
}

// moment is a time for samples: with whole hours in every zone.
var moment = time.Date(2030, 1, 2, 20, 0, 0, 0, time.UTC)

var samples = []sample{
	{"Name", "", func(r *slurm.Request, _ *slurm.Component) { r.Name = "x" }},
	{"Comment", "", func(r *slurm.Request, _ *slurm.Component) { r.Comment = "x" }},
	{"WorkDir", "", func(r *slurm.Request, _ *slurm.Component) { r.WorkDir = "/x" }},
	{"Output", "", func(r *slurm.Request, _ *slurm.Component) { r.Output = "/x" }},
	{"Error", "", func(r *slurm.Request, _ *slurm.Component) { r.Error = "/x" }},
	{"Env", "", func(r *slurm.Request, _ *slurm.Component) { r.Env[0].Value = "/x" }},
	{"Begin", "", func(r *slurm.Request, _ *slurm.Component) { r.Begin = moment }},
	{"Deadline", "", func(r *slurm.Request, _ *slurm.Component) { r.Deadline = moment }},
	{"Dependency", "", func(r *slurm.Request, _ *slurm.Component) { r.Dependency = "afterok:7" }},
	{"Array", "", func(r *slurm.Request, _ *slurm.Component) { r.Array = "0-9%2" }},
	{"Requeue", "", func(r *slurm.Request, _ *slurm.Component) { r.Requeue = true }},
	{"Hold", "", func(r *slurm.Request, _ *slurm.Component) { r.Hold = true }},
	{"Nice", "", func(r *slurm.Request, _ *slurm.Component) { r.Nice = 5 }},
	{"Priority", "", func(r *slurm.Request, _ *slurm.Component) { r.Priority = 5 }},
	{"Signal", "to the steps", func(r *slurm.Request, _ *slurm.Component) {
		r.Signal = slurm.Signal{Name: "USR1", Before: time.Minute}
	}},
	{"Signal", "to the batch script alone", func(r *slurm.Request, _ *slurm.Component) {
		r.Signal = slurm.Signal{Name: "USR1", Before: time.Minute, BatchOnly: true}
	}},
	{"MailType", "", func(r *slurm.Request, _ *slurm.Component) { r.MailType = []string{"END", "TIME_LIMIT_80"} }},
	{"MailType", "ALL", func(r *slurm.Request, _ *slurm.Component) { r.MailType = []string{"ALL"} }},
	{"MailUser", "", func(r *slurm.Request, _ *slurm.Component) { r.MailUser = "x" }},
	{"WCKey", "", func(r *slurm.Request, _ *slurm.Component) { r.WCKey = "x" }},
	{"Extra", "", func(r *slurm.Request, _ *slurm.Component) { r.Extra = "x" }},
	{"Container", "", func(r *slurm.Request, _ *slurm.Component) { r.Container = "/x" }},
	{"Partition", "", func(_ *slurm.Request, c *slurm.Component) { c.Partition = "x" }},
	{"Account", "", func(_ *slurm.Request, c *slurm.Component) { c.Account = "x" }},
	{"QOS", "", func(_ *slurm.Request, c *slurm.Component) { c.QOS = "x" }},
	{"Reservation", "", func(_ *slurm.Request, c *slurm.Component) { c.Reservation = "x" }},
	{"Constraint", "", func(_ *slurm.Request, c *slurm.Component) { c.Constraint = "x" }},
	{"Prefer", "", func(_ *slurm.Request, c *slurm.Component) { c.Prefer = "x" }},
	{"Licenses", "", func(_ *slurm.Request, c *slurm.Component) { c.Licenses = "x:1" }},
	{"NodeList", "", func(_ *slurm.Request, c *slurm.Component) { c.NodeList = []string{"n1", "n2"} }},
	{"Exclude", "", func(_ *slurm.Request, c *slurm.Component) { c.Exclude = []string{"n1", "n2"} }},
	{"Nodes", "", func(_ *slurm.Request, c *slurm.Component) { c.Nodes = 2 }},
	{"TasksPerNode", "", func(_ *slurm.Request, c *slurm.Component) { c.TasksPerNode = 4 }},
	{"CPUsPerTask", "", func(_ *slurm.Request, c *slurm.Component) { c.CPUsPerTask = 4 }},
	{"Memory", "", func(_ *slurm.Request, c *slurm.Component) { c.Memory = 2048 }},
	{"Memory", "all of the node", func(_ *slurm.Request, c *slurm.Component) { c.Memory = slurm.WholeNode }},
	{"MemoryPerCPU", "", func(_ *slurm.Request, c *slurm.Component) { c.MemoryPerCPU = 2048 }},
	{"MemoryPerGPU", "", func(_ *slurm.Request, c *slurm.Component) {
		c.MemoryPerGPU, c.GRES = 2048, []slurm.GRES{{Name: "gpu", Count: 1}}
	}},
	{"GRES", "", func(_ *slurm.Request, c *slurm.Component) {
		c.GRES = []slurm.GRES{{Name: "gpu", Type: "h200", Count: 4}}
	}},
	{"GPUOption", "gpus-per-node", func(_ *slurm.Request, c *slurm.Component) {
		c.GPUOption, c.GRES = "gpus-per-node", []slurm.GRES{{Name: "gpu", Type: "h200", Count: 4}}
	}},
	{"TimeLimit", "", func(_ *slurm.Request, c *slurm.Component) { c.TimeLimit = 90 }},
	{"TimeLimit", "none", func(_ *slurm.Request, c *slurm.Component) { c.TimeLimit = slurm.Unlimited }},
	{"TimeMin", "", func(_ *slurm.Request, c *slurm.Component) { c.TimeMin = 30 }},
	{"Share", "exclusive", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.Exclusive }},
	{"Share", "user", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveUser }},
	{"Share", "mcs", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveMCS }},
	{"Share", "topo", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.ExclusiveTopo }},
	{"Share", "oversubscribe", func(_ *slurm.Request, c *slurm.Component) { c.Share = slurm.Oversubscribe }},
	{"Network", "", func(_ *slurm.Request, c *slurm.Component) { c.Network = "x" }},
	{"Switches", "", func(_ *slurm.Request, c *slurm.Component) { c.Switches = 2 }},
	{"SwitchWait", "", func(_ *slurm.Request, c *slurm.Component) { c.Switches, c.SwitchWait = 2, 90*time.Second }},
	{"Segment", "", func(_ *slurm.Request, c *slurm.Component) { c.Segment = 1 }},
}

// TestEveryFieldIsEncoded writes docs/slurm-fields.md from the table and from
// slurm.Request.Options, and fails when a field of the request has no sample,
// or one that changes nothing.
func TestEveryFieldIsEncoded(t *testing.T) {
	elsewhere := map[string]string{"Components": "they are the request", "Script": "a key beside the job"}
	for _, of := range []reflect.Type{reflect.TypeFor[slurm.Request](), reflect.TypeFor[slurm.Component]()} {
		for f := range of.Fields() {
			if elsewhere[f.Name] == "" && !slices.ContainsFunc(samples, func(s sample) bool { return s.field == f.Name }) {
				t.Errorf("%s.%s has no sample", of.Name(), f.Name)
			}
		}
	}
	var b strings.Builder
	b.WriteString(fieldsHead)
	for _, s := range samples {
		name := s.field
		if s.value != "" {
			name += ": " + s.value
		}
		cells := []string{name, options(s)}
		// From .41 on nothing changed.
		for _, d := range []dialect{38, 39, 40, 41} {
			cells = append(cells, said(t, s, d))
		}
		for d := dialect(42); d <= newest; d++ {
			if got := said(t, s, d); got != cells[5] {
				t.Errorf("%s: %s in %s, %s in %s", name, got, d, cells[5], dialect(41))
			}
		}
		for i := len(cells) - 1; i > 2; i-- {
			if cells[i] == cells[i-1] {
				cells[i] = "″"
			}
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	const path = "../../docs/slurm-fields.md"
	if update := os.Getenv("TP_UPDATE_FIELDS"); update != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != b.String() {
		t.Errorf("%s is not what the table says (%v): TP_UPDATE_FIELDS=1 go test ./slurm/rest -run EveryField", path, err)
	}
}

func base() *slurm.Request {
	return &slurm.Request{Script: "#!/bin/sh\n", WorkDir: "/", Env: []slurm.EnvVar{{Name: "PATH", Value: "/bin"}}, Components: []slurm.Component{{Nodes: 1}}}
}

// said is what a sample adds to the body in a dialect.
func said(t *testing.T, s sample, d dialect) string {
	body := func(change func(*slurm.Request, *slurm.Component)) (map[string]json.RawMessage, []string, error) {
		r := base()
		change(r, &r.Components[0])
		text, warnings, err := encode(r, d, "")
		var doc struct {
			Job map[string]json.RawMessage `json:"job"`
		}
		if err == nil {
			err = json.Unmarshal(text, &doc)
		}
		return doc.Job, warnings, err
	}
	plain, _, err := body(func(*slurm.Request, *slurm.Component) {})
	if err != nil {
		t.Fatal(err)
	}
	job, warnings, err := body(s.set)
	switch {
	case err != nil:
		if !strings.Contains(err.Error(), strings.TrimSuffix(s.field, "Wait")) || !strings.Contains(err.Error(), d.String()) || !strings.Contains(err.Error(), "Slurm ") {
			t.Errorf("%s in %s: the refusal does not name field, dialect and release: %v", s.field, d, err)
		}
		return "**refused**"
	case len(warnings) > 0:
		return "left out, with a warning"
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(job)) {
		if string(job[key]) != string(plain[key]) && key != "environment" || s.field == "Env" && key == "environment" {
			value := strings.NewReplacer(`{"set":true,"infinite":false,"number":`, "N(", `{"set":false,"infinite":true,"number":0}`, "N(infinite)", "}", ")").Replace(string(job[key]))
			if s.field == "Env" {
				value = string(job[key])[:1] + "…" + string(job[key])[len(job[key])-1:]
			}
			out = append(out, "`"+key+": "+value+"`")
		}
	}
	if len(out) == 0 {
		t.Errorf("%s %s says nothing in %s", s.field, s.value, d)
	}
	return strings.Join(out, " ")
}

// options are sbatch's for a sample.
func options(s sample) string {
	r := base()
	s.set(r, &r.Components[0])
	var out []string
	for _, o := range r.Options()[0] {
		if o.Field != s.field && !(s.field == "GPUOption" && o.Field == "GRES") && !(s.field == "SwitchWait" && o.Field == "Switches") || o.Name == "open-mode" {
			continue
		}
		text := "--" + o.Name
		if !o.Bare {
			text += "=" + o.Value
		}
		out = append(out, "`"+text+"`")
	}
	return strings.Join(out, " ")
}

// fieldsHead is the page above the table.
const fieldsHead = `# Fields of a job, by release

How each field of a job travels: as an option of sbatch (the ` + "`#SBATCH`" + ` lines of the batch script, and the command line) and
in the dialects of slurmrestd. **Refused** means that tp says so, naming field, dialect and release, before anything is sent:
slurmrestd would drop some of these in silence. ″ is "as on the left", N(5) is ` + "`" + `{"set":true,"infinite":false,"number":5}` + "`" + `.
v0.0.38 is spoken by Slurm 22.05 to 23.11, .39 by 23.02 to 24.05, .40 by 23.11 to 25.05, .41 and newer from 24.05 on.
Every row was tried on Slurm 22.05.8, 24.11.5 and 26.05.5 in each of their dialects, and read back; .39 has no server among
them. ` + "`--prefer`" + ` needs 22.05.4, ` + "`--extra`" + ` 23.02, ` + "`--segment`" + ` and ` + "`--exclusive=topo`" + ` 24.05.

What Slurm makes of it: ` + "`--priority`" + ` of who is no operator is ignored; the wait of ` + "`--switches`" + ` is at most the site's
` + "`max_switch_wait`" + ` (300 s by default). tp reads every job back and names what differs. Not told by slurmrestd, so never compared:
signal and environment anywhere; mail in .38; sharing in .45; the segment before .43.

This page is generated from the code: ` + "`TP_UPDATE_FIELDS=1 go test ./slurm/rest -run EveryField`" + `.

| field | sbatch | v0.0.38 | v0.0.39 | v0.0.40 | v0.0.41 to .45 |
|---|---|---|---|---|---|
`
