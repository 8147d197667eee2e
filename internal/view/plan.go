// Package view puts plans, runs and verdicts into words. Commands and the TUI
// share it, so that both say the same.
package view

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/ui"
	"github.com/tuneplane/tp/slurm"
)

// Plan writes the preview: what will run, where, and what the gates say. Lines
// are wrapped to width columns, 0 for any.
func Plan(w io.Writer, width int, p *plan.Plan, now time.Time) {
	w = ui.Wrap(w, width, 0)
	f, o := p.Fixed, p.Observed
	fmt.Fprintf(w, "%s · %s %s · plan %s\n", ui.Clean(f.Spec.Name), ui.Clean(f.Spec.Recipe.Name), ui.Clean(f.Spec.Recipe.Version), p.Short())
	line := func(key, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", key, ui.Clean(fmt.Sprintf(format, args...)))
	}
	if d := f.Spec.Description; d != "" {
		line("about", "%s", d)
	}
	line("fleet", "%s", Fleet(p))
	if len(o.OtherWays) > 0 {
		line("", "not by %s", strings.Join(o.OtherWays, " · "))
	}
	for i, text := range software(f.Runtime) {
		line([]string{"image", ""}[min(i, 1)], "%s", text)
	}
	for i, m := range f.Runtime.Mounts {
		line([]string{"mounts", ""}[min(i, 1)], "%s", mount(m))
	}
	line("code", "%s", Code(o.Provenance))
	line("bundle", "%d files, %s, %s new to %s", f.Bundle.Files, Bytes(f.Bundle.Bytes), Bytes(o.NewBytes), f.Bundle.Store)
	line("run", "%s in %s", f.RunID, filepath.Dir(f.RunDir))
	fmt.Fprintln(w)
	pools(w, width, f.Pools, o.DefaultAccount)
	for _, l := range asked(p) {
		fmt.Fprintf(w, "  %s\n", ui.Clean(l))
	}
	fmt.Fprintf(w, "  %s\n", Total(p))
	if len(o.Provenance.Untracked) > 0 {
		fmt.Fprintf(w, "\n  untracked files are packed too: %s\n", ui.Clean(some(o.Provenance.Untracked, 20)))
	}
	fmt.Fprintln(w)
	Verdicts(w, o.Verdicts)
	for _, text := range o.Notes {
		fmt.Fprintf(w, "  note: %s\n", ui.Clean(text))
	}
	for _, text := range o.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", ui.Clean(text))
	}
	until := p.Expires.Local().Format("15:04:05")
	if left := p.Expires.Sub(now); left > 0 {
		fmt.Fprintf(w, "\n  digest %s, expires %s (in %s)\n", p.Digest, until, short(left.Round(time.Minute)))
	} else {
		fmt.Fprintf(w, "\n  digest %s, expired at %s\n", p.Digest, until)
	}
}

// Fleet names cluster, release and transport.
func Fleet(p *plan.Plan) string {
	s := p.Fixed.Fleet
	if c := p.Fixed.Cluster; c != "" && c != s {
		s += " (" + c + ")"
	}
	if r := p.Observed.Release; r != "" {
		s += ", Slurm " + r
	}
	if t := p.Observed.Transport; t != "" {
		s += ", " + t
	}
	return s
}

// Code is the state of the git tree in one line.
func Code(p spec.Provenance) string {
	if p.Commit == "" {
		return "no git commit: the files as they are"
	}
	s := p.Commit[:min(len(p.Commit), 12)]
	if p.Branch != "" {
		s = p.Branch + " " + s
	}
	if len(p.Changed) > 0 {
		s += fmt.Sprintf(" + %d changed (%s)", len(p.Changed), some(p.Changed, 5))
	}
	if len(p.Untracked) > 0 {
		s += fmt.Sprintf(" + %d untracked", len(p.Untracked))
	}
	if !p.Dirty && len(p.Untracked) == 0 {
		s += ", clean"
	}
	return s
}

// pools writes one line per pool. An empty account or QOS is Slurm's default
// for the user; which account that is only accounting knows.
func pools(w io.Writer, width int, list []spec.Pool, usual string) {
	if usual != "" {
		usual += " (default)"
	}
	rows := [][]string{{"pool", "roles", "series", "nodes × GPUs", "CPUs", "memory", "partition", "time", "account", "QOS"}}
	for _, p := range list {
		memory := "default"
		if p.MemoryMiB > 0 {
			memory = slurm.MiB(p.MemoryMiB).String()
		}
		switch a := p.Asked; {
		case a.MemPerCPU > 0:
			memory = slurm.MiB(a.MemPerCPU).String() + "/CPU"
		case a.MemPerGPU > 0:
			memory = slurm.MiB(a.MemPerGPU).String() + "/GPU"
		}
		rows = append(rows, []string{p.Name, strings.Join(p.Roles, ","), p.Series, nodesByGPUs(p), fmt.Sprint(p.CPUsPerNode), memory, p.Partition,
			slurm.Minutes(p.TimeMinutes).String(), cmp.Or(p.Account, usual, "default"), cmp.Or(p.QOS, "default")})
	}
	// Most jobs have neither, and a line has 80 columns.
	rows = addColumn(rows, list, "constraint", func(p spec.Pool) string { return p.Constraint })
	rows = addColumn(rows, list, "reservation", func(p spec.Pool) string { return p.Reservation })
	var table strings.Builder
	ui.Table(&table, "  ", rows)
	wide := func(line string) bool { return ui.Width(strings.TrimRight(line, "\n")) > width }
	if width == 0 || !slices.ContainsFunc(slices.Collect(strings.Lines(table.String())), wide) {
		io.WriteString(w, table.String())
		return
	}
	for _, row := range rows[1:] { // a table that is broken in its rows cannot be read
		var parts []string
		for i, text := range row[1:] {
			parts = append(parts, rows[0][i+1]+" "+text)
		}
		fmt.Fprintf(w, "  %-9s %s\n", ui.Clean(row[0]), ui.Clean(strings.Join(parts, ", ")))
	}
}

