package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// asked fills in what a pool asks for besides its size.
func asked(p *spec.Pool, job spec.Slurm) error {
	a := &p.Asked
	a.Prefer, a.Network = job.Prefer.For(p.Roles...), job.Network.For(p.Roles...)
	a.NodeList, a.ExcludeNodes = job.NodeList.For(p.Roles...), job.ExcludeNodes.For(p.Roles...)
	for _, v := range []struct {
		flag string
		of   spec.PerRole
		read func(text string) error
	}{
		{"--time-min", job.TimeMin, func(text string) (err error) { a.TimeMin, err = spec.ParseTime(text); return err }},
		{"--exclusive", job.Exclusive, func(text string) (err error) { a.Exclusive, err = spec.ParseShare(text); return err }},
		{"--switches", job.Switches, func(text string) (err error) { a.Switches, a.SwitchWait, err = spec.ParseSwitches(text); return err }},
		{"--segment", job.Segment, func(text string) (err error) { a.Segment, err = spec.ParseNumber(text, 1, 1<<16); return err }},
	} {
		if text := v.of.For(p.Roles...); text != "" {
			if err := v.read(text); err != nil {
				return fault.New(fault.Usage, "%s: %v", v.flag, err)
			}
		}
	}
	if a.TimeMin > 0 && p.TimeMinutes > 0 && a.TimeMin > p.TimeMinutes {
		return fault.New(fault.Usage, "pool %s: --time-min %s is more than its time limit of %s", p.Name, slurm.Minutes(a.TimeMin), slurm.Minutes(p.TimeMinutes)).
			WithHint("--time-min is the least that Slurm may cut --time to")
	}
	return nil
}

// ask puts it into the component.
func ask(c *slurm.Component, a spec.Asked) {
	c.MemoryPerCPU, c.MemoryPerGPU = slurm.MiB(a.MemPerCPU), slurm.MiB(a.MemPerGPU)
	if c.MemoryPerCPU > 0 || c.MemoryPerGPU > 0 {
		c.Memory = 0
	}
	c.TimeMin, c.Prefer, c.Network = slurm.Minutes(a.TimeMin), a.Prefer, a.Network
	c.NodeList, c.Exclude = listed(a.NodeList), listed(a.ExcludeNodes)
	c.Share, c.Switches, c.SwitchWait, c.Segment = slurm.Share(a.Exclusive), a.Switches, a.SwitchWait, a.Segment
}

func listed(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// jobWide fills in what is asked for the whole job.
func jobWide(req *slurm.Request, in Input) error {
	j := in.Spec.Job.Slurm
	from := in.Asked
	if from.IsZero() {
		from = in.Now
	}
	var err error
	if req.Begin, err = when("--begin", j.Begin, from); err != nil {
		return err
	}
	if req.Deadline, err = when("--deadline", j.Deadline, from); err != nil {
		return err
	}
	if err := inTime(req, from); err != nil {
		return err
	}
	req.Dependency, req.Hold, req.Nice, req.Priority = in.Dependency, j.Hold, j.Nice, j.Priority
	req.MailType, req.MailUser, req.WCKey, req.Extra = j.MailType, j.MailUser, j.WCKey, j.Extra
	req.Components[0].Licenses = j.Licenses
	if j.Signal != "" {
		if req.Signal.Name, req.Signal.Before, err = spec.ParseSignal(j.Signal); err != nil {
			return fault.New(fault.Usage, "--signal: %v", err)
		}
	}
	if j.Comment != "" {
		req.Comment += " " + j.Comment
	}
	return nil
}

func when(flag, text string, from time.Time) (time.Time, error) {
	if text == "" || text == "now" {
		return time.Time{}, nil
	}
	at, err := spec.ParseWhen(text, from)
	if err != nil {
		return at, fault.New(fault.Usage, "%s: %v", flag, err)
	}
	return at, nil
}

// inTime refuses a deadline that the job cannot meet: Slurm would take it and
// remove the job some time later.
func inTime(req *slurm.Request, now time.Time) error {
	if req.Deadline.IsZero() {
		return nil
	}
	start := now
	if req.Begin.After(start) {
		start = req.Begin
	}
	for i, c := range req.Components {
		least := c.TimeLimit
		if c.TimeMin > 0 {
			least = c.TimeMin
		}
		if left := req.Deadline.Sub(start); least == slurm.Unlimited || time.Duration(least)*time.Minute > left {
			limit := fmt.Sprintf("a time limit of %s", least)
			if c.TimeMin > 0 {
				limit = fmt.Sprintf("at least %s", least)
			}
			return fault.New(fault.Usage, "the deadline %s is %s after the earliest start, and component %d asks for %s: it could never end in time",
				req.Deadline.Format("2006-01-02T15:04:05"), spec.Span(left), i, limit).
				WithHint("a shorter --time, a --time-min, or a later --deadline")
		}
	}
	return nil
}

// handedDown warns of what the same script would get from sbatch and not from
// slurmrestd.
func handedDown(req *slurm.Request, pools []spec.Pool) []string {
	flags := map[string]string{"Account": "--account", "QOS": "--qos", "Prefer": "--prefer", "TimeMin": "--time-min"}
	var out []string
	for _, p := range pools {
		for _, field := range req.HandedDown(p.Component) {
			out = append(out, fmt.Sprintf("pool %s is given no %s: slurmrestd leaves it to Slurm, sbatch of the rendered script takes that of an earlier pool; %s %s=VALUE says which",
				p.Name, strings.TrimPrefix(flags[field], "--"), flags[field], p.Roles[0]))
		}
	}
	return out
}
