package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seen is what a stand-in for a framework wrote about itself.
type seen struct {
	Argv    []string
	Dir     string
	Env     map[string]string
	Nodes   []rayShape
	Bundles map[string][]map[string]float64
}

type rayShape struct{ Resources map[string]float64 }

// catalogued makes an experiment from the catalogue's template, with stand-ins
// for what the framework needs on the nodes, and commits it.
func (w *world) catalogued(method string, files map[string]string) (name, tools string) {
	w.Helper()
	if r := w.slurm("python3", "--version"); r.code != 0 {
		w.Skip("no python3 in this world: " + lastLine(r.err))
	}
	tools = filepath.Join(w.dir, "tools")
	w.ok(os.CopyFS(tools, os.DirFS("testdata/frameworks")))
	w.ok(os.CopyFS(filepath.Join(tools, "ray"), os.DirFS("testdata/ray")))
	var fields strings.Builder
	for line := range strings.Lines(w.read("../../recipes/catalog/trl/schema/grpo.tsv")) {
		if key, _, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			fields.WriteString(key + "\n")
		}
	}
	w.ok(os.WriteFile(filepath.Join(tools, "lib", "trl", "fields.txt"), []byte(fields.String()), 0o644))
	path := []string{tools + "/lib", tools + "/ray/lib"}
	if r := w.slurm("python3", "-c", "import torch, yaml"); r.code != 0 {
		path = append(path, tools+"/missing")
	}
	name, _, _ = strings.Cut(method, "/")
	if r := w.tp("new", name, "--method", method); r.code != 0 {
		w.Fatalf("tp new: exit code %d\n%s", r.code, r.err)
	}
	dir := "experiments/" + name + "/"
	w.write(dir+"job.toml", fmt.Sprintf("time = \"5m\"\ncpus_per_node = 2\nmem = \"2G\"\nprolog = ['export PATH=%s/bin:%s/ray/bin:/usr/bin:/bin']\n[env]\nPYTHONPATH = %q\nPYTHONDONTWRITEBYTECODE = \"1\"\nGLOO_SOCKET_IFNAME = \"lo\"\nOMP_NUM_THREADS = \"1\"\nno_proxy = \"*\"\nNEMO_RL_DIR = %q\n",
		tools, tools, strings.Join(path, ":"), tools+"/nemo-rl"))
	for file, text := range files {
		w.write(dir+file, text)
	}
	for _, data := range []string{"model/config.json", "train.parquet", "test.parquet"} {
		file := filepath.Join(w.dir, "data", data)
		w.ok(os.MkdirAll(filepath.Dir(file), 0o755))
		w.ok(os.WriteFile(file, []byte("{}"), 0o644))
	}
	w.commit()
	return name, tools
}

// data is a path below the test's model and data.
func (w *world) data(name string) string { return filepath.Join(w.dir, "data", name) }

