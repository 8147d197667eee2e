package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tell is a role that says what it sees, and waits until the test has seen it.
const tell = `trap '' USR1 # also for the sleep
env -0 >"$TP_OUT_DIR/env.$TP_ROLE.$TP_NODE_RANK"
while [[ ! -e $TP_OUT_DIR/stop ]]; do sleep 0.2; done`

// told waits until every role of the run has said what it sees on every node:
// by role, then by rank.
func (w *world) told(s submission, roles map[string]int) map[string][]map[string]string {
	w.Helper()
	out := map[string][]map[string]string{}
	for role, nodes := range roles {
		for rank := range nodes {
			name := fmt.Sprintf("out/env.%s.%d", role, rank)
			w.appears(s.RunDir, name)
			w.waitFor(5*time.Second, "the whole of "+name, func() bool { return strings.Contains(w.read(s.RunDir, name), "TP_RUN_ID=") })
			out[role] = append(out[role], w.environ(s.RunDir, name))
		}
	}
	return out
}

func (w *world) stop(s submission) {
	w.Helper()
	w.ok(os.WriteFile(filepath.Join(s.RunDir, "out", "stop"), nil, 0o644))
	w.wait(s.RunDir, "SUCCEEDED")
}

// ports are all ports that a run was given, and its blocks.
func ports(env map[string]string) (all []int) {
	for name, value := range env {
		if p, ok := strings.CutSuffix(name, "_PORT"); ok && (strings.HasPrefix(p, "TP_POOL_") || strings.HasPrefix(p, "TP_ROLE_")) {
			n, _ := strconv.Atoi(value)
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// Every role sees the same pools on all nodes; a pool's head is the node of rank
// 0 of its steps, whatever order node lists are written in.
func TestPoolsAreTheSameEverywhere(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("pools", map[string]string{"train": tell, "rollout": tell, "judge": tell})
		w.commit()
		shapes := map[string]int{"train": 1, "rollout": 2, "judge": 2}
		s := w.submit("pools", "--profile", "rollout,judge=h100:2x1", "--profile", "train=h200:1")
		env := w.told(s, shapes)
		defer w.stop(s)

		first := env["train"][0]
		for role, list := range env {
			for rank, vars := range list {
				for name, value := range first {
					if (strings.HasPrefix(name, "TP_POOL_") || strings.HasPrefix(name, "TP_ROLE_")) && vars[name] != value {
						w.Errorf("%s on rank %d sees %s=%q, train %q", role, rank, name, vars[name], value)
					}
				}
				nodes := strings.Fields(vars["TP_ROLE_"+strings.ToUpper(role)+"_NODES"])
				if len(nodes) != shapes[role] || nodes[rank] != vars["SLURMD_NODENAME"] || vars["TP_NODE_RANK"] != fmt.Sprint(rank) {
					w.Errorf("rank %d of %s runs on %s, the list says %q", rank, role, vars["SLURMD_NODENAME"], nodes)
				}
				pool := "TP_POOL_" + strings.ToUpper(vars["TP_POOL"]) + "_"
				if got := strings.Fields(vars[pool+"NODES"]); !slices.Equal(got, nodes) {
					w.Errorf("pool %s is on %q, its role %s on %q", vars["TP_POOL"], got, role, nodes)
				}
			}
		}
		for name, want := range map[string]string{
			"TP_POOL_ROLLOUT_NODES": "h100-1 h100-2", "TP_POOL_ROLLOUT_ADDRS": "127.0.0.1 127.0.0.1", "TP_POOL_ROLLOUT_HEAD": "127.0.0.1", "TP_POOL_ROLLOUT_IP": "127.0.0.1",
			"TP_POOL_ROLLOUT_NNODES": "2", "TP_POOL_ROLLOUT_GPUS_PER_NODE": "1", "TP_POOL_TRAIN_NNODES": "1", "TP_ROLE_JUDGE_NNODES": "2",
			"TP_POOL_ROLLOUT_ENDPOINT": "127.0.0.1:" + first["TP_POOL_ROLLOUT_PORT"], "TP_POOL_JUDGE_PORT": "",
		} {
			if first[name] != want {
				w.Errorf("%s is %q, wanted %q", name, first[name], want)
			}
		}
		if all := ports(first); len(all) != 5 || len(slices.Compact(slices.Clone(all))) != 5 || all[0] < 10000 {
			w.Errorf("ports of two pools and three roles: %v", all)
		}
	})
}

// Two pools that look the same to Slurm share a plain job's nodes.
func TestPoolsOfOneComponent(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("halves", map[string]string{"train": tell, "rollout": tell})
		w.write("experiments/halves/job.toml", "time = \"5m\"\nroles = [\"train\", \"rollout\"]\nmem = \"1G\"\ncpus_per_node = 1\n")
		w.commit()
		s := w.submit("halves", "--profile", "train=cpu:1", "--profile", "rollout=cpu:1")
		env := w.told(s, map[string]int{"train": 1, "rollout": 1})
		defer w.stop(s)
		for role, list := range env {
			if node := list[0]["SLURMD_NODENAME"]; list[0]["TP_POOL_"+strings.ToUpper(role)+"_NODES"] != node {
				w.Errorf("%s runs on %s and its pool is on %q", role, node, list[0]["TP_POOL_"+strings.ToUpper(role)+"_NODES"])
			}
		}
		if env["train"][0]["SLURMD_NODENAME"] == env["rollout"][0]["SLURMD_NODENAME"] {
			w.Error("both pools are on one node")
		}
	})
}

