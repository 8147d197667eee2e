package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Submit queues the request with one sbatch.
//
// The script goes to its stdin and is stored byte for byte. #SBATCH lines in it
// hold where the request says nothing (see [Client.Check], which warns of them);
// what the request says wins. #PBS and #BSUB lines are not read. A heterogeneous
// job whose script says all of the request by itself is told nothing more: on
// the command line, options of one component reach others (see spread).
//
// The environment goes through a pipe that sbatch reads as --export-file, which
// is exact for every value: the job gets the variables of the request and those
// that sbatch and slurmd add, and no variable of the request is an option of
// sbatch. Every component reads a pipe of its own, because sbatch closes it.
// --export=ALL beside it means "with what sbatch itself adds"; without it 26.05
// drops the file's content.
func (c *Client) Submit(ctx context.Context, r *slurm.Request) (slurm.Submitted, error) {
	const op = "submit"
	out, warnings, err := c.sbatch(ctx, op, r)
	if err != nil && !out.started {
		return slurm.Submitted{}, err
	}
	via := c.o.Tools.Path("sbatch")
	id, ambiguous := submittedID(out.stdout)
	switch {
	case id != 0: // whatever else happened
		for line := range strings.Lines(out.stderr) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				warnings = append(warnings, line)
			}
		}
		return slurm.Submitted{ID: id, Warnings: warnings}, nil
	case err != nil:
		return slurm.Submitted{}, err
	case ambiguous || out.code == 0 || !spoken(out.stderr):
		text := strings.Join(strings.Fields(out.stdout+" "+out.stderr), " ")
		return slurm.Submitted{}, &slurm.Unreachable{Op: op, Via: via, Err: fmt.Errorf("ended with status %d and no job id that can be told: %.500q", out.code, text)}
	}
	return slurm.Submitted{}, failure(op, via, out)
}

// sbatch starts the command and gives it script and environment. Before it
// started, the error is ready to be returned; after it, an *slurm.Unreachable.
func (c *Client) sbatch(ctx context.Context, op string, r *slurm.Request, extra ...string) (outcome, []string, error) {
	components, warnings, err := c.arguments(ctx, r)
	if err != nil {
		var unreachable *slurm.Unreachable
		if errors.As(err, &unreachable) {
			return outcome{}, nil, err
		}
		return outcome{}, nil, fmt.Errorf("%s: %w", op, err)
	}
	environment := block(r)
	args := []string{"--parsable"}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for i, list := range components {
		if i > 0 {
			args = append(args, ":")
		}
		file, err := pipe(environment)
		if err != nil {
			return outcome{}, nil, &slurm.Unreachable{Op: op, Via: c.o.Tools.Path("sbatch"), NotSent: true, Err: err}
		}
		files = append(files, file)
		args = append(args, "--ignore-pbs", "--export=ALL", fmt.Sprintf("--export-file=%d", 3+i))
		args = append(append(args, extra...), list...)
	}
	call := c.o.Tools.call("sbatch", args...)
	call.timeout, call.stdin, call.files = c.o.SubmitTimeout, strings.NewReader(r.Script), files
	// Where nobody can put a file named 3, and that is never gone.
	call.dir = "/"
	out, err := call.run(ctx)
	if err != nil {
		return out, warnings, &slurm.Unreachable{Op: op, Via: call.path, NotSent: !out.started, Err: err}
	}
	return out, warnings, nil
}

// block is the job's environment as sbatch --export-file reads it, with what
// sbatch would have set before it read the file and srun would miss. The
// submission directory is the job's: a script that goes to $SLURM_SUBMIT_DIR
// must not land where tp happened to be.
func block(r *slurm.Request) []byte {
	vars := slices.Clone(r.Env)
	add := func(name, value string) {
		if !slices.ContainsFunc(vars, func(v slurm.EnvVar) bool { return v.Name == name }) {
			vars = append(vars, slurm.EnvVar{Name: name, Value: value})
		}
	}
	add("SLURM_SUBMIT_DIR", r.WorkDir)
	if r.Name != "" {
		add("SLURM_JOB_NAME", r.Name)
	}
	if n := r.Components[0].CPUsPerTask; n > 0 && len(r.Components) == 1 {
		add("SRUN_CPUS_PER_TASK", strconv.Itoa(n)) // srun of 22.05 and 23.02 reads only this one
	}
	var b bytes.Buffer
	for _, v := range vars {
		b.WriteString(v.Name + "=" + v.Value + "\x00")
	}
	return b.Bytes()
}

// pipe is the reading end of a pipe with content. The writer ends when all is
// read or the last reader is gone.
func pipe(content []byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, bytes.NewReader(content)) // sbatch may refuse the job before it reads
		w.Close()
	}()
	return r, nil
}

var (
	bareID   = regexp.MustCompile(`^([0-9]+)(?:;\S+)?$`)
	spokenID = regexp.MustCompile(`^Submitted batch job ([0-9]+)(?: on cluster \S+)?$`)
)

// submittedID finds the id that sbatch printed, in whatever a wrapper prints
// around it. Two different ones cannot be told apart.
func submittedID(stdout string) (id slurm.JobID, ambiguous bool) {
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		m := bareID.FindStringSubmatch(line)
		if m == nil {
			m = spokenID.FindStringSubmatch(line)
		}
		if m == nil {
			continue
		}
		n, err := strconv.ParseUint(m[1], 10, 32)
		if err != nil || n == 0 {
			continue
		}
		if id != 0 && id != slurm.JobID(n) {
			return 0, true
		}
		id = slurm.JobID(n)
	}
	return id, false
}

// Test asks the scheduler when and where the job would start, without queueing
// it. It uses up a job id.
func (c *Client) Test(ctx context.Context, r *slurm.Request) (slurm.Estimate, error) {
	const op = "test the job"
	out, _, err := c.sbatch(ctx, op, r, "--test-only")
	if err != nil {
		return slurm.Estimate{}, err
	}
	if out.code != 0 {
		return slurm.Estimate{}, failure(op, c.o.Tools.Path("sbatch"), out)
	}
	estimate := parseEstimate(out.stderr)
	if estimate.Text == "" {
		return slurm.Estimate{}, &slurm.Error{Op: op, Text: fmt.Sprintf("sbatch --test-only gives no estimate: %.500q", out.stdout+out.stderr)}
	}
	return estimate, nil
}

// 26.05.5 prints a stray letter behind the time; for a heterogeneous job there
// is no partition, and "nodes" is missing.
var estimate = regexp.MustCompile(`^(?:sbatch: )?(Job [0-9]+ to start at (\S+)(?: \w)? using ([0-9]+) processors on (?:nodes )?(\S+)(?: in partition (\S+))?)$`)

func parseEstimate(stderr string) (e slurm.Estimate) {
	for line := range strings.Lines(stderr) {
		m := estimate.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		e = slurm.Estimate{Text: m[1], Start: clock(m[2]), Nodes: m[4], Partition: m[5]}
		e.CPUs, _ = strconv.Atoi(m[3])
		if e.Start.IsZero() {
			e.Start, _ = time.Parse(time.RFC3339, m[2])
		}
	}
	return e
}
