package script

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

var update = flag.Bool("update", false, "rewrite golden files")

func twoPools() Program {
	gpu := func(series string, n int) []slurm.GRES {
		return []slurm.GRES{{Name: "gpu", Type: series, Count: n}}
	}
	req := &slurm.Request{
		Name:    `it's a "test" #1 $HOME \ 训练 🚀 hetjob.run-0123456789ab`,
		Comment: "tp:run-0123456789ab",
		WorkDir: "/runs/ann/hello/run-0123456789ab", Output: Pattern("/runs/ann/hello/run-0123456789ab/logs/job-") + "%j.log",
		Env: []slurm.EnvVar{
			{Name: "PATH", Value: "/usr/local/bin:/usr/bin:/bin"}, {Name: "HOME", Value: "/home/alice"}, {Name: "USER", Value: "alice"},
			{Name: "REWARDS", Value: "{\"a\": 1, \"b\": \"it's\"},\n$(id) `id` \\ 训练"},
		},
		Components: []slurm.Component{
			{Partition: "h200", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 64, Memory: 1000000, GRES: gpu("h200", 8), TimeLimit: 10},
			{Partition: "h100", Nodes: 2, TasksPerNode: 1, CPUsPerTask: 32, Memory: 500000, GRES: gpu("h100", 4), TimeLimit: 10},
		},
	}
	return Program{
		Request: req, Title: "hello · run-0123456789ab", RunID: "run-0123456789ab", RunDir: "/runs/ann/hello/run-0123456789ab", Attempt: 1,
		Vars:    []slurm.EnvVar{{Name: "TP_EXPERIMENT", Value: "it's"}},
		ExpDir:  "experiments/it's",
		StageIn: "mkdir -p \"$TP_CODE_DIR/experiments/it's\"",
		Steps: []Step{
			{Role: "train", Pool: "train", Driver: true, Component: 0, Nodes: 1, CPUs: 64, GRES: gpu("h200", 8), GPUsPerNode: 8, Needs: []string{"bash"},
				Body: "echo \"train: $REWARDS on $CUDA_VISIBLE_DEVICES; rollout at $TP_ROLE_ROLLOUT_ADDRS\"\nsleep 3\n"},
			{Role: "rollout", Pool: "rollout", Component: 1, Nodes: 2, CPUs: 32, GRES: gpu("h100", 4), GPUsPerNode: 4,
				Body: "echo \"rollout $TP_NODE_RANK: $REWARDS on $CUDA_VISIBLE_DEVICES\"\ntrap 'echo bye; exit 0' TERM; sleep 60 & wait"},
		},
	}
}

func TestRenderGolden(t *testing.T) {
	got, err := Render(twoPools())
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "two-pools.sh")
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the script differs from %s; go test ./slurm/script -update shows how", golden)
	}
}

func TestRenderIsCleanBash(t *testing.T) {
	got, err := Render(twoPools())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-n")
	cmd.Stdin = strings.NewReader(got)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("bash -n: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	cmd = exec.Command("shellcheck", "-s", "bash", "-e", "SC2016,SC2034,SC2154,SC2317", "-")
	cmd.Stdin = strings.NewReader(got)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("shellcheck: %v\n%s", err, out)
	}
}
