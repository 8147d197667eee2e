package rest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Values of v0.0.38, which takes sbatch's option arguments.

func joined(items []string) any { return word(strings.Join(items, ",")) }

func mail38(p part) any { return joined(p.r.MailType) }

func gres38(p part) any {
	items := make([]string, len(p.GRES))
	for i, g := range p.GRES {
		items[i] = g.String()
	}
	return joined(items)
}

func limit38(p part) any {
	if p.TimeLimit == slurm.Unlimited {
		return 0
	}
	return number(int(p.TimeLimit))
}

// uts is a time as v0.0.38 reads it without a question of zones.
func uts(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return fmt.Sprintf("uts%d", t.Unix())
}

func killInvalid38(p part) any { return flag(p.r.Dependency != "") }

func memory38(p part) any {
	if p.Memory == slurm.WholeNode {
		return 0
	}
	return number(int(p.Memory))
}

// v0.0.38 ignores the value of both keys: "requeue": false would turn requeue on.

func requeue38(p part) any   { return flag(p.r.Requeue) }
func noRequeue38(p part) any { return flag(!p.r.Requeue) }

// exclusive38 takes words; "oversubscribe" is a key of its own.
func exclusive38(p part) any {
	switch p.Share {
	case slurm.ShareDefault, slurm.Oversubscribe:
		return nil
	case slurm.ExclusiveTopo:
		return refused("exclusive=topo came with Slurm 24.05")
	}
	return string(p.Share)
}

// signal38: slurmrestd 22.05 refuses "B:USR1@60" as an invalid specification
// (tried on 22.05.8). Without B: the signal would hit the training processes
// and leave the batch script unaware, so it is left out.
func signal38(p part) any {
	s := p.r.Signal
	switch {
	case s.Name == "":
		return nil
	case s.BatchOnly:
		return lost("no warning before the time limit: a signal to the batch script alone cannot be asked for over REST")
	}
	return fmt.Sprintf("%s@%d", s.Name, int(s.Before.Seconds()))
}

func env38(p part) any {
	out := map[string]string{}
	for _, v := range environment(p) {
		out[v.Name] = v.Value
	}
	return out
}
