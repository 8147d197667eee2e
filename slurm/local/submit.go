package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm"
)

// Submit starts the job. It returns when the supervisor keeps it.
func (c *Client) Submit(ctx context.Context, r *slurm.Request) (slurm.Submitted, error) {
	warnings, err := c.Check(ctx, r)
	if err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}
	if p := r.Components[0].Partition; p != Partition {
		return slurm.Submitted{}, &slurm.Error{Op: "submit", Number: 2000, Text: "Invalid partition name specified: this machine has only " + Partition}
	}
	line, _, _ := strings.Cut(r.Script, "\n")
	interpreter := strings.SplitN(strings.TrimSpace(strings.TrimPrefix(line, "#!")), " ", 2) // as the kernel reads it
	if !strings.HasPrefix(line, "#!") || interpreter[0] == "" {
		return slurm.Submitted{}, c.refused("the script does not begin with #!")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}
	if interpreter[0] == "/bin/bash" {
		interpreter[0] = bash
	}
	if err := c.install(); err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}

	// One at a time: devices are looked at and taken here.
	keeper := durable.Keeper{Owner: "tp submit", Memory: filepath.Join(c.dir, "leases")}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	lease, err := keeper.Acquire(wait, filepath.Join(c.dir, "submit.lease"))
	if err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}
	defer lease.Release()

	devices, err := c.take(r.Components[0].GRES)
	if err != nil {
		return slurm.Submitted{}, err
	}
	j, err := c.create(r, devices)
	if err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}
	if err := c.start(j, append([]string{bash}, interpreter...)); err != nil {
		return slurm.Submitted{}, c.refused("%v", err)
	}
	return slurm.Submitted{ID: j.id, Warnings: warnings}, nil
}

func (c *Client) refused(format string, args ...any) error {
	return &slurm.Error{Op: "submit", Text: fmt.Sprintf(format, args...)}
}

// take picks free devices, or names who has them.
func (c *Client) take(want []slurm.GRES) ([]int, error) {
	total, n := c.gpus(), 0
	for _, g := range want {
		if g.Name != "gpu" || g.Type != "" {
			return nil, c.refused("this machine has no GRES %s", g)
		}
		n += g.Count
	}
	if n == 0 {
		return nil, nil
	}
	running, err := c.running()
	if err != nil {
		return nil, c.refused("%v", err)
	}
	used := map[int]bool{}
	var who []string
	for _, j := range running {
		if len(j.Devices) > 0 {
			who = append(who, fmt.Sprintf("%s (job %s)", j.Request.Name, j.id))
		}
		for _, d := range j.Devices {
			used[d] = true
		}
	}
	var free []int
	for d := range total {
		if !used[d] && len(free) < n {
			free = append(free, d)
		}
	}
	if len(free) < n {
		return nil, c.refused("%d of the %d GPUs of this machine are free, not %d; the others have %s", total-len(used), total, n, cmp.Or(strings.Join(who, ", "), "nobody: there are no more"))
	}
	return free, nil
}