// called compares the words of a command with what they must be.
func (w *world) called(who string, got, want []string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s was called with\n  %s\nwanted\n  %s", who, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// vars compares some variables of a process.
func (w *world) vars(who string, env map[string]string, want ...string) {
	w.Helper()
	for i := 0; i < len(want); i += 2 {
		if env[want[i]] != want[i+1] {
			w.Errorf("%s has %s=%q, wanted %q", who, want[i], env[want[i]], want[i+1])
		}
	}
}

// alone holds a pool of one node against the series that it must be on; the
// process that is asked runs there.
func (w *world) alone(who string, env map[string]string, pool, series string) {
	w.Helper()
	node := env["TP_POOL_"+strings.ToUpper(pool)+"_NODES"]
	if node != series+"-1" && node != series+"-2" || env["TP_POOL"] == pool && env["SLURMD_NODENAME"] != node {
		w.Errorf("%s on %s says that pool %s is on %q, wanted a node of %s", who, env["SLURMD_NODENAME"], pool, node, series)
	}
}

// gpus counts the GPUs that a process sees.
func (w *world) gpus(who string, env map[string]string, want int) {
	w.Helper()
	if got := strings.FieldsFunc(env["CUDA_VISIBLE_DEVICES"], func(r rune) bool { return r == ',' }); len(got) != want {
		w.Errorf("%s sees the GPUs %q, wanted %d", who, got, want)
	}
}

// rayNodes checks the nodes of Ray by pool: how many, and the GPUs of each.
func (w *world) rayNodes(nodes []rayShape, want map[string][2]float64) {
	w.Helper()
	got := map[string][2]float64{}
	for _, n := range nodes {
		for pool := range want {
			if n.Resources["tp_pool_"+pool] > 0 {
				got[pool] = [2]float64{got[pool][0] + 1, n.Resources["GPU"]}
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("Ray has by pool %v nodes and GPUs, wanted %v", got, want)
	}
}

// verl on two pools of different GPUs: its command, Ray's nodes, and a shim that
// keeps its placement groups on their pools.
func TestCatalogueVerl(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		name, _ := w.catalogued("verl/grpo", nil)
		s := w.submit(name, "--profile", "train=h200:2", "--profile", "rollout=h100:2x1", "--model", w.data("model"), "--train-data", w.data("train.parquet"),
			"--validation-data", w.data("test.parquet"), "-s", "learning_rate=3e-6", "-s", "ppo_mini_batch_size=32", "-s", "train_batch_size=128", "-s", "trainer.project_name=it's, \"a\" {b}")
		w.wait(s.RunDir, "SUCCEEDED")
		v := into[seen](w, s.RunDir, s.job(), "out/verl.json")
		out := s.RunDir + "/out"
		w.called("verl", v.Argv[1:], []string{
			"actor_rollout_ref.rollout.gpu_memory_utilization=0.5",
			"actor_rollout_ref.actor.kl_loss_coef=0.001",
			"actor_rollout_ref.actor.optim.lr=3e-6",
			"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
			"trainer.logger=[console]",
			"data.max_prompt_length=1024",
			"data.max_response_length=1024",
			"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
			"actor_rollout_ref.actor.ppo_mini_batch_size=32",
			`trainer.project_name='it\'s, "a" {b}'`,
			"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8",
			"actor_rollout_ref.rollout.name=vllm",
			"actor_rollout_ref.rollout.tensor_model_parallel_size=1",
			"actor_rollout_ref.rollout.n=8",
			"trainer.save_freq=20",
			"trainer.test_freq=10",
			"trainer.total_epochs=1",
			"data.train_batch_size=128",
			"actor_rollout_ref.actor.use_kl_loss=true",
			"algorithm.adv_estimator=grpo",
			"actor_rollout_ref.model.path=" + w.data("model"),
			"data.train_files=" + w.data("train.parquet"),
			"data.val_files=" + w.data("test.parquet"),
			"trainer.nnodes=1",
			"trainer.n_gpus_per_node=2",
			"trainer.default_local_dir='" + out + "/checkpoints'",
			"trainer.v1.trainer_mode=separate_async",
			"actor_rollout_ref.rollout.nnodes=2",
			"actor_rollout_ref.rollout.n_gpus_per_node=1",
			"actor_rollout_ref.rollout.checkpoint_engine.backend=nccl",
			"hydra.run.dir='" + out + "/logs'",
		})
		w.rayNodes(v.Nodes, map[string][2]float64{"train": {1, 2}, "rollout": {2, 1}})
		w.gpus("the driver", v.Env, 2)
		w.unscrubbed("verl", v.Env)
		w.alone("verl", v.Env, "train", "h200")
		w.vars("verl", v.Env, "TP_POOL_ROLLOUT_NODES", "h100-1 h100-2", "TP_POOL_ROLLOUT_GPUS_PER_NODE", "1",
			"TP_ROLE_ROLLOUT_NNODES", "2", "TP_ROLE", "train", "HYDRA_FULL_ERROR", "1")
		for prefix, pool := range map[string]string{"global_pool": "train", "rollout_pool_0": "rollout", "other": ""} {
			bundle := v.Bundles[prefix][0]
			want := map[bool]int{true: 2, false: 3}[pool == ""]
			if len(bundle) != want || pool != "" && bundle["tp_pool_"+pool] != 0.001 {
				w.Errorf("placement group %s asks for %v", prefix, bundle)
			}
		}
		for rank := range 2 {
			n := into[rayNode](w, s.RunDir, s.job(), fmt.Sprintf("out/ray.rollout.%d.json", rank))
			w.gpus(fmt.Sprintf("node %d of rollout", rank), n.Env, 1)
		}
	})
}

// NeMo-RL on one pool of two nodes: its configuration arrives as it was written.
func TestCatalogueNeMoRL(t *testing.T) {
	each(t, func(w *world) {
		name, tools := w.catalogued("nemo-rl/grpo", nil)
		s := w.submit(name, "--profile", "h200:2x4", "-s", "learning_rate=1e-6", "-s", "seed=7")
		w.wait(s.RunDir, "SUCCEEDED")
		v := into[struct {
			seen
			Config string
		}](w, s.RunDir, s.job(), "out/nemo.json")
		out := s.RunDir + "/out"
		if len(v.Argv) < 3 || filepath.Base(v.Argv[2]) != "config.yaml" {
			w.Fatalf("NeMo-RL was called with %q", v.Argv)
		}
		w.called("NeMo-RL", v.Argv, []string{
			"examples/run_grpo.py", "--config", v.Argv[2],
			"++policy.optimizer.kwargs.lr=1e-6", "++grpo.seed=7", "++logger.wandb_enabled=false",
			"++cluster.num_nodes=2", "++cluster.gpus_per_node=4",
			"++checkpointing.checkpoint_dir='" + out + "/checkpoints'", "++logger.log_dir='" + out + "/logs'",
		})
		if want := w.read(w.lab, "experiments", name, "config.yaml"); v.Config != want || want == "" {
			w.Errorf("NeMo-RL reads\n%s\nwanted\n%s", v.Config, want)
		}
		if v.Dir != tools+"/nemo-rl" {
			w.Errorf("NeMo-RL runs in %s", v.Dir)
		}
		w.rayNodes(v.Nodes, map[string][2]float64{"train": {2, 4}})
		w.gpus("the driver", v.Env, 4)
		w.unscrubbed("NeMo-RL", v.Env)
		w.vars("NeMo-RL", v.Env, "TP_POOL_TRAIN_NODES", "h200-1 h200-2", "TP_POOL_TRAIN_NNODES", "2", "TP_POOL_TRAIN_GPUS_PER_NODE", "4")
	})
}

// TRL with vLLM on a pool of its own: the template's train.py, unchanged, finds
// the server and is handed configuration, data and rewards.
func TestCatalogueTRL(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		name, _ := w.catalogued("trl/grpo", nil)
		s := w.submit(name, "--profile", "train=h200:2", "--profile", "rollout=h100:2", "--model", w.data("model"), "--train-data", w.data("train.parquet"),
			"-s", "learning_rate=2e-6", "-s", "server_tensor_parallel_size=2")
		w.wait(s.RunDir, "SUCCEEDED")
		server := into[seen](w, s.RunDir, s.job(), "out/server.json")
		port := server.Env["TP_SERVER_PORT"]
		w.called("the server", server.Argv[1:], []string{
			"vllm-serve", "--model", w.data("model"), "--host", "127.0.0.1", "--port", port, "--tensor_parallel_size", "2", "--data_parallel_size", "1",
		})
		w.gpus("the server", server.Env, 2)
		w.vars("the server", server.Env, "TP_ROLE", "rollout", "TP_POOL", "rollout")
		w.alone("the server", server.Env, "rollout", "h100")
		a := into[struct {
			seen
			Words  []string
			Config string
		}](w, s.RunDir, s.job(), "out/accelerate.0.json")
		if want := "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n"; a.Config != want {
			w.Errorf("accelerate reads %q, wanted %q", a.Config, want)
		}
		w.called("accelerate", a.Argv[1:], slices.Concat([]string{
			"launch", "--config_file=" + s.RunDir + "/accelerate.0.yaml", "--num_machines=1", "--num_processes=2", "--machine_rank=0", "--rdzv_backend=static", "--same_network",
			"--main_process_ip=127.0.0.1", "--main_process_port=" + a.Env["TP_ROLE_TRAIN_PORT"],
		}, a.Words))
		group := a.Env["TP_SERVER_GROUP_PORT"]
		w.called("train.py", a.Words, []string{
			"train.py", "--config", "config.yaml", "--model", w.data("model"), "--train-data", w.data("train.parquet"), "--output-dir", s.RunDir + "/out", "--overrides-json",
			`{"learning_rate": 2e-6, "report_to": "none", "use_vllm": true, "vllm_group_port": ` + group + `, "vllm_mode": "server", "vllm_server_host": "127.0.0.1", "vllm_server_port": ` + port + `}`,
		})
		for rank := range 2 {
			r := into[struct {
				seen
				Config  map[string]any
				Rewards [][]float64
				Data    struct{ Name, Files, Split string }
				Health  string
				Resume  *string
			}](w, s.RunDir, s.job(), fmt.Sprintf("out/trl.%d.json", rank))
			who := fmt.Sprintf("rank %d", rank)
			for key, want := range map[string]any{"learning_rate": 2e-6, "num_generations": 8.0, "bf16": true, "save_steps": 100.0, "use_vllm": true, "vllm_mode": "server", "output_dir": s.RunDir + "/out/checkpoints"} {
				if r.Config[key] != want {
					w.Errorf("%s has %s=%v, wanted %v", who, key, r.Config[key], want)
				}
			}
			if r.Health != `{"status":"ok"}` || fmt.Sprint(r.Rewards) != "[[0.5]]" || r.Data.Files != w.data("train.parquet") || r.Data.Name != "parquet" || r.Resume != nil {
				w.Errorf("%s: health %s, rewards %v, data %v, resumes from %v", who, r.Health, r.Rewards, r.Data, r.Resume)
			}
			w.gpus(who, r.Env, 2)
			w.alone(who, r.Env, "train", "h200")
			w.vars(who, r.Env, "LOCAL_RANK", fmt.Sprint(rank), "TP_POOL_ROLLOUT_NODES", server.Env["SLURMD_NODENAME"], "TP_SERVERS", "http://127.0.0.1:"+port)
		}
	})
}

