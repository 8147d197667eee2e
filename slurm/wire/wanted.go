package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// told is a value and whether its key was there at all: a dialect that does
// not tell must not look like a cluster that did not listen.
type told[T any] struct {
	v  T
	ok bool
}

func (t *told[T]) UnmarshalJSON(b []byte) error {
	t.ok = true
	return json.Unmarshal(b, &t.v)
}

// wanted are the keys of a job that repeat what was asked for and matter to
// nobody but who compares it with the request.
type wanted struct {
	Error       told[Text]  `json:"standard_error"`
	Eligible    told[Num]   `json:"eligible_time"`
	Deadline    told[Num]   `json:"deadline"`
	Priority    told[Num]   `json:"priority"`
	Nice        told[Num]   `json:"nice"`
	MailType    told[Words] `json:"mail_type"`
	MailUser    told[Text]  `json:"mail_user"`
	WCKey       told[Text]  `json:"wckey"`
	Extra       told[Text]  `json:"extra"`
	Container   told[Text]  `json:"container"`
	Prefer      told[Text]  `json:"prefer"`
	PerCPU      told[Num]   `json:"memory_per_cpu"`
	PerTRES     told[Text]  `json:"memory_per_tres"`
	TimeMin     told[Num]   `json:"time_minimum"`
	Shared      told[Words] `json:"shared"`
	Network     told[Text]  `json:"network"`
	Switches    told[Num]   `json:"required_switches"`
	SwitchesOld told[Num]   `json:"minimum_switches"` // up to v0.0.41
	SwitchWait  told[Num]   `json:"maximum_switch_wait_time"`
	Segment     told[Num]   `json:"segment_size"`
	Flags       told[Words] `json:"flags"`
	// Newest came with v0.0.45, which lists nothing under "shared".
	Newest told[Num] `json:"memory_update_delay"`
}

// fill puts them into the job.
func (w *wanted) fill(j *slurm.Job) {
	j.Error = string(w.Error.v)
	j.Eligible, j.Deadline = w.Eligible.v.Time(), w.Deadline.v.Time()
	j.Priority, j.Nice = w.Priority.v.Count(), w.Nice.v.Int()
	for _, word := range w.MailType.v {
		j.MailType = append(j.MailType, mailWord(word))
	}
	j.MailUser, j.WCKey, j.Extra, j.Container = string(w.MailUser.v), string(w.WCKey.v), string(w.Extra.v), string(w.Container.v)
	j.Prefer, j.Network = string(w.Prefer.v), string(w.Network.v)
	j.MemoryPerCPU, j.MemoryPerGPU = slurm.MiB(w.PerCPU.v.Count()), PerGPU(string(w.PerTRES.v))
	switch {
	case j.MemoryPerGPU > 0:
		j.Memory, j.MemoryPerCPU = 0, 0 // 22.05 shows the partition's default beside it
	case j.Memory == 0 && j.MemoryPerCPU == 0:
		// Slurm keeps "all of the node" as 0; v0.0.38 prints that as null.
		j.Memory = slurm.WholeNode
	}
	j.TimeMin = minutes(w.TimeMin.v)
	j.Share = share(w.Shared.v)
	j.Switches = max(w.Switches.v.Count(), w.SwitchesOld.v.Count())
	j.SwitchWait = time.Duration(w.SwitchWait.v.Count()) * time.Second
	j.Segment = w.Segment.v.Count()
	j.KillInvalid = slices.Contains(w.Flags.v, "KILL_INVALID_DEPENDENCY") || slices.Contains(w.Flags.v, "KILL_INV_DEP")
	j.Untold = w.untold()
}

// untold are the fields of slurm.Request and slurm.Component that the answer
// has no key for.
func (w *wanted) untold() []string {
	var out []string
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"Extra", w.Extra.ok}, {"MailType", w.MailType.ok}, {"MailUser", w.MailUser.ok}, {"Network", w.Network.ok},
		{"Prefer", w.Prefer.ok}, {"Switches", w.Switches.ok || w.SwitchesOld.ok}, {"SwitchWait", w.SwitchWait.ok},
		{"Segment", w.Segment.ok}, {"Share", w.Shared.ok && !w.Newest.ok}, {"WCKey", w.WCKey.ok}, {"Container", w.Container.ok},
	} {
		if !f.ok {
			out = append(out, f.name)
		}
	}
	return out
}

// mailWord is a mail type in the words of sbatch.
func mailWord(w string) string {
	switch {
	case w == "TIME=100%":
		return "TIME_LIMIT"
	case strings.HasPrefix(w, "TIME="):
		return "TIME_LIMIT_" + strings.TrimSuffix(strings.TrimPrefix(w, "TIME="), "%")
	case w == "INVALID_DEPENDENCY":
		return "INVALID_DEPEND"
	}
	return w
}

// PerGPU reads memory per GPU, "gres:gpu:300" and "gres/gpu:300", with a type perhaps.
func PerGPU(tres string) slurm.MiB {
	for item := range strings.SplitSeq(tres, ",") {
		item = strings.Replace(item, "gres/", "gres:", 1)
		if rest, ok := strings.CutPrefix(item, "gres:gpu:"); ok {
			n, err := strconv.ParseInt(rest[strings.LastIndex(rest, ":")+1:], 10, 64)
			if err == nil && n > 0 {
				return slurm.MiB(n)
			}
		}
	}
	return 0
}

// share reads what v0.0.38 writes as a word and later ones as a list. Words
// are upper-cased.
func share(w Words) slurm.Share {
	if len(w) == 0 {
		return slurm.ShareDefault
	}
	switch word := strings.ToLower(w[0]); word {
	case "none":
		return slurm.Exclusive
	case "shared": // v0.0.38
		return slurm.Oversubscribe
	default:
		return slurm.Share(word)
	}
}
