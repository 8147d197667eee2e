package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Difference is one field that a job does not have as its request says.
type Difference struct {
	Component int
	Field     string // of Request or Component
	Want, Got string
}

func (d Difference) String() string {
	return fmt.Sprintf("component %d: %s was shown as %s, the job has %s", d.Component, fieldWords[d.Field], d.Want, d.Got)
}

// fieldWords are fields in the words of the preview.
var fieldWords = map[string]string{
	"Components": "number of components", "Name": "name", "Comment": "comment", "WorkDir": "work directory", "Output": "output", "Error": "error file",
	"Begin": "begin", "Deadline": "deadline", "Dependency": "dependency", "Requeue": "requeue", "Hold": "hold", "Nice": "nice",
	"Priority": "priority", "MailType": "mail type", "MailUser": "mail user", "WCKey": "wckey", "Extra": "extra", "Container": "container",
	"Partition": "partition", "Account": "account", "QOS": "QOS", "Reservation": "reservation", "Constraint": "constraint",
	"Prefer": "preferred features", "Licenses": "licences", "NodeList": "node list", "Exclude": "excluded nodes", "Nodes": "nodes",
	"TasksPerNode": "tasks", "CPUsPerTask": "CPUs per task", "Memory": "memory per node", "MemoryPerCPU": "memory per CPU",
	"MemoryPerGPU": "memory per GPU", "GRES": "GRES per node", "TimeLimit": "time limit", "TimeMin": "least time limit",
	"Share": "sharing", "Network": "network", "Switches": "switches", "SwitchWait": "wait for switches", "Segment": "segment",
}

// Compare holds a job, all its components, as Slurm reports it soon after
// submission, against its request. A field that was left to Slurm does not
// differ, nor does one that the source of the answer does not tell.
func Compare(r *Request, jobs []Job) []Difference {
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b Job) int { return a.HetOffset - b.HetOffset })
	if len(jobs) != len(r.Components) {
		return []Difference{{0, "Components", fmt.Sprint(len(r.Components)), fmt.Sprint(len(jobs))}}
	}
	var out []Difference
	for i := range jobs {
		c := comparison{index: i, job: &jobs[i]}
		c.ofRequest(r)
		c.ofComponent(&r.Components[i])
		out = append(out, c.found...)
	}
	return out
}

type comparison struct {
	index int
	job   *Job
	found []Difference
}

func (c *comparison) differ(field string, want, got any) {
	if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g && c.job.Tells(field) {
		w, g = cmp.Or(w, "none"), cmp.Or(g, "none")
		c.found = append(c.found, Difference{c.index, field, w, g})
	}
}

// given is differ for what may be left to Slurm.
func (c *comparison) given(field string, want, got any) {
	switch fmt.Sprint(want) {
	case "", "0", "0s":
	default:
		c.differ(field, want, got)
	}
}

func (c *comparison) ofRequest(r *Request) {
	j := c.job
	pending := j.State == Pending
	c.differ("Name", r.Name, j.Name)
	if c.index > 0 {
		return // the leader's are the job's
	}
	c.given("WorkDir", r.WorkDir, j.WorkDir)
	c.given("Comment", r.Comment, j.Comment)
	c.differ("Requeue", r.Requeue, j.Requeue)
	c.given("Output", expand(r.Output, r, j), expand(j.Output, r, j))
	c.given("Error", expand(r.Error, r, j), expand(j.Error, r, j))
	if !r.Begin.IsZero() && pending && !j.Eligible.IsZero() && j.Eligible.Before(r.Begin.Truncate(1e9)) {
		c.differ("Begin", r.Begin.UTC(), j.Eligible.UTC())
	}
	if !r.Deadline.IsZero() && r.Deadline.Unix() != j.Deadline.Unix() {
		c.differ("Deadline", r.Deadline.UTC(), j.Deadline.UTC())
	}
	if r.Dependency != "" && j.Dependency != "" && !j.KillInvalid {
		c.differ("Dependency", r.Dependency+", cancelled once it can never be met", j.Dependency+", kept in the queue for ever")
	}
	if r.Hold && pending {
		c.differ("Hold", true, j.Priority == 0)
	}
	c.given("Nice", r.Nice, j.Nice)
	c.given("Priority", r.Priority, j.Priority)
	c.given("MailType", mailSet(r.MailType), mailSet(j.MailType))
	c.given("MailUser", r.MailUser, j.MailUser)
	c.given("WCKey", r.WCKey, strings.TrimPrefix(j.WCKey, "*"))
	c.given("Extra", r.Extra, j.Extra)
	c.given("Container", r.Container, j.Container)
}

