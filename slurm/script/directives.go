package script

import (
	"fmt"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
)

// directives writes the #SBATCH lines of a request. They carry everything that
// the REST request carries, so that sbatch of the same file asks for the same
// job. Options that sbatch would hand down from component 0 are repeated in
// every component: what is written is what holds (sbatch(1), heterogeneous jobs).
func directives(b *strings.Builder, r *slurm.Request) {
	line := func(option, value string) {
		if value != "" {
			fmt.Fprintf(b, "#SBATCH --%s=%s\n", option, shell.Directive(value))
		}
	}
	flag := func(option string, on bool) {
		if on {
			fmt.Fprintf(b, "#SBATCH --%s\n", option)
		}
	}
	line("job-name", r.Name)
	line("comment", r.Comment)
	line("chdir", r.WorkDir)
	line("output", r.Output)
	line("open-mode", "append")
	// Nothing of the submitting shell: the script exports its own environment.
	line("export", "NIL")
	if r.Requeue {
		flag("requeue", true)
	} else {
		flag("no-requeue", true)
	}
	if !r.Begin.IsZero() {
		line("begin", r.Begin.Format("2006-01-02T15:04:05"))
	}
	line("dependency", r.Dependency)
	flag("kill-on-invalid-dep=yes", r.Dependency != "")
	flag("hold", r.Hold)
	if r.Nice != 0 {
		line("nice", fmt.Sprint(r.Nice))
	}
	if r.Signal.Name != "" {
		s := fmt.Sprintf("%s@%d", r.Signal.Name, int(r.Signal.Before.Seconds()))
		if r.Signal.BatchOnly {
			s = "B:" + s
		}
		line("signal", s)
	}
	line("mail-type", strings.Join(r.MailType, ","))
	line("mail-user", r.MailUser)
	for i, c := range r.Components {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		line("partition", c.Partition)
		line("account", c.Account)
		line("qos", c.QOS)
		line("reservation", c.Reservation)
		line("constraint", c.Constraint)
		line("licenses", c.Licenses)
		line("nodelist", strings.Join(c.NodeList, ","))
		line("exclude", strings.Join(c.Exclude, ","))
		line("nodes", fmt.Sprint(c.Nodes))
		line("ntasks", fmt.Sprint(c.Tasks()))
		line("ntasks-per-node", fmt.Sprint(max(1, c.TasksPerNode)))
		if c.CPUsPerTask > 0 {
			line("cpus-per-task", fmt.Sprint(c.CPUsPerTask))
		}
		if c.Memory > 0 {
			line("mem", c.Memory.String())
		}
		line("gres", gres(c.GRES))
		line("time", c.TimeLimit.String())
		flag("exclusive", c.Exclusive)
	}
}

func gres(list []slurm.GRES) string {
	var parts []string
	for _, g := range list {
		part := g.Name
		if g.Type != "" {
			part += ":" + g.Type
		}
		parts = append(parts, fmt.Sprintf("%s:%d", part, g.Count))
	}
	return strings.Join(parts, ",")
}

// Pattern escapes a path for a Slurm file name pattern, where % has a meaning
// (sbatch(1), filename pattern).
func Pattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
