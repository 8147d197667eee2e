package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const notInstalled = "not installed"

// row is one command of a table.
type row struct {
	name    string
	dir     string
	env     []string // besides the caller's
	argv    []string
	before  func(ctx context.Context, run int) error // puts back what the command changes; not timed
	after   func(output string) error                // sees what the command printed; not timed
	missing string                                   // why the row is not run

	wall, cpu []time.Duration
	rss       int64  // most memory of any run, KiB
	note      string // what else there is to say, such as bytes
}

// bash is a command line of the shell, whose first argument is $1.
func bash(script string, args ...string) []string {
	return append([]string{"bash", "-c", "set -o pipefail; " + script, "bash"}, args...)
}

// table is rows that are compared with its first.
type table struct {
	title string
	rows  []*row
}

// measure runs the rows in turn, so that what else the machine does hits all of
// them alike. A row that fails says so and is not run again.
func (b *bench) measure(ctx context.Context, t *table) error {
	for run := 0; run <= b.runs; run++ {
		for _, r := range t.rows {
			if r.missing != "" {
				continue
			}
			if err := r.once(ctx, run); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.missing = err.Error()
			}
		}
	}
	b.print(t)
	return nil
}

// once runs the command. Run 0 warms the caches and is not counted.
func (r *row) once(ctx context.Context, run int) error {
	if r.before != nil {
		if err := r.before(ctx, run); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, r.argv[0], r.argv[1:]...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), r.env...)
	cmd.WaitDelay = time.Second // children of a killed shell hold its pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		return fmt.Errorf("%w: %s", err, oneLine(stderr.String()+stdout.String()))
	}
	if run > 0 {
		r.wall = append(r.wall, wall)
		// of the whole tree: a shell has waited for its children
		r.cpu = append(r.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.rss = max(r.rss, usage.Maxrss)
		}
	}
	if r.after != nil {
		return r.after(stdout.String())
	}
	return nil
}

func (b *bench) print(t *table) {
	fmt.Fprintf(b.out, "\n%s\n%-46s %10s %10s %8s %8s %9s\n", t.title, "", "wall", "CPU", "wall ×", "CPU ×", "most RSS")
	base := t.rows[0]
	for _, r := range t.rows {
		if len(r.wall) == 0 {
			fmt.Fprintf(b.out, "%-46s not run: %s\n", r.name, cmp.Or(r.missing, "-n 0"))
			continue
		}
		wallRatio, cpuRatio := "", ""
		if len(base.wall) > 0 {
			wallRatio, cpuRatio = ratio(median(r.wall), median(base.wall)), ratio(median(r.cpu), median(base.cpu))
		}
		fmt.Fprintf(b.out, "%-46s %10s %10s %8s %8s %5d MiB  %s\n", r.name, ms(median(r.wall)), ms(median(r.cpu)), wallRatio, cpuRatio, r.rss>>10, r.note)
		if r.missing != "" {
			fmt.Fprintf(b.out, "%-46s stopped after %d runs: %s\n", "", len(r.wall), r.missing)
		}
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func ratio(a, b time.Duration) string {
	if b <= 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), 300)]
}

// need is why a command cannot run: "" where it can.
func need(commands ...string) string {
	for _, name := range commands {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is " + notInstalled
		}
	}
	return ""
}

// empty makes sure that a directory is there and has nothing in it.
func empty(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}