func (c *comparison) ofComponent(want *Component) {
	j := c.job
	c.differ("Partition", want.Partition, j.Partition)
	c.differ("Nodes", want.Nodes, j.Nodes)
	c.differ("TasksPerNode", want.Tasks(), j.Tasks)
	if want.TimeMin == 0 || j.TimeLimit < want.TimeMin || j.TimeLimit > want.TimeLimit {
		c.differ("TimeLimit", want.TimeLimit, j.TimeLimit)
	}
	c.differ("GRES", gresText(want.GRES), gresText(j.GRES))
	if j.CPUsPerTask > 0 {
		c.given("CPUsPerTask", want.CPUsPerTask, j.CPUsPerTask)
	} else if want.CPUsPerTask > 0 && j.CPUs < want.CPUsPerTask*want.Tasks() { // whole cores may be more
		c.differ("CPUsPerTask", want.CPUsPerTask, fmt.Sprintf("%d on %d tasks", j.CPUs, want.Tasks()))
	}
	c.given("Memory", memoryText(want.Memory), memoryText(j.Memory))
	c.given("MemoryPerCPU", memoryText(want.MemoryPerCPU), memoryText(j.MemoryPerCPU))
	c.given("MemoryPerGPU", memoryText(want.MemoryPerGPU), memoryText(j.MemoryPerGPU))
	c.given("Account", want.Account, j.Account)
	c.given("QOS", want.QOS, j.QOS)
	c.given("Reservation", want.Reservation, j.Reservation)
	c.given("Constraint", want.Constraint, j.Constraint)
	c.given("Prefer", want.Prefer, j.Prefer)
	c.given("Licenses", licenceSet(want.Licenses), licenceSet(j.Licenses))
	c.given("NodeList", nodeSet(strings.Join(want.NodeList, ",")), nodeSet(j.Required))
	// Slurm excludes the nodes that other components name.
	if have := nodeSet(j.Excluded); slices.ContainsFunc(nodeSet(strings.Join(want.Exclude, ",")), func(n string) bool { return !slices.Contains(have, n) }) {
		c.differ("Exclude", strings.Join(want.Exclude, ","), j.Excluded)
	}
	c.given("TimeMin", want.TimeMin, j.TimeMin)
	c.given("Share", want.Share, j.Share)
	c.given("Network", want.Network, j.Network)
	c.given("Switches", want.Switches, j.Switches)
	c.given("SwitchWait", want.SwitchWait, j.SwitchWait)
	c.given("Segment", want.Segment, j.Segment)
}

// expand fills in what some releases show as a pattern and some as a path.
func expand(pattern string, r *Request, j *Job) string {
	id := j.Leader().String()
	return strings.NewReplacer("%%", "%", "%j", id, "%A", id, "%x", r.Name, "%u", j.User).Replace(pattern)
}

func memoryText(m MiB) string {
	switch m {
	case 0:
		return ""
	case WholeNode:
		return "all of the node"
	}
	return m.String()
}

func gresText(list []GRES) string {
	var parts []string
	for _, g := range list {
		if g.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// mailSet sorts mail types; ALL is what sbatch makes of it.
func mailSet(words []string) string {
	var out []string
	for _, w := range words {
		switch w {
		case "ALL":
			out = append(out, "BEGIN", "END", "FAIL", "INVALID_DEPEND", "REQUEUE", "STAGE_OUT")
		case "NONE":
		default:
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

func licenceSet(text string) string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item != "" && !strings.Contains(item, ":") {
			item += ":1"
		}
		out = append(out, item)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// nodes is a sorted list of names that prints as one word.
type nodes []string

func (n nodes) String() string { return strings.Join(n, ",") }

func nodeSet(list string) nodes {
	names, err := Expand(list)
	if err != nil {
		return nodes{list}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
