package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}

// torchDriver sums the ranks of all processes over gloo.
const torchDriver = `import json, os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.tensor([float(dist.get_rank())])
dist.all_reduce(x)
name = f"{os.environ['TP_OUT_DIR']}/rank.{dist.get_rank()}"
with open(name + ".tmp", "w") as f:
    json.dump({"Sum": x.item(), "World": dist.get_world_size(), "Node": os.environ["SLURMD_NODENAME"], "Local": os.environ["LOCAL_RANK"], "GPUs": os.environ["CUDA_VISIBLE_DEVICES"]}, f)
os.rename(name + ".tmp", name)
dist.barrier()
`

func TestTorchrunOverTwoNodes(t *testing.T) {
	each(t, func(w *world) {
		if r := w.slurm("python3", "-c", "import torch"); r.code != 0 {
			w.Skip("no torch in this world: " + lastLine(r.err))
		}
		dir, job := w.start(launch{
			recipe:   "launcher = \"torchrun\"\nconfig = \"none\"\nroles = [\"train\"]",
			files:    map[string]string{"train.py": torchDriver},
			profiles: []string{"h200:2x2"}, env: []string{"GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1"},
		})
		w.mustEnd(dir, job, "SUCCEEDED")
		var nodes []string
		for rank := range 4 {
			r := into[struct {
				Sum, World        float64
				Node, Local, GPUs string
			}](w, dir, job, fmt.Sprintf("out/rank.%d", rank))
			nodes = append(nodes, r.Node+" "+r.Local)
			if r.Sum != 6 || r.World != 4 || strings.Count(r.GPUs, ",") != 1 {
				w.Errorf("rank %d: %+v", rank, r)
			}
		}
		if want := []string{"h200-1 0", "h200-1 1", "h200-2 0", "h200-2 1"}; !slices.Equal(nodes, want) {
			w.Errorf("ranks on %q, wanted %q", nodes, want)
		}
	})
}

// served is a trainer that waits for servers of another role.
const served = `launcher = "plain"
config = "none"
roles = ["train", "rollout"]
[server]
role = "rollout"
health = "/health"
[params.start_timeout]
type = "int"
doc = "seconds that a server may take"`

// serverScript is a server whose model takes a while to load. DIE makes it end
// before it is ready, SLOW keeps it from ever being ready.
const serverScript = `exec python3 - <<'PY'
import http.server, os, sys, time
rank = os.environ["TP_NODE_RANK"]
ready = time.monotonic() + (3600 if os.environ.get("SLOW") == rank else 3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if os.environ.get("DIE") == rank:
            os._exit(9)
        if os.path.exists(os.environ["TP_OUT_DIR"] + "/die." + rank):
            os._exit(11)
        self.send_response(200 if time.monotonic() > ready else 503)
        self.end_headers()
        self.wfile.write(f"{rank} {os.environ.get('CUDA_VISIBLE_DEVICES')}".encode())
http.server.ThreadingHTTPServer((os.environ["TP_SERVER_HOST"], int(os.environ["TP_SERVER_PORT"])), Handler).serve_forever()
PY
`

const trainerScript = `import json, os, time, urllib.request
out = os.environ["TP_OUT_DIR"]
answers = [urllib.request.urlopen(url + "/health").read().decode() for url in os.environ["TP_SERVERS"].split()]
with open(out + "/answers.tmp", "w") as f:
    json.dump({"Answers": answers, "Host": os.environ["TP_SERVER_HOST"], "Port": os.environ["TP_SERVER_PORT"]}, f)
os.rename(out + "/answers.tmp", out + "/answers")
while not os.path.exists(out + "/stop"):
    for url in os.environ["TP_SERVERS"].split():
        try:
            urllib.request.urlopen(url + "/health").read()
        except Exception as e:
            print(e, flush=True)
    time.sleep(0.3)
`

func (w *world) serve(env, set []string) (runDir, job string) {
	w.Helper()
	if r := w.slurm("python3", "--version"); r.code != 0 {
		w.Skip("no python3 in this world: " + lastLine(r.err))
	}
	w.hetTurn()
	return w.start(launch{
		recipe: strings.Replace(served, `"plain"`, `"torchrun"`, 1), files: map[string]string{"train.py": trainerScript, "rollout.sh": serverScript},
		profiles: []string{"train=h200:1", "rollout=h100:2x1"}, env: append(env, "no_proxy=*"), set: set,
		path: w.fakeTorchrun(),
	})
}