// recorder runs the template's train.py after it wrote down what it was given;
// where there is no torch that is all.
const recorder = `import importlib.util, runpy
import os, standin
standin.say("ddp." + os.environ["RANK"], Config=open("config.yaml").read())
if importlib.util.find_spec("torch.nn"):
    runpy.run_path("template.py", run_name="__main__")
`

// DDP over two nodes: with real torch where the world has it.
func TestCatalogueDDP(t *testing.T) {
	each(t, func(w *world) {
		template := w.read("../../recipes/catalog/pytorch/ddp/template/train.py")
		name, _ := w.catalogued("pytorch/ddp", map[string]string{"train.py": recorder, "template.py": template})
		s := w.submit(name, "--profile", "h200:2x2", "-s", "learning_rate=3e-4", "-s", "steps=20")
		w.wait(s.RunDir, "SUCCEEDED")
		var nodes []string
		for rank := range 4 {
			r := into[struct {
				seen
				Config string
			}](w, s.RunDir, s.job(), fmt.Sprintf("out/ddp.%d.json", rank))
			who := fmt.Sprintf("rank %d", rank)
			w.called(who, r.Argv, []string{"train.py", "--config", "config.yaml", "--output-dir", s.RunDir + "/out", "--overrides-json", `{"learning_rate": 3e-4, "steps": 20}`})
			if want := w.read(w.lab, "experiments", name, "config.yaml"); r.Config != want {
				w.Errorf("%s reads %q, wanted %q", who, r.Config, want)
			}
			w.gpus(who, r.Env, 2)
			w.vars(who, r.Env, "WORLD_SIZE", "4", "LOCAL_RANK", fmt.Sprint(rank%2), "TP_POOL_TRAIN_NODES", "h200-1 h200-2", "TP_ROLE_TRAIN_NNODES", "2")
			nodes = append(nodes, r.Env["SLURMD_NODENAME"])
		}
		if want := []string{"h200-1", "h200-1", "h200-2", "h200-2"}; !slices.Equal(nodes, want) {
			w.Errorf("ranks on %q, wanted %q", nodes, want)
		}
		if r := w.slurm("python3", "-c", "import torch"); r.code == 0 {
			if log := w.read(s.RunDir, "logs", "train.node0.log"); !strings.Contains(log, `"train/loss"`) || w.slurm("test", "-s", s.RunDir+"/out/checkpoints/latest.pt").code != 0 {
				w.Errorf("torch trained nothing:\n%s", log)
			}
		}
	})
}

// The program of data/prep, for real: its rows are the data of a training.
func TestCatalogueDataPrep(t *testing.T) {
	each(t, func(w *world) {
		name, _ := w.catalogued("data/prep", nil)
		lines := filepath.Join(w.dir, "data", "lines.jsonl")
		w.ok(os.WriteFile(lines, []byte("{\"question\": \"1+1\", \"answer\": \"so #### 2\"}\n"), 0o644))
		s := w.submit(name, "--profile", "cpu:1", "--train-data", lines, "-s", "form=prompt", "-s", "answer_after=####", "-s", "instruction=It's \"easy\", $HOME")
		w.wait(s.RunDir, "SUCCEEDED")
		want := `{"prompt": [{"role": "user", "content": "1+1 It's \"easy\", $HOME"}], "answer": "2"}` + "\n"
		if got := w.read(s.RunDir, "out", "data", "train.jsonl"); got != want {
			w.Errorf("got %s, wanted %s", got, want)
		}
		two := w.submit(name, "--profile", "cpu:2", "--train-data", lines)
		if r := w.wait(two.RunDir, "FAILED"); !strings.Contains(r.Reason, "data/prep runs on one node, and its pool has 2") {
			w.Errorf("on two nodes: %s", r.Reason)
		}
	})
}
