package gates

import (
	"regexp"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Waiting says in the words of the gates why a queued job waits.
type Waiting struct {
	Gate     string // "" when Slurm's reason belongs to no gate
	Sentence string // plain words; Slurm's own reason when it is not known
}

// Job is what a sentence about a waiting job may name; zero values are left out.
type Job struct {
	ID          slurm.JobID
	Description string // Slurm's own words beside the reason
	Detail      string // the dependency, or when it may begin
}

// Why translates a pending reason of Slurm (squeue(1), JOB REASON CODES). The
// families of association and QOS limits are told by their prefix and what
// they count; a reason nobody knows yet is shown as it is.
func Why(reason string, job Job) Waiting {
	reason, _, _ = strings.Cut(reason, ",") // "ReqNodeNotAvail, UnavailableNodes:…"
	reason = strings.TrimSpace(reason)
	if w, ok := reasons[reason]; ok {
		w.Sentence = job.detailed(reason, w.Sentence)
		return w
	}
	for _, family := range []struct{ prefix, whose string }{{"QOS", "of the QOS"}, {"Assoc", "of your account"}} {
		if rest, ok := strings.CutPrefix(reason, family.prefix); ok {
			return Waiting{"userQuota", "a limit " + family.whose + " is reached: " + limitWords(rest)}
		}
	}
	switch {
	case reason == "" || reason == "None":
		return Waiting{"", "the scheduler has not looked at it yet"}
	case job.Description != "":
		return Waiting{"", reason + ": " + job.Description}
	}
	return Waiting{"", reason}
}

// detailed names the job and what it waits for.
func (j Job) detailed(reason, sentence string) string {
	if j.ID != 0 {
		sentence = strings.Replace(sentence, "scontrol release", "scontrol release "+j.ID.String(), 1)
	}
	if j.Detail == "" {
		return sentence
	}
	switch reason {
	case "BeginTime":
		return "it begins at " + j.Detail + " at the earliest"
	case "Dependency":
		return "it waits for " + dependencies(j.Detail)
	case "DependencyNeverSatisfied":
		return sentence + " (it waited for " + dependencies(j.Detail) + ")"
	}
	return sentence
}

var dependency = regexp.MustCompile(`(after[a-z]*):([0-9_*+:]+)(?:\([a-z_]+\))?|singleton(?:\([a-z_]+\))?`)

// dependencies puts Slurm's own list, "afterok:7(unfulfilled),afterany:8", into
// words; kinds that nobody knows yet stay as they are.
func dependencies(text string) string {
	words := map[string]string{"after": "begin", "afterany": "end", "afterok": "succeed", "afternotok": "fail"}
	text = strings.NewReplacer(",", " and ", "?", " or ").Replace(text)
	return dependency.ReplaceAllStringFunc(text, func(one string) string {
		m := dependency.FindStringSubmatch(one)
		if m[1] == "" {
			return "other jobs of its name"
		}
		what, known := words[m[1]]
		if !known {
			return one
		}
		jobs := strings.Split(m[2], ":")
		if len(jobs) > 1 {
			return "jobs " + strings.Join(jobs, ", ") + " to " + what
		}
		return "job " + jobs[0] + " to " + what
	})
}

var reasons = map[string]Waiting{
	"Resources":                   {"capacity", "the nodes it needs are busy"},
	"Priority":                    {"capacity", "jobs of higher priority are before it"},
	"Nodes":                       {"capacity", "nodes of the partition are down, drained or reserved"},
	"NodeDown":                    {"offlineSeries", "a node it needs is down"},
	"PartitionDown":               {"offlineSeries", "its partition is down"},
	"PartitionInactive":           {"offlineSeries", "its partition is inactive"},
	"ReqNodeNotAvail":             {"capacity", "nodes it needs are down, drained or reserved, perhaps for maintenance"},
	"Reservation":                 {"maintenance", "its reservation has not begun"},
	"ReservationDeleted":          {"admission", "its reservation was deleted"},
	"BeginTime":                   {"scheduleWindow", "its begin time has not come; a requeued job waits a little as well"},
	"Dependency":                  {"", "a job it depends on has not ended"},
	"DependencyNeverSatisfied":    {"", "a job it depends on failed: it will never start"},
	"JobHeldUser":                 {"", "you hold it: scontrol release"},
	"JobHeldAdmin":                {"", "an administrator holds it"},
	"Licenses":                    {"capacity", "a licence it needs is in use"},
	"PartitionTimeLimit":          {"capacity", "its time limit is longer than the partition allows: it will never start"},
	"PartitionNodeLimit":          {"capacity", "it asks for more nodes than the partition allows: it will never start"},
	"PartitionConfig":             {"admission", "the partition does not take it as it is"},
	"BadConstraints":              {"capacity", "no node has what it asks for"},
	"AccountNotAllowed":           {"admission", "its account may not use the partition"},
	"QOSNotAllowed":               {"admission", "its QOS may not be used in the partition or by the account"},
	"InvalidAccount":              {"admission", "its account is not valid"},
	"InvalidQOS":                  {"admission", "its QOS is not valid"},
	"Cleaning":                    {"", "its last run is still being cleaned up"},
	"JobArrayTaskLimit":           {"", "the array runs as many tasks at once as it may"},
	"JobLaunchFailure":            {"", "it could not be launched; the log or your administrator knows why"},
	"NonZeroExitCode":             {"", "it ended with an error"},
	"Prolog":                      {"", "the prolog runs on its nodes"},
	"FrontEndDown":                {"offlineSeries", "no front end is up"},
	"SchedDefer":                  {"capacity", "the scheduler defers jobs under load"},
	"MaxRequeueLimit":             {"", "it was requeued too often and is held: scontrol release"},
	"launch failed requeued held": {"", "its launch failed; it is held: scontrol release"},
	"REQUEUE_HOLD":                {"", "it was requeued and is held: scontrol release"},
	"SPECIAL_EXIT":                {"", "it was requeued in a special state and is held: scontrol release"},
	"RESV_DEL_HOLD":               {"admission", "it is held because its reservation was deleted"},
	"job requeued in held state":  {"", "it was requeued and is held: scontrol release"},
}

// limitWords reads the rest of QOSMaxGRESPerUser and its hundred siblings.
func limitWords(rest string) string {
	words := rest
	for _, r := range []struct{ from, to string }{
		{"PerUser", " per user"}, {"PerAccount", " per account"}, {"PerJob", " per job"}, {"PerNode", " per node"},
		{"PerUserLimit", " per user"}, {"Limit", ""}, {"MaxGRES", "GPUs or other GRES"}, {"GrpGRES", "GPUs of all together"},
		{"MaxJobs", "running jobs"}, {"MaxJob", "running jobs"}, {"GrpJobs", "running jobs of all together"}, {"MaxSubmitJob", "submitted jobs"}, {"GrpSubmitJobs", "submitted jobs of all together"},
		{"MaxCpu", "CPUs"}, {"GrpCpu", "CPUs of all together"}, {"MaxMem", "memory"}, {"GrpMem", "memory of all together"}, {"MaxNode", "nodes"}, {"GrpNode", "nodes of all together"},
		{"MaxWallDuration", "time limit"}, {"GrpWall", "wall time of all together"}, {"RunMinutes", " minutes of running jobs"}, {"Minutes", " minutes"},
		{"Resource", ""},
	} {
		words = strings.Replace(words, r.from, r.to, 1)
	}
	return strings.TrimSpace(words) + " (" + rest + ")"
}