// create makes jobs/<id> with everything the supervisor reads. A job counts
// from when process.json is there; what a killed tp left before that is nothing.
func (c *Client) create(r *slurm.Request, devices []int) (*job, error) {
	ids, err := c.ids()
	if err != nil {
		return nil, err
	}
	id := slurm.JobID(1)
	if len(ids) > 0 {
		id = ids[len(ids)-1] + 1
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "jobs"), 0o700); err != nil {
		return nil, err
	}
	for {
		err := os.Mkdir(c.path(id), 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		id++
	}
	j := &job{id: id, dir: c.path(id), User: c.user, Submitted: time.Now().Round(0), Devices: devices, Request: *r}
	j.Request.Script, j.Request.Env = "", nil
	document, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(j.dir, "steps"), 0o700); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{"script.sh": []byte(r.Script), "env": c.environ(j, r), "request.json": document} {
		if err := durable.WriteFile(filepath.Join(j.dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// environ is the whole environment of the script: the request's, and what Slurm
// adds to it; NAME=VALUE with a NUL after each.
func (c *Client) environ(j *job, r *slurm.Request) []byte {
	p, id := r.Components[0], j.id.String()
	vars := append([]slurm.EnvVar{}, r.Env...)
	add := func(value string, names ...string) {
		for _, name := range names {
			vars = append(vars, slurm.EnvVar{Name: name, Value: value})
		}
	}
	add(id, "SLURM_JOB_ID", "SLURM_JOBID")
	add(r.Name, "SLURM_JOB_NAME")
	add(c.user, "SLURM_JOB_USER")
	add(strconv.Itoa(os.Getuid()), "SLURM_JOB_UID")
	add(c.host, "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURMD_NODENAME", "SLURM_CLUSTER_NAME", "SLURM_SUBMIT_HOST")
	add(Partition, "SLURM_JOB_PARTITION")
	add(r.WorkDir, "SLURM_SUBMIT_DIR")
	add("1", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
	add("0", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS")
	add(strconv.Itoa(max(1, p.CPUsPerTask)), "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE")
	if p.Memory > 0 {
		add(strconv.FormatInt(int64(p.Memory), 10), "SLURM_MEM_PER_NODE")
	}
	if c.gpus() > 0 { // a job without GPUs must not find those of another
		list := make([]string, len(j.Devices))
		for i, d := range j.Devices {
			list[i] = strconv.Itoa(d)
		}
		add(strings.Join(list, ","), "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS")
		add(strconv.Itoa(len(j.Devices)), "SLURM_GPUS_ON_NODE")
	}
	// The commands find their job by it, and the supervisor all its processes;
	// the slash keeps job 1 from being the beginning of job 12.
	add(j.dir+"/", "TP_LOCAL_JOB")
	var b strings.Builder
	for _, v := range vars {
		b.WriteString(v.Name + "=" + v.Value + "\x00")
	}
	return []byte(b.String())
}

// start gives the job to a supervisor and waits until it says so. argv is bash
// and the script's interpreter.
func (c *Client) start(j *job, argv []string) error {
	log, err := os.OpenFile(expand(j.Request.Output, j), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	lock, err := os.OpenFile(filepath.Join(j.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // the supervisor's copy holds it on
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s cannot be locked: %w; set state_dir to a directory on a local disk", lock.Name(), err)
	}
	heard, said, err := os.Pipe()
	if err != nil {
		return err
	}
	defer heard.Close()
	seconds := int64(0)
	if limit := j.Request.Components[0].TimeLimit; limit > 0 {
		seconds = int64(time.Duration(limit) * c.minute / time.Second)
	}
	args := []string{filepath.Join(c.bin, "supervise"), "run", j.dir, strconv.FormatInt(seconds, 10), strconv.FormatInt(int64(c.grace/time.Second), 10)}
	cmd := exec.Command(argv[0], append(args, argv[1:]...)...)
	cmd.Dir, cmd.Env = j.Request.WorkDir, []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{lock, said}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	said.Close()
	if err != nil {
		return err
	}
	go cmd.Wait() // so that no zombie stays while this process lives
	if word, err := io.ReadAll(heard); err != nil || string(word) != "ready" {
		return fmt.Errorf("the job did not start: see %s", filepath.Join(j.dir, "supervisor.log"))
	}
	return nil
}

// expand writes out the file name pattern: %j and %A are the id, %x the name,
// %u the user, %N the node, %% a percent sign (sbatch(1), filename pattern).
func expand(pattern string, j *job) string {
	if pattern == "" {
		pattern = "slurm-%j.out"
	}
	path := strings.NewReplacer("%%", "%", "%j", j.id.String(), "%A", j.id.String(), "%x", j.Request.Name, "%u", j.User, "%N", hostname()).Replace(pattern)
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.Request.WorkDir, path)
	}
	return path
}
