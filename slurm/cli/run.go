// Package cli asks Slurm's own commands where slurmrestd cannot be asked:
// tokens, and the caller's own jobs as filtered by slurmctld.
//
//	tools := cli.Tools{}
//	jobs, err := tools.Mine(ctx)
package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Tools are the commands to run. The zero value finds them in PATH.
type Tools struct {
	Dir     string // directory of the commands; "" for PATH
	Cluster string // -M of every command; "" for the cluster of slurm.conf
	// Timeout of one command; default 10 s: a healthy controller answers in
	// milliseconds, and the commands themselves retry for minutes.
	Timeout time.Duration
}

// Path is what runs for a command's name.
func (t Tools) Path(name string) string {
	if t.Dir == "" {
		return name
	}
	return filepath.Join(t.Dir, name)
}

// maxOutput bounds what is kept of a command's output: 100,000 queue lines.
const maxOutput = 32 << 20

// run returns stdout. The error names the command and what it said on stderr.
func (t Tools) run(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Timeout, 10*time.Second))
	defer cancel()
	var stdout, stderr bounded
	stdout.limit, stderr.limit = maxOutput, 4<<10
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment(os.Environ())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", path, ctx.Err())
	case err != nil:
		said := strings.Join(strings.Fields(stderr.String()), " ")
		return nil, fmt.Errorf("%s: %w: %s", path, err, said)
	case stdout.over:
		return nil, fmt.Errorf("%s: more than %d MiB of output", path, maxOutput>>20)
	}
	return stdout.Bytes(), nil
}

// environment keeps what the commands need. SLURM_JWT would make them try
// the token, SQUEUE_* and SLURM_* change filters and formats.
func environment(all []string) []string {
	keep := []string{"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "LD_LIBRARY_PATH", "TZ"}
	var out []string
	for _, kv := range all {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(keep, name) {
			out = append(out, kv)
		}
	}
	return append(out, "LC_ALL=C.UTF-8")
}

// bounded is a buffer that stops keeping at its limit.
type bounded struct {
	bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); len(p) > room {
		b.over = true
		b.Buffer.Write(p[:room])
	} else {
		b.Buffer.Write(p)
	}
	return len(p), nil
}
