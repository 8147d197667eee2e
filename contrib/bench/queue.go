package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/ledger"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// queue times tp status and tp job ls over a ledger of many runs whose active
// ones are real jobs, held in the queue of a real cluster until the end.
func (b *bench) queue(ctx context.Context) error {
	if why := needCluster(); why != "" {
		fmt.Fprintf(b.out, "\nqueue\nnot run: %s\n", why)
		return nil
	}
	total, active := b.ledgerRuns, b.jobs
	if b.small {
		total, active = min(total, 500), min(active, 20)
	}
	state := filepath.Join(b.dir, "state")
	site, err := b.siteCopy(filepath.Join(b.dir, "runs"))
	if err != nil {
		return err
	}
	ids, err := b.fill(ctx, active)
	defer cancelAll(ids)
	if err != nil {
		return err
	}
	user, err := output(ctx, "id", "-un")
	if err != nil {
		return err
	}
	cluster, err := clusterName(ctx)
	if err != nil {
		return err
	}
	if err := writeLedger(filepath.Join(b.dir, "runs"), user, cluster, total, ids); err != nil {
		return err
	}
	waiting, err := output(ctx, "squeue", "--noheader", "--all", "--format=%A")
	if err != nil {
		return err
	}
	env := []string{"TP_SITE=" + site, "XDG_STATE_HOME=" + state, "XDG_CONFIG_HOME=" + state}
	tp := func(name string, args ...string) *row {
		return &row{name: name, env: env, argv: append([]string{b.tp}, args...)}
	}
	first := tp("tp status, without an index", "status")
	first.before = func(context.Context, int) error { return os.RemoveAll(filepath.Join(state, "tp")) }
	t := &table{title: fmt.Sprintf("%d runs, %d of them active; %d records in the queue", total, active, strings.Count(waiting, "\n")+1), rows: []*row{
		{name: "squeue --me", argv: []string{"squeue", "--me", "--noheader", "--states=all"}},
		first,
		tp("tp status", "status"),
		tp("tp job ls", "job", "ls"),
		tp("tp job ls --all", "job", "ls", "--all"),
	}}
	return b.measure(ctx, t)
}

// siteCopy is the site file with a run root of our own.
func (b *bench) siteCopy(root string) (string, error) {
	text, err := os.ReadFile(os.Getenv("TP_SITE"))
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "run_root") {
			lines = append(lines, line)
		}
	}
	path := filepath.Join(b.dir, "site.toml")
	if err := os.Mkdir(root, 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(fmt.Sprintf("run_root = %q\n", root)+strings.Join(lines, "")), 0o600)
}

func output(ctx context.Context, argv ...string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", argv[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

func clusterName(ctx context.Context) (string, error) {
	out, err := output(ctx, "scontrol", "show", "config")
	return slurm.ParseConfig(out).Get("ClusterName"), err
}

// fill queues held jobs, named as runs are. They stay held: nothing of them
// ever starts.
func (b *bench) fill(ctx context.Context, n int) ([]slurm.JobID, error) {
	ids := make([]slurm.JobID, n)
	var done sync.Mutex
	var queued []slurm.JobID
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range ids {
		group.Go(func() error {
			cmd := exec.CommandContext(ctx, "sbatch", "--parsable", "--hold", "--time=1", "--output=/dev/null", "--job-name="+jobName(i))
			cmd.Stdin = strings.NewReader("#!/bin/sh\ntrue\n")
			out, err := cmd.Output()
			if err != nil {
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					err = fmt.Errorf("%w: %s", err, oneLine(string(exit.Stderr)))
				}
				return fmt.Errorf("sbatch: %w", err)
			}
			id, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";")
			number, err := strconv.ParseUint(id, 10, 32)
			ids[i] = slurm.JobID(number)
			done.Lock()
			queued = append(queued, ids[i])
			done.Unlock()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return queued, err
	}
	return ids, nil
}

// cancelAll ends the jobs, also after an interrupt.
func cancelAll(ids []slurm.JobID) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for len(ids) > 0 {
		n := min(len(ids), 500)
		args := make([]string, n)
		for i, id := range ids[:n] {
			args[i] = id.String()
		}
		_ = exec.CommandContext(ctx, "scancel", args...).Run() // what has gone needs none
		ids = ids[n:]
	}
}

func runID(i int) ledger.ID   { return ledger.ID(fmt.Sprintf("%s%012x", ledger.IDPrefix, i)) }
func experiment(i int) string { return fmt.Sprint("sweep", i%20) }
func jobName(i int) string    { return ledger.Header{ID: runID(i), Experiment: experiment(i)}.JobName() }
func created(i int) time.Time { return time.Now().Add(-time.Duration(i) * time.Minute).UTC() }
func ended(i int) ledger.State {
	return []ledger.State{ledger.Succeeded, ledger.Failed, ledger.Timeout}[i%3]
}

// writeLedger makes run directories as tp leaves them, without syncing each: the
// active ones are the newest, and were queued as the ids say.
func writeLedger(root, user, cluster string, total int, ids []slurm.JobID) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for i := range total {
		h := ledger.Header{ID: runID(i), User: user, Experiment: experiment(i), Name: experiment(i), Recipe: "custom/custom", Cluster: cluster,
			PlanDigest: strings.Repeat("0", 64), BundleDigest: strings.Repeat("1", 64), Created: created(i), GPUs: 8,
			Pools: []spec.Pool{{Name: "train", Roles: []string{"train"}, Series: "h200", GRES: "gpu:h200", Nodes: 1, GPUsPerNode: 8, CPUsPerNode: 64, MemoryMiB: 1000000, Partition: "h200", TimeMinutes: 60}}}
		data, err := json.Marshal(h)
		if err != nil {
			return err
		}
		id := slurm.JobID(1 + i)
		if i < len(ids) {
			id = ids[i]
		}
		events := []ledger.Event{
			{Type: ledger.Created, Data: data},
			{Type: ledger.Staged},
			{Type: ledger.Intent, Attempt: 1, Token: "0123456789abcdef", JobName: jobName(i)},
			{Type: ledger.Submitted, Attempt: 1, JobID: id, JobName: jobName(i)},
		}
		if i >= len(ids) {
			events = append(events, ledger.Event{Type: ledger.Changed, Attempt: 1, JobID: id, State: ledger.Running},
				ledger.Event{Type: ledger.Changed, Attempt: 1, JobID: id, State: ended(i)})
		}
		var text bytes.Buffer
		for n, e := range events {
			e.Time, e.Seq, e.Host = created(i), uint64(n+1), host
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			text.Write(append(line, '\n'))
		}
		dir := ledger.Dir(root, user, experiment(i), runID(i))
		for _, d := range ledger.Dirs {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), text.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}
