package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const rayRecipe = `launcher = "ray"
config = "none"
roles = ["train", "rollout", "reward"]
[params.start_timeout]
type = "int"
doc = "seconds that Ray's nodes may take"`

// rayDriver says what it sees of Ray and of Slurm, and waits for the test.
const rayDriver = `import json, os, sys, time
import ray
ray.init()
out = os.environ["TP_OUT_DIR"]
with open(out + "/driver.tmp", "w") as f:
    json.dump({"nodes": ray.nodes(), "resources": ray.cluster_resources(), "env": dict(os.environ)}, f)
os.rename(out + "/driver.tmp", out + "/driver.json")
print("driver runs", flush=True)
while not os.path.exists(out + "/stop"):
    time.sleep(0.2)
sys.exit(int(open(out + "/stop").read() or 0))
`

// rayNode is what a stand-in wrote about itself.
type rayNode struct {
	Options map[string]any
	Given   []string
	Env     map[string]string
	Session string
	Node    string
}

func (w *world) ray(l launch) (runDir, job string) {
	w.Helper()
	if r := w.slurm("python3", "--version"); r.code != 0 {
		w.Skip("no python3 in this world: " + lastLine(r.err))
	}
	tools := filepath.Join(w.dir, "ray")
	w.ok(os.CopyFS(tools, os.DirFS("testdata/ray")))
	l.recipe, l.path = rayRecipe, tools+"/bin"
	l.env = append(l.env, "PYTHONPATH="+tools+"/lib", "PYTHONDONTWRITEBYTECODE=1")
	if l.files == nil {
		l.files = map[string]string{"train.py": rayDriver}
	}
	if l.profiles == nil {
		l.profiles = []string{"train=h200:2x2", "rollout,reward=h100:2x1"}
	}
	return w.start(l)
}

