package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Differences compares the job as Slurm reports it with the request that was
// shown, field by field. Each line names component, field and both values. A
// site's job_submit plugin may change a job: that is said, not undone.
func Differences(req *slurm.Request, jobs []slurm.Job) []string {
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b slurm.Job) int { return a.HetOffset - b.HetOffset })
	if len(jobs) != len(req.Components) {
		return []string{fmt.Sprintf("the plan has %d components, the job %d", len(req.Components), len(jobs))}
	}
	var out []string
	for i, c := range req.Components {
		j := jobs[i]
		differ := func(field string, want, got any) {
			if fmt.Sprint(want) != fmt.Sprint(got) {
				out = append(out, fmt.Sprintf("component %d: %s was shown as %v, the job has %v", i, field, want, got))
			}
		}
		given := func(field, want, got string) {
			if want != "" {
				differ(field, want, got)
			}
		}
		differ("name", req.Name, j.Name)
		differ("partition", c.Partition, j.Partition)
		differ("nodes", c.Nodes, j.Nodes)
		differ("tasks", c.Tasks(), j.Tasks)
		differ("time limit", c.TimeLimit, j.TimeLimit)
		differ("GRES per node", gresText(c.GRES), gresText(j.GRES))
		if c.CPUsPerTask > 0 && j.CPUsPerTask > 0 {
			differ("CPUs per task", c.CPUsPerTask, j.CPUsPerTask)
		} else if c.CPUsPerTask > 0 {
			differ("CPUs", c.CPUsPerTask*c.Tasks(), j.CPUs)
		}
		if c.Memory > 0 {
			differ("memory per node", c.Memory, j.Memory)
		}
		given("account", c.Account, j.Account)
		given("QOS", c.QOS, j.QOS)
		given("reservation", c.Reservation, j.Reservation)
		given("constraint", c.Constraint, j.Constraint)
		if i == 0 {
			given("work directory", req.WorkDir, j.WorkDir)
			given("comment", req.Comment, j.Comment)
			differ("requeue", req.Requeue, j.Requeue)
		}
	}
	return out
}

func gresText(list []slurm.GRES) string {
	var parts []string
	for _, g := range list {
		if g.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s:%s:%d", g.Name, g.Type, g.Count))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