// fakeTorchrun runs the script alone: a server pool needs no torch.
func (w *world) fakeTorchrun() string {
	w.Helper()
	bin := filepath.Join(w.dir, "bin")
	w.ok(os.MkdirAll(bin, 0o755))
	text := "#!/bin/bash\nif [[ ${1:-} != -m ]]; then exec /usr/bin/python3 \"$@\"; fi\nexec /usr/bin/python3 \"${@: -1}\"\n"
	w.ok(os.WriteFile(filepath.Join(bin, "python3"), []byte(text), 0o755))
	return bin
}

func TestServerPool(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.serve(nil, nil)
		a := into[struct {
			Answers    []string
			Host, Port string
		}](w, dir, job, "out/answers")
		if len(a.Answers) != 2 || !strings.HasPrefix(a.Answers[0], "0 ") || !strings.HasPrefix(a.Answers[1], "1 ") || strings.Contains(fmt.Sprint(a.Answers), ",") || a.Host != "127.0.0.1" || a.Port == "" {
			w.Errorf("the servers answer %q at %s:%s", a.Answers, a.Host, a.Port)
		}
		if log := w.read(dir, "logs", "train.node0.log"); strings.Count(log, " is ready after ") != 2 {
			w.Errorf("the trainer's log:\n%s", log)
		}
		w.touch(dir, "stop")
		w.mustEnd(dir, job, "SUCCEEDED", "role train ended well")
	})
}

func TestServerDiesBeforeItIsReady(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.serve([]string{"DIE=1"}, nil)
		if e := w.mustEnd(dir, job, "FAILED", "role rollout failed with exit code 9"); e.Node != "h100-2" {
			w.Errorf("%+v", e)
		}
	})
}

func TestServerDiesLater(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.serve(nil, nil)
		w.soon(dir, job, "out/answers")
		w.touch(dir, "die.0")
		if e := w.mustEnd(dir, job, "FAILED", "role rollout failed with exit code 11"); e.Node != "h100-1" {
			w.Errorf("%+v", e)
		}
	})
}

func TestServerIsNeverReady(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.serve([]string{"SLOW=1"}, []string{"start_timeout=8"})
		w.mustEnd(dir, job, "FAILED", "role train failed with exit code 1: rollout at http://127.0.0.1:", "is not ready after 8 s: /health answers HTTP Error 503")
		if w.read(dir, "out", "answers") != "" {
			w.Error("the trainer ran")
		}
	})
}

const mpiRecipe = `launcher = "mpi"
config = "none"
roles = ["train"]
[params.mpi]
type = "str"
doc = "plugin of srun"
[params.procs_per_node]
type = "int"
doc = "processes per node"`

// mpiTask says where a task of srun runs and what it sees.
const mpiTask = `import json, os
name = f"{os.environ['TP_OUT_DIR']}/task.{os.environ['SLURM_PROCID']}"
with open(name + ".tmp", "w") as f:
    json.dump({"Node": os.environ["SLURMD_NODENAME"], "Rank": os.environ["TP_NODE_RANK"], "Local": os.environ["SLURM_LOCALID"], "GPUs": os.environ["CUDA_VISIBLE_DEVICES"], "CPUs": os.environ["SLURM_CPUS_PER_TASK"]}, f)
os.rename(name + ".tmp", name)
print("task", os.environ["SLURM_PROCID"], flush=True)
`

// Tasks of an MPI role: one per GPU, in order over the nodes, each seeing all
// GPUs of its node. PMI2 is what every cluster here has.
func TestMPITasks(t *testing.T) {
	each(t, func(w *world) {
		dir, job := w.start(launch{recipe: mpiRecipe, files: map[string]string{"train.py": mpiTask}, profiles: []string{"h200:2x2"}, set: []string{"mpi=pmi2"}})
		w.mustEnd(dir, job, "SUCCEEDED")
		for task, want := range []string{"h200-1 0 0 1", "h200-1 0 1 1", "h200-2 1 0 1", "h200-2 1 1 1"} {
			got := into[struct{ Node, Rank, Local, CPUs, GPUs string }](w, dir, job, fmt.Sprintf("out/task.%d", task))
			if text := strings.Join([]string{got.Node, got.Rank, got.Local, got.CPUs}, " "); text != want || strings.Count(got.GPUs, ",") != 1 {
				w.Errorf("task %d is %+v, wanted %s and two GPUs", task, got, want)
			}
		}
		for node, tasks := range map[int][]string{0: {"task 0", "task 1"}, 1: {"task 2", "task 3"}} {
			log := w.read(dir, "logs", fmt.Sprintf("train.node%d.log", node))
			for _, task := range tasks {
				if !strings.Contains(log, task) {
					w.Errorf("the log of node %d lacks %q:\n%s", node, task, log)
				}
			}
		}
	})
}