// One Ray cluster of two pools on four nodes. Each node has its pool's GPUs and
// resource, none of what Slurm says of tasks, ports of its own, and a token; a
// step starts beside it; in the end nothing is left.
func TestRayCluster(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		dir, job := w.ray(launch{env: []string{"FAKE_RAY_LATE=rollout.1:4", "PMI_RANK=3", "OMPI_COMM_WORLD_RANK=3"}})
		type driver struct {
			Nodes []struct {
				Alive     bool
				Resources map[string]float64
			}
			Resources map[string]float64
			Env       map[string]string
		}
		d := into[driver](w, dir, job, "out/driver.json")
		for name, want := range map[string]float64{"GPU": 6, "tp_pool_train": 4, "tp_pool_rollout": 2, "CPU": 8} {
			if d.Resources[name] != want {
				w.Errorf("Ray has %g %s, wanted %g", d.Resources[name], name, want)
			}
		}
		for _, n := range d.Nodes {
			gpus := map[bool]float64{true: 2, false: 1}[n.Resources["tp_pool_train"] > 0]
			if !n.Alive || n.Resources["GPU"] != gpus || n.Resources["tp_pool_train"]+n.Resources["tp_pool_rollout"] != gpus {
				w.Errorf("a node of Ray has %v", n.Resources)
			}
		}
		if d.Env["RAY_ADDRESS"] != d.Env["TP_ROLE_TRAIN_ENDPOINT"] || d.Env["TP_NODE_RANK"] != "0" {
			w.Errorf("the driver's RAY_ADDRESS is %q, TP_NODE_RANK %q", d.Env["RAY_ADDRESS"], d.Env["TP_NODE_RANK"])
		}
		w.unscrubbed("the driver", d.Env)
		ports := map[float64]string{}
		for pool, shape := range map[string]struct {
			nodes []string
			gpus  int
		}{"train": {[]string{"h200-1", "h200-2"}, 2}, "rollout": {[]string{"h100-1", "h100-2"}, 1}} {
			for rank, node := range shape.nodes {
				n := into[rayNode](w, dir, job, fmt.Sprintf("out/ray.%s.%d.json", pool, rank))
				who := fmt.Sprintf("rank %d of %s", rank, pool)
				w.unscrubbed(who, n.Env)
				if n.Node != node {
					w.Errorf("%s runs on %s, wanted %s", who, n.Node, node)
				}
				if got := strings.Split(n.Env["CUDA_VISIBLE_DEVICES"], ","); len(got) != shape.gpus {
					w.Errorf("%s sees the GPUs %q", who, got)
				}
				if n.Options["--num-gpus"] != float64(shape.gpus) || n.Options["--num-cpus"] != float64(2) || n.Options["--node-ip-address"] != "127.0.0.1" {
					w.Errorf("%s: %v", who, n.Given)
				}
				if size, _ := n.Options["--object-store-memory"].(float64); size > 3<<29*2*0.4 && size > 2<<30 {
					w.Errorf("%s has %g bytes for objects, of the job's 2 GiB", who, size)
				}
				if n.Env["RAY_AUTH_MODE"] != "token" {
					w.Errorf("%s has no authentication: %q", who, n.Env["RAY_AUTH_MODE"])
				}
				if at := filepath.Join(n.Session, "sockets/plasma_store"); len(at) > 107 {
					w.Errorf("%s: %s has %d bytes", who, at, len(at))
				}
				for _, name := range []string{"--port", "--dashboard-port", "--ray-client-server-port", "--node-manager-port", "--object-manager-port",
					"--runtime-env-agent-port", "--dashboard-agent-listen-port", "--dashboard-agent-grpc-port", "--metrics-export-port"} {
					if !slices.ContainsFunc(n.Given, func(word string) bool { return strings.HasPrefix(word, name+"=") }) {
						if head := who == "rank 0 of train"; head || !slices.Contains([]string{"--port", "--dashboard-port", "--ray-client-server-port"}, name) {
							w.Errorf("%s leaves %s to chance", who, name)
						}
						continue
					}
					port, _ := n.Options[name].(float64)
					if other := ports[port]; other != "" || port < 1024 {
						w.Errorf("%s %s is %g, as is %s", who, name, port, other)
					}
					ports[port] = who + " " + name
				}
			}
		}
		head := into[rayNode](w, dir, job, "out/ray.train.0.json")
		if head.Options["--dashboard-host"] != "127.0.0.1" {
			w.Errorf("the dashboard listens on %v", head.Options["--dashboard-host"])
		}
		secret, err := os.Stat(head.Env["RAY_AUTH_TOKEN_PATH"])
		w.ok(err)
		if secret.Mode().Perm() != 0o600 || secret.Size() != 64 {
			w.Errorf("the token has mode %v and %d bytes", secret.Mode(), secret.Size())
		}
		for group := range 2 {
			began := time.Now()
			args := []string{"timeout", "20", "srun", "--jobid=" + job, fmt.Sprintf("--het-group=%d", group), "--overlap", "--gres=none", "--mpi=none", "-N2", "-n2", "-c1", "true"}
			if r := w.slurm(args...); r.code != 0 || time.Since(began) > 10*time.Second {
				w.Errorf("a step beside Ray on group %d: exit code %d after %s\n%s", group, r.code, time.Since(began), r.err)
			}
		}
		log := w.read(dir, "logs", "train.node0.log")
		for _, text := range []string{"Ray is complete after", "4 nodes, CPU 8, GPU 6, tp_pool_rollout 2, tp_pool_train 4", "Ray before 2.52 has no authentication"} {
			if !strings.Contains(log, text) {
				w.Errorf("the driver's log does not say %q:\n%s", text, log)
			}
		}
		w.touch(dir, "stop")
		w.mustEnd(dir, job, "SUCCEEDED", "role train ended well")
		w.gone(head.Env["RAY_TMPDIR"], job)
	})
}

// unscrubbed reports variables that would make a process of Ray believe that it
// is a task of Slurm or of MPI.
func (w *world) unscrubbed(who string, env map[string]string) {
	w.Helper()
	for name := range env {
		for _, prefix := range []string{"SLURM_", "PMI_", "PMIX_", "OMPI_"} {
			if strings.HasPrefix(name, prefix) {
				w.Errorf("%s has the variable %s", who, name)
			}
		}
	}
}

// gone waits until a run's Ray has left nothing: no process, no directory.
func (w *world) gone(tmp, job string) {
	w.Helper()
	w.waitFor(30*time.Second, "the end of job "+job, func() bool { return !slices.Contains(w.jobs("PD,R,CG"), job) })
	w.waitFor(5*time.Second, tmp+" to be removed", func() bool { return w.slurm("test", "-e", tmp).code != 0 })
	// Nothing may be left but the sleep of a loop that was killed, for its second.
	left := func(sleeps bool) (list []string) {
		files, err := filepath.Glob("/proc/[0-9]*/environ")
		w.ok(err)
		for _, file := range files {
			text, _ := os.ReadFile(file)
			words, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			if strings.Contains(string(text), "RAY_TMPDIR="+tmp+"\x00") && (sleeps || string(words) != "sleep\x001\x00") {
				list = append(list, fmt.Sprintf("%s %q", file, words))
			}
		}
		return list
	}
	if list := left(false); len(list) > 0 {
		w.Errorf("left of Ray: %s", list)
	}
	w.waitFor(2*time.Second, "the last sleep to end", func() bool { return len(left(true)) == 0 })
}