// Node lists may be asked for in any order; ranks and names still agree.
func TestNodesAskedForInOddOrder(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("odd", map[string]string{"train": tell})
		w.write("experiments/odd/job.toml", "time = \"5m\"\nroles = [\"train\"]\nmem = \"1G\"\ncpus_per_node = 1\n")
		w.commit()
		script, dir := w.render("odd", "--profile", "cpu:2")
		w.sbatch(strings.Replace(script, "#SBATCH --nodes=2\n", "#SBATCH --nodes=2\n#SBATCH --nodelist=cpu-2,cpu-1\n", 1))
		s := submission{RunDir: dir}
		for rank, vars := range w.told(s, map[string]int{"train": 2})["train"] {
			if nodes := strings.Fields(vars["TP_POOL_TRAIN_NODES"]); len(nodes) != 2 || nodes[rank] != vars["SLURMD_NODENAME"] || vars["SLURM_PROCID"] != fmt.Sprint(rank) {
				w.Errorf("rank %d runs on %s, the list says %q", rank, vars["SLURMD_NODENAME"], nodes)
			}
		}
		w.stop(s)
	})
}

// Ports are held, not looked at: nobody listens yet, and a second run on the
// same machine gets others, and a third is told that there are none left. A
// killed job leaves nothing behind.
func TestPortsAreHeldWhileARunLives(t *testing.T) {
	each(t, func(w *world) {
		base := map[string]int{"22.05": 20000, "24.11": 20064, "26.05": 20128}[w.release]
		if base == 0 {
			base = 20192
		}
		w.edit(`(?m)\A`, fmt.Sprintf("network.ports = \"%d-%d\"\n", base, base+63))
		w.experiment("ports", map[string]string{"train": tell})
		w.write("experiments/ports/job.toml", "time = \"5m\"\nroles = [\"train\"]\nmem = \"1G\"\ncpus_per_node = 1\n")
		w.commit()
		submit := func() submission { return w.submit("ports", "--profile", "cpu:1") }
		one, two := submit(), submit()
		var all []int
		for _, s := range []submission{one, two} {
			all = append(all, ports(w.told(s, map[string]int{"train": 1})["train"][0])...)
		}
		slices.Sort(all)
		if want := []int{base, base + 16, base + 32, base + 48}; !slices.Equal(all, want) {
			w.Fatalf("two runs at once have ports %v, wanted each of %v", all, want)
		}
		w.must("scancel", "--signal=USR1", one.job(), two.job()) // a warning to all steps is no end of the holding
		three := submit()
		r := w.wait(three.RunDir, "FAILED")
		if want := fmt.Sprintf("no 16 free ports in a row in %d-%d", base, base+63); !strings.Contains(r.Reason, want) {
			w.Errorf("the third run failed with %q, wanted %q", r.Reason, want)
		}
		w.must("scancel", "--signal=KILL", "--full", one.job())
		w.waitFor(time.Minute, "the killed run's end", func() bool { return !slices.Contains(w.jobs("PD,R,CG"), one.job()) })
		four := submit()
		if got := ports(w.told(four, map[string]int{"train": 1})["train"][0]); len(got) != 2 {
			w.Errorf("after a run was killed: ports %v", got)
		}
		w.stop(four)
		w.stop(two)
	})
}

