package local

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Snapshot is one node in one partition. Only GPUs are counted as used: CPUs
// and memory are shared out by the operating system, so a job may always start.
func (c *Client) Snapshot(ctx context.Context) (*slurm.Snapshot, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	n := slurm.Node{
		Name: c.host, Address: "127.0.0.1", State: "IDLE", Partitions: []string{Partition}, Features: []string{Partition},
		CPUs: runtime.NumCPU(), Memory: c.memory(),
	}
	running, err := c.running()
	if err != nil {
		return nil, &slurm.Error{Op: "look at this machine", Text: err.Error()}
	}
	if total := c.gpus(); total > 0 {
		n.GRES = []slurm.GRES{{Name: "gpu", Count: total}}
		used := 0
		for _, j := range running {
			used += len(j.Devices)
		}
		n.GRESUsed = []slurm.GRES{{Name: "gpu", Count: used}}
	}
	for _, j := range running {
		n.State = "MIXED"
		n.Jobs = append(n.Jobs, slurm.NodeJob{ID: j.id, Name: j.Request.Name, GRES: j.Request.Components[0].GRES})
	}
	return &slurm.Snapshot{
		Taken: time.Now(), Info: info, Nodes: []slurm.Node{n},
		Partitions: []slurm.Partition{{
			Name: Partition, State: "UP", Default: true, Nodes: c.host, TotalNodes: 1, MaxNodes: 1,
			MaxTime: slurm.Unlimited, DefaultTime: DefaultTime,
		}},
	}, nil
}

var nvidia = regexp.MustCompile(`^nvidia[0-9]+$`)

// gpus counts NVIDIA devices: those whose device file is here, which in a
// container are fewer than the driver knows; the driver's where no device file
// has been made yet. Other vendors' are not counted.
func (c *Client) gpus() int {
	n := 0
	for _, name := range names(filepath.Join(c.root, "dev")) {
		if nvidia.MatchString(name) {
			n++
		}
	}
	if n == 0 {
		n = len(names(filepath.Join(c.root, "proc/driver/nvidia/gpus")))
	}
	return n
}

func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	return list
}

// memory is MemTotal of /proc/meminfo, which counts in KiB; 0 when it cannot be read.
func (c *Client) memory() slurm.MiB {
	data, _ := os.ReadFile(filepath.Join(c.root, "proc/meminfo"))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
			return slurm.MiB(kib / 1024)
		}
	}
	return 0
}
