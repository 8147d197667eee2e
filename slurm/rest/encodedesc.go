package rest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Values of v0.0.39 and later, where they differ from v0.0.38.

// numberObject is the NO_VAL shape, which every dialect from .39 on accepts
// and which alone draws no warning from .40 on.
type numberObject struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

func set(n int64) any {
	if n == 0 {
		return nil
	}
	return numberObject{Set: true, Number: n}
}

func limit(p part) any {
	if p.TimeLimit == slurm.Unlimited {
		return numberObject{Infinite: true}
	}
	return set(int64(p.TimeLimit))
}

func begin(p part) any {
	if p.r.Begin.IsZero() {
		return nil
	}
	if p.d.bareNumbers() {
		return p.r.Begin.Unix()
	}
	return set(p.r.Begin.Unix())
}

// tresPerNode spells GRES with colons: up to 23.02 slurmctld looks for "gres:"
// and silently ignores "gres/"; from 23.11 on it rewrites the colon itself.
func tresPerNode(p part) any {
	items := make([]string, len(p.GRES))
	for i, g := range p.GRES {
		items[i] = "gres:" + g.String()
	}
	return word(strings.Join(items, ","))
}

// deadline is a plain number in all dialects: TIMESTAMP, not TIMESTAMP_NO_VAL.
func deadline(p part) any {
	if p.r.Deadline.IsZero() {
		return nil
	}
	return p.r.Deadline.Unix()
}

// killInvalid: a job whose dependency can never be met is cancelled, for it
// would sit in the queue for ever.
func killInvalid(p part) any {
	if p.r.Dependency == "" {
		return nil
	}
	return []string{"KILL_INVALID_DEPENDENCY"}
}

// mailWords are the words of sbatch that job_desc_msg spells otherwise. From
// .41 on an unknown one is answered with an error, and the job is queued.
var mailWords = map[string][]string{
	"NONE":           nil,
	"ALL":            {"BEGIN", "END", "FAIL", "INVALID_DEPENDENCY", "REQUEUE", "STAGE_OUT"},
	"INVALID_DEPEND": {"INVALID_DEPENDENCY"},
	"TIME_LIMIT":     {"TIME=100%"},
	"TIME_LIMIT_90":  {"TIME=90%"},
	"TIME_LIMIT_80":  {"TIME=80%"},
	"TIME_LIMIT_50":  {"TIME=50%"},
}

func mail(p part) any {
	var out []string
	for _, word := range p.r.MailType {
		if words, other := mailWords[word]; other {
			out = append(out, words...)
		} else {
			out = append(out, word)
		}
	}
	return list(out)
}

// memory: number 0 is the whole node, as --mem=0 is (scontrol shows
// MinMemoryNode=0 and all memory as requested, on 22.05.8, 24.11.5, 26.05.5).
func memory(p part) any {
	if p.Memory == slurm.WholeNode {
		return p.mebibytes(0)
	}
	if p.Memory == 0 {
		return nil
	}
	return p.mebibytes(p.Memory)
}

func memoryPerCPU(p part) any {
	if p.MemoryPerCPU == 0 {
		return nil
	}
	return p.mebibytes(p.MemoryPerCPU)
}

// mebibytes: the parser of .39 took integers and texts only, at first.
func (p part) mebibytes(n slurm.MiB) any {
	if p.d.bareNumbers() {
		return int64(n)
	}
	return numberObject{Set: true, Number: int64(n)}
}

func memoryPerGPU(p part) any {
	if p.MemoryPerGPU == 0 {
		return nil
	}
	return fmt.Sprintf("gres:gpu:%d", int64(p.MemoryPerGPU))
}

// shared is JOB_SHARED. The keys "exclusive" and "oversubscribe" say the same
// in .39 to .41 alone, and 23.02.0 to .2 lacked them.
func shared(p part) any {
	switch p.Share {
	case slurm.ShareDefault:
		return nil
	case slurm.Exclusive:
		return []string{"none"}
	case slurm.ExclusiveTopo:
		if p.d < 41 {
			return refused("exclusive=topo came with Slurm 24.05 and v0.0.41")
		}
	}
	return []string{string(p.Share)}
}

func segment(p part) any {
	if p.Segment > 0 && p.d < 41 {
		return refused("segments came with Slurm 24.05 and v0.0.41")
	}
	return set(int64(p.Segment))
}

func seconds(d time.Duration) int { return int(d / time.Second) }

func signalDelay(p part) any {
	if p.r.Signal.Name == "" {
		return nil
	}
	return set(int64(p.r.Signal.Before.Seconds()))
}

func signalFlags(p part) any {
	if p.r.Signal.Name == "" || !p.r.Signal.BatchOnly {
		return nil
	}
	return []string{"BATCH_JOB"}
}

func envList(p part) any {
	vars := environment(p)
	out := make([]string, len(vars))
	for i, v := range vars {
		out[i] = v.Name + "=" + v.Value
	}
	return out
}
