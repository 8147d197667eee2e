// Command bench times tp beside what people use instead, in the same run, and
// prints medians and ratios. It makes no claim by itself: what it prints is
// true of one run on one machine. See README.md for how to read it.
//
//	go run ./contrib/bench -only startup,bundle
//	TP_SITE=… go run ./contrib/bench -only submit     as the user whose jobs are submitted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// bench is one run of the program.
type bench struct {
	out     io.Writer
	tp      string // absolute path of the binary
	dir     string // scratch, removed at the end
	runs    int
	small   bool
	lab     string // of the submissions
	exp     string
	profile string

	ledgerRuns, jobs int // of queue
}

// sections in the order they run.
var sections = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"startup", (*bench).startup},
	{"bundle", (*bench).bundle},
	{"submit", (*bench).submit},
	{"queue", (*bench).queue},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == stepArg {
		if err := step(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		stop()
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "sections, comma-separated: startup,bundle,submit,queue (default: all but queue)")
	dir := flags.String("dir", "", "where to make the trees and stores; needs 4 GB (default: the directory for temporary files)")
	flags.StringVar(&b.tp, "tp", "bin/tp", "tp binary; built into the scratch directory when it does not exist")
	flags.IntVar(&b.runs, "n", 5, "runs of each command; one more, before these, is not counted")
	flags.BoolVar(&b.small, "small", false, "small trees: to see that the bench works, not to measure")
	flags.StringVar(&b.lab, "lab", "contrib/lab", "lab to copy and submit from")
	flags.StringVar(&b.exp, "exp", "hello-pools", "experiment to submit")
	flags.StringVar(&b.profile, "profile", "train,rollout=h200:1", "profile to submit")
	flags.IntVar(&b.ledgerRuns, "runs", 20000, "runs in the ledger of queue")
	flags.IntVar(&b.jobs, "jobs", 2000, "of these, so many held in the cluster's queue")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var names, wanted []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	// queue fills the cluster's queue, so it runs when it is asked for.
	if wanted = names[:len(names)-1]; *only != "" {
		wanted = strings.Split(*only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-only %s: want some of %s", *only, strings.Join(names, ","))
		}
	}
	if b.dir, err = os.MkdirTemp(*dir, "tp-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.findTP(ctx); err != nil {
		return err
	}
	b.versions()
	for _, s := range sections {
		if slices.Contains(wanted, s.name) {
			if err := s.run(b, ctx); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// findTP takes the binary that is there, or builds one as a release is built.
func (b *bench) findTP(ctx context.Context) (err error) {
	if b.tp, err = filepath.Abs(b.tp); err != nil {
		return err
	}
	if _, err := os.Stat(b.tp); err == nil {
		return nil
	}
	b.tp = filepath.Join(b.dir, "tp")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.tp, "github.com/tuneplane/tp/cmd/tp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build tp: %w: %s", err, out)
	}
	return nil
}

// versions says what is compared, and on what.
func (b *bench) versions() {
	fmt.Fprintf(b.out, "%d CPUs (GOMAXPROCS %d), %s\n", runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.Version())
	for _, argv := range [][]string{{b.tp, "--version"}, {"git", "--version"}, {"tar", "--version"}, {"zstd", "--version"}, {"restic", "version"}, {"sbatch", "--version"}} {
		fmt.Fprintf(b.out, "%-9s %s\n", filepath.Base(argv[0]), version(argv))
	}
	fmt.Fprintf(b.out, "%-9s %s\n", "submitit", version([]string{"python3", "-c", "import submitit; print(submitit.__version__)"}))
}

func version(argv []string) string {
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		return notInstalled
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