// mpiProgram is MPI without a compiler: what mpi.h of Open MPI 4 calls
// MPI_COMM_WORLD, MPI_INT and MPI_SUM are addresses of these symbols.
const mpiProgram = `import os
from ctypes import *
mpi = CDLL("libmpi.so.40", RTLD_GLOBAL)
def at(symbol):
    return c_void_p(addressof(c_char.in_dll(mpi, symbol)))
world, rank, size, total = at("ompi_mpi_comm_world"), c_int(), c_int(), c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, byref(rank))
mpi.MPI_Comm_size(world, byref(size))
mpi.MPI_Allreduce(byref(rank), byref(total), 1, at("ompi_mpi_int"), at("ompi_mpi_op_sum"), world)
with open(f"{os.environ['TP_OUT_DIR']}/rank.{rank.value}", "w") as f:
    f.write(f"{rank.value} of {size.value} on {os.environ['SLURMD_NODENAME']}, sum {total.value}")
mpi.MPI_Finalize()
`

// noPMIx says why a step with PMIx must not be tried. A slurmd reads the library
// when it starts; one that could not dies with the first such step and leaves
// its node in COMPLETING for ever (22.05).
func (w *world) noPMIx() string {
	w.Helper()
	if r := w.slurm("python3", "-c", "import ctypes; ctypes.CDLL('libmpi.so.40')"); r.code != 0 {
		return "no Open MPI in this world: " + lastLine(r.err)
	}
	// The plugin's directory below TmpFS has the step's name and not the node's.
	if config := w.must("scontrol", "show", "config"); !regexp.MustCompile(`(?m)^TmpFS .*%n`).MatchString(config) {
		return "all nodes of this machine have one TmpFS: contrib/devcluster down and up"
	}
	conf := strings.TrimSpace(w.slurm("printenv", "SLURM_CONF").out)
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	w.ok(err)
	found := false
	for _, file := range list {
		words, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if conf == "" || !strings.Contains(string(words), "slurmd\x00") || !strings.Contains("\x00"+string(env), "\x00SLURM_CONF="+conf+"\x00") {
			continue
		}
		found = true
		maps, err := os.ReadFile(filepath.Join(filepath.Dir(file), "maps"))
		if err == nil && !strings.Contains(string(maps), "libpmix.so") {
			return "slurmd was started before libpmix2 was there: contrib/devcluster down and up"
		}
	}
	if !found {
		return "the slurmd processes of this world were not found"
	}
	return ""
}

// Open MPI over two nodes, its ranks by PMIx. Where srun has no PMIx the run
// says so and starts nothing.
func TestOpenMPI(t *testing.T) {
	each(t, func(w *world) {
		list := w.slurm("srun", "--mpi=list")
		pmix := strings.Contains(list.out+list.err, "pmix")
		if pmix {
			if reason := w.noPMIx(); reason != "" {
				w.Skip(reason)
			}
		}
		// Two nodes on one machine share no memory that Open MPI laid out for one.
		env := []string{"OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_pml=ob1"}
		dir, job := w.start(launch{recipe: mpiRecipe, files: map[string]string{"train.py": mpiProgram}, profiles: []string{"h200:2x2"}, env: env})
		if !pmix {
			w.mustEnd(dir, job, "FAILED", "srun has no MPI plugin pmix on this cluster; it has ", "pmi2")
			return
		}
		w.mustEnd(dir, job, "SUCCEEDED")
		for rank := range 4 {
			want := fmt.Sprintf("%d of 4 on h200-%d, sum 6", rank, rank/2+1)
			if got := w.read(dir, "out", fmt.Sprintf("rank.%d", rank)); got != want {
				w.Errorf("rank %d says %q, wanted %q", rank, got, want)
			}
		}
	})
}