// elsewhere are fields that the preview shows in other places.
var elsewhere = map[string]bool{
	"Name": true, "WorkDir": true, "Output": true, "Requeue": true, "Partition": true, "Account": true, "QOS": true, "Reservation": true,
	"Constraint": true, "Nodes": true, "TasksPerNode": true, "CPUsPerTask": true, "Memory": true, "MemoryPerCPU": true, "MemoryPerGPU": true,
	"GRES": true, "TimeLimit": true,
}

// asked are lines of what the job and each pool ask for besides, as options of
// sbatch: the words that everybody can look up.
func asked(p *plan.Plan) []string {
	r := p.Fixed.Request
	plain := "tp:" + p.Fixed.RunID
	of := map[string][]string{}
	var names []string
	for i, options := range r.Options() {
		var pools []string
		for _, pool := range p.Fixed.Pools {
			if pool.Component == i {
				pools = append(pools, pool.Name)
			}
		}
		for _, o := range options {
			if elsewhere[o.Field] || o.Field == "Comment" && o.Value == plain {
				continue
			}
			name := strings.Join(pools, ", ")
			if _, ofJob := reflect.TypeFor[slurm.Request]().FieldByName(o.Field); ofJob {
				name = "the job"
			}
			text := "--" + o.Name
			if !o.Bare {
				text += "=" + o.Value
			}
			if of[name] == nil {
				names = append(names, name)
			}
			of[name] = append(of[name], text)
		}
	}
	var out []string
	for _, name := range names {
		out = append(out, name+" asks for "+strings.Join(of[name], " "))
	}
	return out
}

// addColumn appends a column if any of the pools has a value in it.
func addColumn(rows [][]string, list []spec.Pool, name string, of func(spec.Pool) string) [][]string {
	if !slices.ContainsFunc(list, func(p spec.Pool) bool { return of(p) != "" }) {
		return rows
	}
	rows[0] = append(rows[0], name)
	for i, p := range list {
		value := of(p)
		if value == "" {
			value = "none"
		}
		rows[i+1] = append(rows[i+1], value)
	}
	return rows
}

func nodesByGPUs(p spec.Pool) string {
	if p.GPUsPerNode == 0 {
		return fmt.Sprintf("%d × no GPU", p.Nodes)
	}
	return fmt.Sprintf("%d × %d", p.Nodes, p.GPUsPerNode)
}

// Total is GPUs, nodes and the kind of job in one line.
func Total(p *plan.Plan) string {
	nodes := 0
	for _, pool := range p.Fixed.Pools {
		nodes += pool.Nodes
	}
	kind := "one plain job"
	if n := len(p.Fixed.Request.Components); n > 1 {
		kind = fmt.Sprintf("one heterogeneous job of %d components", n)
	}
	if p.Fixed.Request.Requeue {
		kind += ", which Slurm may requeue"
	}
	return fmt.Sprintf("%s on %s, %s", count(p.GPUs(), "GPU"), count(nodes, "node"), kind)
}

// Verdicts writes objections first, each with what to type, then who passed.
func Verdicts(w io.Writer, list []gates.Verdict) {
	var passed []string
	for _, v := range list {
		if v.Level == gates.Pass {
			passed = append(passed, v.Gate)
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", v.Level, ui.Clean(Verdict(v)))
		if v.Remedy != "" {
			fmt.Fprintf(w, "         → %s\n", ui.Clean(v.Remedy))
		}
	}
	if len(passed) > 0 {
		fmt.Fprintf(w, "  pass: %s\n", strings.Join(passed, ", "))
	}
}

// Verdict is one verdict as a sentence.
func Verdict(v gates.Verdict) string {
	s := v.Code
	if v.Pool != "" {
		s += " (pool " + v.Pool + ")"
	}
	if v.Asked != "" {
		s += ": asks for " + v.Asked + ";"
	} else {
		s += ":"
	}
	s += " " + v.Found
	if !v.Until.IsZero() {
		s += ", until " + v.Until.Local().Format("2006-01-02 15:04")
	}
	return s
}

// Bytes is a size in binary units.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func some(list []string, limit int) string {
	if len(list) > limit {
		return strings.Join(list[:limit], ", ") + fmt.Sprintf(" and %d more", len(list)-limit)
	}
	return strings.Join(list, ", ")
}

func short(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if s == "" {
		return "0m"
	}
	return s
}
