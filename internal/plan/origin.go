package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// settingOf are the keys of job.toml that options of sbatch come from, by the
// field that the option stands for.
var settingOf = map[string]string{
	"Name": "name", "Comment": "comment", "Requeue": "requeue", "Begin": "begin", "Deadline": "deadline", "Dependency": "dependency", "Hold": "hold",
	"Nice": "nice", "Priority": "priority", "Signal": "signal", "MailType": "mail_type", "MailUser": "mail_user", "WCKey": "wckey", "Extra": "extra",
	"Partition": "partition", "Account": "account", "QOS": "qos", "Reservation": "reservation", "Constraint": "constraint", "Prefer": "prefer",
	"Licenses": "licenses", "NodeList": "nodelist", "Exclude": "exclude_nodes", "CPUsPerTask": "cpus_per_node", "Memory": "mem",
	"MemoryPerCPU": "mem_per_cpu", "MemoryPerGPU": "mem_per_gpu", "TimeLimit": "time", "TimeMin": "time_min", "Share": "exclusive",
	"Network": "network", "Switches": "switches", "Segment": "segment",
}

// Origin says in one phrase where a directive of the batch script comes from:
// the pool it is of, and the flag, or file and line, that set it. A component
// of -1 is what tp adds to every job.
func (p *Plan) Origin(component int, o slurm.Option) string {
	if component < 0 {
		if o.Name == "hetjob" {
			return "the next pool"
		}
		return "tp: nothing of the submitting shell"
	}
	var pools []spec.Pool
	for _, q := range p.Fixed.Pools {
		if q.Component == component {
			pools = append(pools, q)
		}
	}
	whose := ""
	if slices.Contains(ofComponent, o.Field) {
		whose = poolNames(pools) + " · "
	}
	if origin := p.setting(settingOf[o.Field], pools); origin != "" {
		return whose + origin
	}
	return whose + p.implied(o, pools)
}

// ofComponent are the fields of slurm.Component, which differ by pool.
var ofComponent = []string{"Partition", "Account", "QOS", "Reservation", "Constraint", "Prefer", "Licenses", "NodeList", "Exclude", "Nodes", "TasksPerNode",
	"CPUsPerTask", "Memory", "MemoryPerCPU", "MemoryPerGPU", "GRES", "TimeLimit", "TimeMin", "Share", "Network", "Switches", "Segment"}

func poolNames(pools []spec.Pool) string {
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	if len(names) == 1 {
		return names[0] + " pool"
	}
	return strings.Join(names, ", ") + " pools"
}

// setting is where a key was set: for a role of the pools, else for all.
func (p *Plan) setting(key string, pools []spec.Pool) string {
	if key == "" {
		return ""
	}
	var names []string
	for _, q := range pools {
		for _, r := range q.Roles {
			names = append(names, key+"."+r)
		}
	}
	for _, name := range append(names, key) {
		for _, s := range p.Observed.Settings {
			if s.Key == name {
				return s.Origin
			}
		}
	}
	return ""
}

// implied is the origin of what nobody set.
func (p *Plan) implied(o slurm.Option, pools []spec.Pool) string {
	series := ""
	if len(pools) > 0 {
		series = "series " + pools[0].Series
	}
	switch o.Field {
	case "Name":
		return "the experiment's name and the run's id"
	case "Comment":
		return "tp: finds the run again"
	case "WorkDir", "Output", "Error":
		return "tp: the run's directory"
	case "Requeue":
		return "default"
	case "Nodes", "GRES":
		var profiles []string
		for _, q := range pools {
			profiles = append(profiles, p.profile(q))
		}
		return strings.Join(profiles, ", ")
	case "TasksPerNode":
		return "tp: one task per node"
	case "CPUsPerTask", "Memory":
		return series + ": its share of a node"
	case "TimeLimit":
		if len(pools) > 0 {
			return "default of partition " + pools[0].Partition
		}
	case "Partition", "Constraint":
		return series
	}
	return "site"
}

// profile is the --profile that a pool was made from.
func (p *Plan) profile(q spec.Pool) string {
	for _, profile := range p.Fixed.Spec.Profiles {
		if profile.Series == q.Series && (len(profile.Roles) == 0 || slices.Equal(profile.Roles, q.Roles)) {
			return fmt.Sprintf("profile %s", profile)
		}
	}
	return "series " + q.Series
}
