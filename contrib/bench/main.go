// Command bench times tp beside what people use instead, in the same run, and
// prints medians and ratios. It makes no claim by itself: a ratio of one run on
// one machine is what it prints.
//
//	go run ./contrib/bench -tp ./bin/tp -lab LAB -profile h200:1
//
// It runs as the user whose jobs are submitted, with TP_SITE and SLURM_CONF set
// (contrib/devcluster env). The jobs it submits run for a moment each.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type result struct {
	name          string
	min, med, max time.Duration
	note          string
}

func main() {
	tp := flag.String("tp", "bin/tp", "tp binary")
	lab := flag.String("lab", "", "lab directory, a clean git tree; empty: no submissions")
	exp := flag.String("exp", "hello-pools", "experiment to submit")
	profile := flag.String("profile", "train,rollout=h200:1", "profile expression")
	runs := flag.Int("n", 15, "runs per command")
	flag.Parse()
	path, err := filepath.Abs(*tp)
	if err != nil {
		fail(err)
	}
	fmt.Printf("%s; %d runs each, whole processes; first run dropped\n", first(path, "version"), *runs)
	var table []result
	table = append(table, measure("tp --help", *runs, command("", path, "--help")))
	table = append(table, measure("tp --version", *runs, command("", path, "--version")))
	table = append(table, measure("sbatch --version", *runs, command("", "sbatch", "--version")))
	if *lab != "" {
		job := filepath.Join(os.TempDir(), fmt.Sprintf("tp-bench-%d.sh", os.Getpid()))
		if err := os.WriteFile(job, []byte("#!/bin/bash\n#SBATCH --job-name=tp-bench\n#SBATCH --output=/dev/null\n#SBATCH --time=1\ntrue\n"), 0o600); err != nil {
			fail(err)
		}
		defer os.Remove(job)
		fmt.Printf("%s\n", first("sbatch", "--version"))
		table = append(table,
			measure("sbatch job.sh", *runs, command("", "sbatch", "--parsable", job)),
			measure("tp plan (nothing sent)", *runs, command(*lab, path, "plan", *exp, "--profile", *profile, "--time", "1m", "--env", "STEPS=1")),
			measure("tp submit --yes, bundle unchanged", *runs, command(*lab, path, "submit", *exp, "--profile", *profile, "--time", "1m", "--env", "STEPS=1", "--yes")))
	}
	base := map[string]time.Duration{}
	for _, r := range table {
		base[r.name] = r.med
	}
	fmt.Printf("\n%-36s %9s %9s %9s  %s\n", "command", "min", "median", "max", "beside sbatch")
	for _, r := range table {
		beside := ""
		if b := base["sbatch job.sh"]; b > 0 && strings.HasPrefix(r.name, "tp ") {
			beside = fmt.Sprintf("%.1f ×", float64(r.med)/float64(b))
		}
		fmt.Printf("%-36s %9s %9s %9s  %s %s\n", r.name, ms(r.min), ms(r.med), ms(r.max), beside, r.note)
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func command(dir string, argv ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = dir
		return c
	}
}

func measure(name string, runs int, make func() *exec.Cmd) result {
	var times []time.Duration
	for i := 0; i <= runs; i++ {
		cmd := make()
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return result{name: name, note: fmt.Sprintf("not measured: %v: %s", err, cut(out.String()))}
		}
		if i > 0 {
			times = append(times, time.Since(start))
		}
	}
	slices.SortFunc(times, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return result{name, times[0], times[len(times)/2], times[len(times)-1], ""}
}

func cut(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\n", "; "))
	return s[:min(len(s), 160)]
}

func first(argv ...string) string {
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		return argv[0] + ": " + err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
