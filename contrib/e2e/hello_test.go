package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/bundle/store"
)

// useS3 keeps bundles in the devcluster's S3 server instead of a directory,
// under a prefix of this test's own.
func (w *world) useS3() {
	w.Helper()
	text := w.read(devclusterDir(), "site-"+w.release+".toml")
	_, objects, ok := strings.Cut(text, "[objects]\n")
	objects, _, _ = strings.Cut(objects, "\n\n")
	if !ok || !strings.Contains(objects, `kind = "s3"`) {
		w.Skip("no S3 server is up: contrib/devcluster s3")
	}
	prefix := "e2e" + strings.TrimPrefix(w.dir, filepath.Dir(folder)) + "/"
	w.edit(`(?ms)^\[objects\].*?\n\n`, "[objects]\n"+objects+"\nprefix = \""+prefix+"\"\n\n")
	value := func(key string) string {
		_, after, _ := strings.Cut(objects, key+` = "`)
		text, _, _ := strings.Cut(after, `"`)
		return text
	}
	st, err := store.Open(store.Config{
		Kind: store.KindS3, Endpoint: value("endpoint"), Bucket: value("bucket"), Region: value("region"), Prefix: prefix + "alice/", Credentials: value("credentials"),
	})
	w.ok(err)
	w.Cleanup(func() {
		list, err := st.List(context.Background(), "")
		for _, o := range list {
			err = errors.Join(err, st.Delete(context.Background(), o.Name))
		}
		if err != nil || len(list) == 0 {
			w.Errorf("removing the %d objects of this test: %v", len(list), err)
		}
	})
}

// rewards are those of the steps, in order.
func (w *world) rewards(dir string) []float64 {
	w.Helper()
	var out []float64
	for line := range strings.Lines(w.read(dir, "out", "metrics.jsonl")) {
		var m struct {
			Reward float64 `json:"reward"`
		}
		w.ok(json.Unmarshal([]byte(line), &m))
		out = append(out, m.Reward)
	}
	return out
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

func TestHelloPools(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.useS3()
		w.exampleLab()
		w.commit()
		s := w.submit("hello-pools", "--profile", "train=h200:8", "--profile", "rollout=h100:4", "--env", "STEPS=40")
		if len(s.Differences) > 0 {
			w.Errorf("shown and queued differ: %q", s.Differences)
		}
		w.wait(s.RunDir, "SUCCEEDED")

		jobs := w.scontrol(s.job())
		if len(jobs) != 2 || jobs[0]["Partition"] != "h200" || jobs[1]["Partition"] != "h100" {
			w.Errorf("components %v, wanted one in h200 and one in h100", jobs)
		}
		r := w.rewards(s.RunDir)
		if len(r) != 40 || mean(r[35:]) < mean(r[:5])+0.1 {
			w.Errorf("the rewards of 40 steps do not rise: %v", r)
		}
		w.shipped(s.RunDir)

		logs := w.tp("job", "logs", s.RunID) // follows until the end, which is now
		for _, part := range []string{"train/0:   step   40/40", "rollout/0: rollout 0 of 1 listens on", "SUCCEEDED"} {
			if !strings.Contains(logs.out, part) {
				w.Errorf("tp job logs does not show %q:\n%s", part, logs.out)
			}
		}
		if only := w.tp("job", "logs", s.RunID, "--role", "rollout", "-n", "0").out; strings.Contains(only, "train/0") || !strings.Contains(only, "rollout/0: ") {
			w.Errorf("tp job logs --role rollout:\n%s", only)
		}
		if text := w.tp("job", "status", s.RunID).out; !strings.Contains(text, "step 40") {
			w.Errorf("tp job status shows no metrics:\n%s", text)
		}
	})
}

// shipped compares the code that the nodes fetched from S3 with the lab.
func (w *world) shipped(dir string) {
	w.Helper()
	links, err := os.Stat(filepath.Join(dir, "bundle.curl"))
	w.ok(err)
	if links.Mode().Perm() != 0o600 {
		w.Errorf("bundle.curl, which has signed links, has mode %v", links.Mode())
	}
	files := 0
	w.ok(filepath.WalkDir(filepath.Join(dir, "code"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "__pycache__") || d.Name() == ".tp-bundle" {
			return err
		}
		name := strings.TrimPrefix(path, filepath.Join(dir, "code")+"/")
		if w.read(path) != w.read(w.lab, name) {
			w.Errorf("%s is not what the lab has", name)
		}
		files++
		return nil
	}))
	if files < 10 {
		w.Errorf("only %d files were shipped", files)
	}
	for _, name := range []string{"experiments/hello-pools", "common", "configs"} {
		entries, err := os.ReadDir(filepath.Join(w.lab, name))
		w.ok(err)
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(dir, "code", name, e.Name())); err != nil {
				w.Error(err)
			}
		}
	}
}

// TestHelloPoolsShareAPool has both roles on the same devices of one node.
func TestHelloPoolsShareAPool(t *testing.T) {
	each(t, func(w *world) {
		w.exampleLab()
		w.commit()
		s := w.submit("hello-pools", "--profile", "train,rollout=h200:2", "--env", "STEPS=6")
		w.wait(s.RunDir, "SUCCEEDED")
		if jobs := w.scontrol(s.job()); len(jobs) != 1 || jobs[0]["HetJobId"] != "" {
			w.Errorf("a shared pool is a plain job, found %v", jobs)
		}
		if r := w.rewards(s.RunDir); len(r) != 6 {
			w.Errorf("rewards %v", r)
		}
	})
}

func TestHelloPoolsOnTwoRolloutNodes(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.exampleLab()
		w.commit()
		s := w.submit("hello-pools", "--profile", "train=h200:1", "--profile", "rollout=h100:2x4", "--env", "STEPS=6")
		w.wait(s.RunDir, "SUCCEEDED")
		if log := w.read(s.RunDir, "logs", "train.node0.log"); !strings.Contains(log, "rollout nodes: 2") {
			w.Errorf("train found not two rollout nodes:\n%s", log)
		}
		for _, name := range []string{"rollout.node0.log", "rollout.node1.log"} {
			if !strings.Contains(w.read(s.RunDir, "logs", name), "listens on") {
				w.Errorf("%s: %q", name, w.read(s.RunDir, "logs", name))
			}
		}
	})
}

func TestPytorchDDP(t *testing.T) {
	each(t, func(w *world) {
		if r := w.slurm("python3", "-c", "import torch"); r.code != 0 {
			w.Skip("no torch in this world: " + lastLine(r.err))
		}
		w.exampleLab()
		w.commit()
		s := w.submit("cnn-ddp", "--profile", "h200:2", "-s", "epochs=1", "-s", "train_images=256", "-s", "test_images=64")
		w.wait(s.RunDir, "SUCCEEDED")
		if report := w.read(s.RunDir, "out", "eval", "report.json"); !strings.Contains(report, "accuracy") {
			w.Errorf("eval/report.json is %q", report)
		}
	})
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