// The site's interface and family: a node's IPv6 address is plain as an address
// and in brackets before a port; an interface that a node lacks is named.
func TestInterfaceOfTheSite(t *testing.T) {
	each(t, func(w *world) {
		name, v4, v6 := outward(w)
		w.experiment("net", map[string]string{"train": tell})
		w.write("experiments/net/job.toml", "time = \"5m\"\nroles = [\"train\"]\nmem = \"1G\"\ncpus_per_node = 1\n")
		w.commit()
		site := w.read(w.site)
		try := func(keys string) map[string]string {
			w.ok(os.WriteFile(w.site, []byte(keys+site), 0o644))
			s := w.submit("net", "--profile", "cpu:1")
			env := w.told(s, map[string]int{"train": 1})["train"][0]
			w.stop(s)
			return env
		}
		if env := try(fmt.Sprintf("network.interface = %q\n", name)); env["TP_POOL_TRAIN_IP"] != v4 || env["TP_ROLE_TRAIN_HEAD"] != v4 {
			w.Errorf("IP %q and head %q, wanted %s of %s", env["TP_POOL_TRAIN_IP"], env["TP_ROLE_TRAIN_HEAD"], v4, name)
		}
		if v6 != "" {
			env := try(fmt.Sprintf("network.interface = %q\nnetwork.family = \"ipv6\"\n", name))
			if env["TP_POOL_TRAIN_IP"] != v6 || env["TP_POOL_TRAIN_ADDRS"] != v6 || env["TP_POOL_TRAIN_ENDPOINT"] != "["+v6+"]:"+env["TP_POOL_TRAIN_PORT"] {
				w.Errorf("IPv6: %q, endpoint %q", env["TP_POOL_TRAIN_IP"], env["TP_POOL_TRAIN_ENDPOINT"])
			}
		}
		w.ok(os.WriteFile(w.site, []byte("network.interface = \"ib7\"\n"+site), 0o644))
		s := w.submit("net", "--profile", "cpu:1")
		r := w.wait(s.RunDir, "FAILED")
		if !strings.Contains(r.Reason, "node cpu-") || !strings.Contains(r.Reason, "there is no interface ib7; there are ") {
			w.Errorf("a missing interface gives %q", r.Reason)
		}
	})
}

// outward is this machine's interface of the default route with its addresses.
func outward(w *world) (name, v4, v6 string) {
	w.Helper()
	fields := strings.Fields(w.must("ip", "-4", "-o", "route", "show", "default"))
	if i := slices.Index(fields, "dev"); i >= 0 {
		name = fields[i+1]
	} else {
		w.Skip("this machine has no default route")
	}
	address := func(family string) string {
		for line := range strings.Lines(w.must("ip", family, "-o", "addr", "show", "dev", name, "scope", "global")) {
			if f := strings.Fields(line); len(f) > 3 && !strings.Contains(line, "temporary") {
				a, _, _ := strings.Cut(f[3], "/")
				return a
			}
		}
		return ""
	}
	return name, address("-4"), address("-6")
}

// A further step starts beside the roles within seconds: a driver's helper, a
// shell, Jupyter. Of a het job srun wants to know the component.
func TestAStepStartsBesideTheRoles(t *testing.T) {
	each(t, func(w *world) {
		w.hetTurn()
		w.experiment("beside", map[string]string{"train": tell, "rollout": tell})
		w.commit()
		s := w.submit("beside", "--profile", "train=h200:8", "--profile", "rollout=h100:8")
		w.told(s, map[string]int{"train": 1, "rollout": 1})
		defer w.stop(s)
		for _, args := range [][]string{{"--jobid=" + s.job(), "--het-group=0"}, {"--jobid=" + s.job(), "--het-group=1"}} {
			began := time.Now()
			args = append([]string{"timeout", "20", "srun"}, append(args, "--overlap", "--gres=none", "--mpi=none", "-N1", "-n1", "-c1", "bash", "-c", "echo $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-none}")...)
			r := w.slurm(args...)
			w.Logf("%q took %s: %s%s", args, time.Since(began).Round(time.Millisecond), r.out, r.err)
			if r.code != 0 || time.Since(began) > 10*time.Second {
				w.Errorf("%q: exit code %d after %s\n%s%s", args, r.code, time.Since(began), r.out, r.err)
			}
		}
	})
}

// Pools in partitions that share nodes are counted by nodes, not by partition;
// where there are enough, the preview says what may happen without bf_hetjob_prio.
func TestPartitionsThatShareNodes(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("shared", map[string]string{"train": "true", "rollout": "true"})
		w.commit()
		args := []string{"plan", "shared", "--profile", "train=h100:8", "--partition", "rollout=short", "--time", "10m"}
		r := w.tp(append(args, "--profile", "rollout=h100:2x1")...)
		if r.code != 3 || !strings.Contains(r.out, "capacity.neverFits (pool train,rollout)") || !strings.Contains(r.out, "only 2 could ever run it") {
			w.Errorf("three nodes of two: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		r = w.tp(append(args, "--profile", "rollout=h100:1x1")...)
		said := strings.Contains(r.out, "warn: capacity.deadlock (pool train,rollout)") && strings.Contains(r.out, "partitions h100 and short") && strings.Contains(r.out, "both can use h100-[1-2]")
		has := strings.Contains(w.must("scontrol", "show", "config"), "bf_hetjob_prio")
		if r.code != 0 || said == has {
			w.Errorf("bf_hetjob_prio %v: exit code %d\n%s%s", has, r.code, r.out, r.err)
		}
	})
}
