package site

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Remarks are what follows for jobs of tp from how the cluster is set up: one
// line for each fact that matters. The topic is the key of slurm.conf.
func Remarks(f *slurm.Facts) []Finding {
	if f == nil || f.Config == nil {
		return nil
	}
	var out []Finding
	say := func(level Level, key, fix, means string) {
		if key != "SchedulerParameters" { // a long list, of which one item is meant
			means = cmp.Or(f.Config.Get(key), "none") + ": " + means
		}
		out = append(out, level.finding(key, "", fix, "%s", means))
	}
	scheduling(f.Config, say)
	accounting(f.Config, say)
	doors(f.Config, say)
	resources(f, say)
	return out
}

type remark func(level Level, key, fix, means string)

func scheduling(c slurm.Record, say remark) {
	const het = "heterogeneous jobs (a pool per component)"
	if c.Get("SchedulerType") == "sched/backfill" {
		say(Good, "SchedulerType", "", "starts "+het)
		option := func(level Level, name, fix, means string) {
			text := name
			if v, _ := c.Option("SchedulerParameters", name); v != "" {
				text += "=" + v
			}
			say(level, "SchedulerParameters", fix, text+" "+means)
		}
		if _, set := c.Option("SchedulerParameters", "bf_hetjob_prio"); set {
			option(Good, "bf_hetjob_prio", "", "is set: heterogeneous jobs do not wait for each other")
		} else {
			option(Warn, "bf_hetjob_prio", "SchedulerParameters=…,bf_hetjob_prio=min in slurm.conf", "is missing: heterogeneous jobs of different shapes can wait for each other for ever on idle nodes")
		}
		if _, set := c.Option("SchedulerParameters", "disable_hetjob_steps"); set {
			option(Note, "disable_hetjob_steps", "", "is set: one srun cannot span pools; tp starts one per pool")
		}
		if size, set := c.Option("SchedulerParameters", "max_script_size"); set && size != "" {
			option(Note, "max_script_size", "", "bounds the batch script in bytes")
		}
	} else {
		say(Bad, "SchedulerType", "SchedulerType=sched/backfill in slurm.conf", "never starts "+het+"; jobs of one pool run")
	}
	if n, ok := c.Number("MaxArraySize"); ok {
		say(Note, "MaxArraySize", "", fmt.Sprintf("indexes up to %d: larger sweeps become several arrays", n-1))
	}
	if n, ok := c.Number("MaxJobCount"); ok {
		say(Note, "MaxJobCount", "", fmt.Sprintf("the controller keeps at most %d jobs, ended ones included", n))
	}
	if n, ok := c.Number("MinJobAge"); ok {
		switch means := "ended jobs are known to the controller for so long, then to accounting"; {
		case n > 0 && n < 60:
			say(Warn, "MinJobAge", "MinJobAge=300 in slurm.conf", means+"; shorter than some polls")
		default:
			say(Good, "MinJobAge", "", means)
		}
	}
	if v := c.Get("EnforcePartLimits"); strings.EqualFold(v, "NO") {
		say(Note, "EnforcePartLimits", "", "jobs over a partition's limits are accepted and wait for ever; the gate capacity refuses them before")
	}
	if v := c.Get("PreemptType"); v != "" && v != "preempt/none" {
		say(Note, "PreemptType", "", "jobs may be preempted, PreemptMode="+cmp.Or(c.Get("PreemptMode"), "none")+": a run needs requeue = true to come back")
	}
}

func accounting(c slurm.Record, say remark) {
	const key = "AccountingStorageType"
	if v := c.Get(key); v == "" || v == "accounting_storage/none" {
		say(Warn, key, "AccountingStorageType=accounting_storage/slurmdbd", "no accounting: when the controller has forgotten a job, the run's end marker is all that remains, and limits are unknown")
		return
	}
	say(Good, key, "", "states outlive the controller's memory")
	_, all := c.Option("AccountingStorageEnforce", "all")
	for _, e := range []struct{ name, means string }{
		{"associations", "accounts are not checked: a wrong one is recorded as it is"},
		{"limits", "limits of associations and QOS do not hold"},
		{"safe", "a job may start that runs out of its group's TRES minutes"},
	} {
		if _, set := c.Option("AccountingStorageEnforce", e.name); !set && !all {
			say(Note, "AccountingStorageEnforce", "", "without "+e.name+", "+e.means)
		}
	}
	if _, set := c.Option("AccountingStoreFlags", "job_comment"); !set {
		say(Note, "AccountingStoreFlags", "", "without job_comment, accounting drops the comment; the job's name carries the run id")
	}
	if v := c.Get("PrivateData"); v != "" && v != "none" {
		say(Note, "PrivateData", "", "users see only their own of these; what is hidden no gate can count")
	}
}

func doors(c slurm.Record, say remark) {
	if strings.Contains(c.Get("AuthAltTypes"), "auth/jwt") {
		say(Good, "AuthAltTypes", "", "slurmrestd takes tokens")
		if _, set := c.Option("AuthAltParameters", "disable_token_creation"); set {
			say(Warn, "AuthAltParameters", "token_command or token_file under [fleets.…]", "users cannot make tokens with scontrol token")
		}
	} else {
		say(Note, "AuthAltTypes", "", "no tokens: slurmrestd is reached through a unix socket or a private child")
	}
	if c.Get("CliFilterPlugins") != "" {
		say(Note, "CliFilterPlugins", "", "what sbatch filters here slurmrestd does not")
	}
	if c.Get("PlugStackConfig") != "" {
		say(Note, "PlugStackConfig", "", "options of SPANK plugins reach jobs of sbatch only")
	}
	if c.Get("JobSubmitPlugins") != "" {
		say(Note, "JobSubmitPlugins", "", "the site may change or refuse jobs; tp reads each back and says what differs")
	}
}

func resources(f *slurm.Facts, say remark) {
	c := f.Config
	if consumesMemory(c) {
		say(Good, "SelectTypeParameters", "", "memory is counted: jobs ask for it")
		for _, p := range f.Partitions {
			if !hasDefaultMemory(c, p) {
				say(Note, "DefMemPerNode", "", fmt.Sprintf("partition %s has no default: a job that asks for no memory takes all of its nodes'", p["PartitionName"]))
			}
		}
	} else {
		say(Note, "SelectTypeParameters", "", `memory is not counted: asking for it changes nothing (mem = "forbid" leaves it out)`)
	}
	switch c.Get("TopologyPlugin") {
	case "topology/block":
		say(Note, "TopologyPlugin", "", "segment = N under [series.…] keeps N nodes within a block")
	case "topology/tree":
		say(Note, "TopologyPlugin", "", "switches = N under [series.…] bounds the leaf switches of a job")
	}
	if c.Get("Licenses") != "" {
		say(Note, "Licenses", "", "a job asks for them on its first component only")
	}
	if c.Get("ResumeProgram") != "" {
		say(Note, "ResumeProgram", "", "nodes are powered up on demand and count as usable")
	}
}

// consumesMemory: SelectTypeParameters ends in _Memory, in any case.
func consumesMemory(c slurm.Record) bool {
	return strings.Contains(strings.ToUpper(c.Get("SelectTypeParameters")), "MEMORY")
}

func hasDefaultMemory(c, partition slurm.Record) bool {
	for _, r := range []slurm.Record{c, partition} {
		for _, key := range []string{"DefMemPerNode", "DefMemPerCPU"} {
			if v := r.Get(key); v != "" && v != "UNLIMITED" && v != "0" {
				return true
			}
		}
	}
	return false
}
