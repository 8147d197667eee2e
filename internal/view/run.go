package view

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/ui"
)

// State is a run's state with the gate it waits for.
func State(r *ledger.Run) string {
	s := string(r.State)
	if r.State == ledger.Queued && r.Gate != "" {
		s += " (" + r.Gate + ")"
	}
	return s
}

// Runs writes one line per run, newest first as given; a terminal's width cuts
// the longest cells.
func Runs(s *ui.Streams, runs []*ledger.Run, now time.Time) error {
	t := ui.Grid{Head: []string{"run", "experiment", "state", "job", "GPUs", "age", "why"}}
	for _, r := range runs {
		job := ""
		if id := r.JobID(); id != 0 {
			job = id.String()
		}
		age := "" // of a run that cannot be read
		if !r.Created.IsZero() {
			age = Age(now.Sub(r.Created))
		}
		t.Add(string(r.ID), named(r), State(r), job, r.GPUs, age, why(r))
	}
	return t.Print(s)
}

// named is the experiment, and the name given with --name behind it.
func named(r *ledger.Run) string {
	if r.Name == "" || r.Name == r.Experiment {
		return r.Experiment
	}
	return r.Experiment + " (" + r.Name + ")"
}

// Run writes everything about one run.
func Run(w io.Writer, r *ledger.Run, now time.Time) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-13s %s\n", ui.Clean(key), ui.Clean(value))
		}
	}
	line("run", string(r.ID))
	line("experiment", named(r))
	line("state", State(r))
	line("why", why(r))
	line("recipe", r.Recipe)
	line("fleet", strings.TrimSpace(r.Fleet+" "+r.Cluster))
	for _, p := range r.Pools {
		line("pool "+p.Name, fmt.Sprintf("%s %s, partition %s, roles %s", nodesByGPUs(p), p.Series, p.Partition, strings.Join(p.Roles, ",")))
	}
	for _, a := range r.Attempts {
		s := "job " + a.JobID.String()
		if a.JobID == 0 {
			s = "no job"
		}
		if !a.Started.IsZero() {
			end := now
			if !a.Ended.IsZero() {
				end = a.Ended
			}
			s += fmt.Sprintf(", started %s, ran %s", a.Started.Local().Format(time.DateTime), Age(end.Sub(a.Started)))
		} else if !a.Submitted.IsZero() {
			s += ", submitted " + a.Submitted.Local().Format(time.DateTime)
		}
		line(fmt.Sprintf("attempt %d", a.N), s)
	}
	line("directory", r.Dir)
	line("output", filepath.Join(r.Dir, "out"))
	if m := Metrics(r.Dir); m != "" {
		line("metrics", m)
	}
}

// why is the reason in plain words: for a waiting run what it waits for, for an
// ended one what ended it.
func why(r *ledger.Run) string { return Why(r).Sentence }

// Why is the reason with its gate. A job that Slurm cancelled because what it
// depended on has failed has the reason of a waiting one.
func Why(r *ledger.Run) gates.Waiting {
	detail := r.Detail
	if at, err := time.Parse(time.RFC3339, detail); err == nil {
		detail = at.Local().Format(time.DateTime)
	}
	w := gates.Why(r.Reason, gates.Job{ID: r.JobID(), Detail: detail})
	if r.State == ledger.Queued || r.State == ledger.Cancelled && r.Reason == "DependencyNeverSatisfied" {
		return w
	}
	return gates.Waiting{Sentence: r.Reason}
}

// Age is a duration in its two largest units.
func Age(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