// A driver that fails ends the run with its own exit code.
func TestRayDriverFails(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.ray(launch{profiles: []string{"h200:2x1"}, files: map[string]string{"train.py": "import sys, ray\nray.init()\nsys.exit(7)\n"}})
		if e := w.mustEnd(dir, job, "FAILED", "role train failed with exit code 7"); e.Exit != 7 || e.Node != "h200-1" {
			w.Errorf("%+v", e)
		}
	})
}

// A node whose Ray dies ends the run at once; its pool and node are named.
func TestRayNodeDies(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		dir, job := w.ray(launch{})
		w.soon(dir, job, "out/driver.json")
		tmp := into[rayNode](w, dir, job, "out/ray.rollout.1.json").Env["RAY_TMPDIR"]
		began := time.Now()
		w.touch(dir, "die.rollout.1")
		e := w.mustEnd(dir, job, "FAILED", "role ray-rollout failed with exit code 70: Ray on h100-2 (pool rollout) ended with exit code 1")
		if e.Node != "h100-2" || time.Since(began) > 20*time.Second {
			w.Errorf("%+v after %s", e, time.Since(began))
		}
		if log := w.read(dir, "logs", "ray-rollout.node1.log"); !strings.Contains(log, "the stand-in's raylet of") {
			w.Errorf("the log does not show what Ray wrote last:\n%s", log)
		}
		w.gone(tmp, job)
	})
}

// The head dies while the driver runs; the driver is not waited for.
func TestRayHeadDies(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.ray(launch{profiles: []string{"h200:1"}})
		w.soon(dir, job, "out/driver.json")
		w.touch(dir, "die.train.0")
		w.mustEnd(dir, job, "FAILED", "role train failed with exit code 70: Ray on the head, h200-1, ended before the driver")
	})
}

// A cancelled run's Ray ends on every node; nobody is to blame.
func TestRayIsCancelled(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		dir, job := w.ray(launch{})
		w.soon(dir, job, "out/driver.json")
		tmp := into[rayNode](w, dir, job, "out/ray.rollout.0.json").Env["RAY_TMPDIR"]
		w.must("scancel", job)
		w.mustEnd(dir, job, "CANCELLED", "cancelled after ")
		w.gone(tmp, job)
	})
}

// A node that does not join in time is named, and the driver never starts.
func TestRayIncomplete(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		dir, job := w.ray(launch{env: []string{"FAKE_RAY_LATE=rollout.1:300"}, set: []string{"start_timeout=6"}})
		w.mustEnd(dir, job, "FAILED", "role train failed with exit code 70", "Ray is not complete after 6 s: 1 of 2 nodes of pool rollout")
		if w.read(dir, "out", "driver.json") != "" {
			w.Error("the driver ran")
		}
	})
}

// A port that somebody has taken since tp looked ends the run with Ray's words.
func TestRayPortIsTaken(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.ray(launch{profiles: []string{"h200:2x1"}, env: []string{"FAKE_RAY_SQUAT=train.1"}})
		w.mustEnd(dir, job, "FAILED", "role ray-train failed with exit code 70: Ray on h200-2 (pool train) ended with exit code 1")
		if log := w.read(dir, "logs", "ray-train.node1.log"); !strings.Contains(log, "Address already in use") {
			w.Errorf("the node's log:\n%s", log)
		}
	})
}

// The stand-in refuses what Ray refuses, or it would prove nothing.
func TestRayStandIn(t *testing.T) {
	text, err := os.ReadFile("testdata/ray/start.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Options map[string]any }
	if err := json.Unmarshal(text, &table); err != nil || len(table.Options) < 20 {
		t.Fatalf("%v, %d options", err, len(table.Options))
	}
	for args, want := range map[string]string{
		"start --head --gpus=1":                                 "No such option: --gpus",
		"start --head --block=1":                                "does not take a value",
		"start --head --port=x":                                 "'x' is not a valid int",
		"start --block":                                         "`--address` is a required flag",
		"start --address=a:1 --port=1":                          "`--port` should only be specified when starting head node",
		"start --head --min-worker-port=80":                     "max_worker_port",
		"start --head --block extra":                            "Got unexpected extra argument (extra)",
		"start --address=a:1 --temp-dir=/nowhere --resources={": "is not a valid json",
		"stop": "No such command 'stop'",
	} {
		out, err := command("testdata/ray/bin/ray", strings.Fields(args)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("ray %s: %v, %s", args, err, out)
		}
	}
}
