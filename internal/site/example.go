package site

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Example is a commented site file for `tp site init`: the hardware that the
// snapshot shows is filled in, everything else stands there as a comment. A nil
// snapshot gives a made-up series, commented out. It decodes strictly, as it
// is and with every commented key uncommented. What is only likely stands there
// as a comment; facts, which may be nil, add what slurm.conf says and what
// follows. Nothing is written about the user who asks.
func Example(snap *slurm.Snapshot, facts *slurm.Facts) []byte {
	var b strings.Builder
	b.WriteString(head)
	if snap != nil && snap.Info.Transport != "" {
		fmt.Fprintf(&b, "# Asked: %s, Slurm %s, through %s.\n\n", line(snap.Info.Cluster), line(snap.Info.Release), line(snap.Info.Transport))
	}
	if name := defaultPartition(snap, facts); name != "" {
		fmt.Fprintf(&b, "# Partition %s is the default: a job that names none goes there.\n\n", line(name))
	}
	for i, r := range Remarks(facts) {
		if i == 0 {
			b.WriteString("# What slurm.conf says, and what follows.\n")
		}
		fmt.Fprintf(&b, "#   %s = %s\n", r.Topic, line(r.What))
		if r.Fix != "" {
			fmt.Fprintf(&b, "#     → %s\n", line(r.Fix))
		}
	}
	if len(Remarks(facts)) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(requests(facts))
	b.WriteString("# Hardware. Name, GRES as Slurm spells it, and what one node has.\n")
	reg := FromSnapshot(snap)
	for _, s := range reg.Series {
		b.WriteString("\n" + s.toml() + likely(s, reg, snap, facts))
	}
	if len(reg.Series) == 0 {
		b.WriteString(madeUp)
	}
	b.WriteString(tail)
	return []byte(b.String())
}

func (s Series) toml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[series.%s]\n", basic(s.Name))
	if s.GRES != "" {
		fmt.Fprintf(&b, "gres = %s\ndevices = %d\n", basic(s.GRES), s.Devices)
	}
	if s.CPUs > 0 {
		fmt.Fprintf(&b, "cpus = %d\n", s.CPUs)
	}
	if s.Memory > 0 {
		fmt.Fprintf(&b, "memory = %s\n", basic(s.Memory.String()))
	}
	if len(s.Partitions) > 0 {
		fmt.Fprintf(&b, "partitions = [%s] # the first one is used\n", quoted(s.Partitions))
	}
	b.WriteString("# price = 2.5 # per device and hour\n")
	return b.String()
}

// requests is [requests] as far as slurm.conf tells: in force only where it
// leaves no choice.
func requests(facts *slurm.Facts) string {
	gpus, memory := `# gpu_request = "gres" # or "gpus-per-node", "none"`, `# mem = "allow"        # or "require", "forbid", "per_cpu"`
	if facts != nil && facts.Config != nil && !consumesMemory(facts.Config) {
		memory = `# mem = "forbid"       # memory is not counted here`
	}
	return "# How jobs ask for GPUs and memory; a series may say it for itself.\n# [requests]\n" + gpus + "\n" + memory + "\n\n"
}

func defaultPartition(snap *slurm.Snapshot, facts *slurm.Facts) string {
	if snap != nil {
		for _, p := range snap.Partitions {
			if p.Default {
				return p.Name
			}
		}
	}
	if facts != nil { // dialects v0.0.39 to .44 do not tell
		for _, p := range facts.Partitions {
			if p.Get("Default") == "YES" {
				return p["PartitionName"]
			}
		}
	}
	return ""
}

// likely are comments below a series: what its nodes suggest and nobody but the
// administrator can know.
func likely(s Series, reg *Registry, snap *slurm.Snapshot, facts *slurm.Facts) string {
	var b strings.Builder
	nodes := filter(snap.Nodes, s.Has)
	if own := ownFeatures(s, nodes, snap.Nodes); len(own) > 0 {
		fmt.Fprintf(&b, "# aliases = [%s] # features that all these nodes have and no others\n", quoted(own))
	}
	for _, p := range s.Partitions {
		part, _ := snap.Partition(p)
		var say []string
		if part.MaxTime > 0 {
			say = append(say, "MaxTime "+part.MaxTime.String())
		}
		if facts != nil {
			record := facts.Partition(p)
			if v := record.Get("OverSubscribe"); v != "" && v != "NO" {
				say = append(say, "OverSubscribe="+v)
			}
			for _, key := range []string{"ExclusiveUser", "ExclusiveTopo", "RootOnly", "ReqResv", "Hidden"} {
				if record.Get(key) == "YES" {
					say = append(say, key)
				}
			}
			if v := record.Get("AllowAccounts"); v != "" && v != "ALL" {
				say = append(say, "accounts "+v)
			}
			if v := record.Get("QoS"); v != "" {
				say = append(say, "QOS "+v)
			}
		}
		if len(say) > 0 {
			fmt.Fprintf(&b, "#   partition %s: %s\n", line(p), line(strings.Join(say, ", ")))
		}
	}
	if s.GRES == "" || strings.Contains(s.GRES, ":") {
		return b.String()
	}
	// Devices without a type: what they are, a feature may say.
	taken := reg.Names()
	for _, feature := range modelFeatures(nodes) {
		if slices.ContainsFunc(taken, func(n string) bool { return strings.EqualFold(n, feature) }) || strings.ContainsAny(feature, "=,: ") {
			continue
		}
		taken = append(taken, feature)
		some := filter(nodes, func(n slurm.Node) bool { return slices.Contains(n.Features, feature) })
		fmt.Fprintf(&b, "\n# %d of these nodes have feature %s; by its name:\n# [series.%s]\n# gres = %s\n# devices = %d\n# feature = %s\n# constraint = %s\n",
			len(some), line(feature), basic(feature), basic(s.GRES), s.Devices, basic(feature), basic(feature))
	}
	return b.String()
}

// ownFeatures are those that all nodes of the series have and no other node.
func ownFeatures(s Series, nodes, all []slurm.Node) []string {
	if len(nodes) == 0 || len(nodes) == len(all) || s.GRES == "" {
		return nil
	}
	var own []string
	for _, f := range nodes[0].Features {
		has := func(n slurm.Node) bool { return slices.Contains(n.Features, f) }
		if len(filter(nodes, has)) == len(nodes) && len(filter(all, has)) == len(nodes) &&
			!strings.EqualFold(f, s.Name) && f != "" && !strings.ContainsAny(f, "=,: \t\n") {
			own = append(own, f)
		}
	}
	return own
}

// model is how devices are called: a100, h200, mi300x, ascend910b, l40s.
var model = regexp.MustCompile(`(?i)^[a-z]{1,6}\d{1,4}[a-z]{0,4}$`)

func modelFeatures(nodes []slurm.Node) []string {
	count := map[string]int{}
	for _, n := range nodes {
		for _, f := range n.Features {
			if model.MatchString(f) {
				count[f]++
			}
		}
	}
	return sorted(count)
}

const head = `# Site file of tp. Every key is optional; a commented line shows an example.
# "{user}" stands for the user's name, a leading ~ for the home directory.

# Runs: on a file system that login and compute nodes share.
# run_root = "/shared/tp/runs"
# state_dir = "~/.local/state/tp"
# plan_ttl = "30m"      # how long a plan may be confirmed
# poll_seconds = 10     # least time between two questions to the cluster, ≥ 2
# default_fleet = "main"
# recipes = "/sw/tp/recipes" # recipes beside the built-in ones

# Bundles of code: a shared directory, or a bucket.
# [objects]
# kind = "dir"
# path = "/shared/tp/objects"
# endpoint = "https://s3.example.org"
# bucket = "tuneplane"
# region = "us-east-1"
# prefix = "tp/"
# credentials = "~/.config/tp/s3-credentials"
# path_style = true

# How to reach a cluster. Without any fleet tp finds the one it runs on.
# [fleets.main]
# kind = "slurm"        # or "local"
# url = "http://slurmrestd.example.org:6820"
# token_command = ["scontrol", "token", "lifespan=3600"]
# timeout = "10s"
# user = "alice"        # in Slurm, where it is not the name in the token
# cluster = "main"      # ClusterName of slurm.conf: nobody else is taken for it
# transports = ["url", "socket", "child", "cli"] # ways to try; transport = "cli" forces one
# fallback = true       # false: nothing stands in for the url
# slurmrestd = "/opt/slurm/sbin/slurmrestd" # for a private one; found by itself in the usual places
# tools = "/opt/slurm/bin" # sbatch, squeue, scontrol, …; else from PATH
# account = "research"
# partition = "gpu"
# qos = "normal"
# time = "4h"
# prolog = ["module load slurm"]

`

const madeUp = `
# [series.h200]
# gres = "gpu:nvidia_h200"     # case and all
# aliases = ["H200-SXM", "hopper"]
# devices = 8
# cpus = 128
# memory = "2048G"
# default = "1x8"
# arch = "x86_64"
# partitions = ["gpu", "long"] # the first one is used
# price = 2.5                  # per device and hour
# feature = "sxm"              # tells its nodes from others with the same GRES
# constraint = "sxm"           # sent with its jobs
# gpu_request = "gres"
# mem = "allow"
# account = "research"         # this and the next ones: where nobody says otherwise
# qos = "gpu"
# reservation = "course"
# time = "4h"
# exclusive = "user"           # or true, "mcs", "topo"
# segment = 4                  # nodes of a block, on topology/block
# switches = 1                 # most leaf switches, on topology/tree
# prolog = ["module load cuda"]
`

const tail = `
# Images that jobs may name (--image); without the list every image may be.
# [images]
# allow = ["registry.example.org/*", "/shared/images/*"]
# container = "pyxis"          # what starts them: "pyxis", "apptainer" or "oci"
# mounts = ["/shared/models:ro", "/scratch/{user}:/scratch"] # of every container

# Where frameworks are, by name and version; without any it is what nodes have.
# [runtimes."verl-0.9.0"]
# image = "registry.example.org/verl@sha256:6c3c624b58dbbcd3c0dd82b4c53f04194d1247c6eebdaab7c610cf7d66709b3b"
# container = "pyxis"
# mounts = ["/shared/data:ro"]
# home = false
# credentials = "~/.config/enroot" # a path: enroot's directory, Apptainer's auth file
#
# [runtimes.trl]
# framework = "trl"
# versions = ["1.0.0", "1.9.0"]
# default = true               # also where a recipe names another one
# container = "none"
# modules = ["cuda/12.4"]
# venv = "/shared/envs/trl"
# prolog = ["export HF_HOME=/shared/hf"]
# gpu = "nvidia"               # or "amd", "none": whose libraries Apptainer brings along

# Defaults of every job, with the keys of job.toml.
# [defaults]
# time = "4h"
# prolog = ["module load cuda"]

# [environment]
# pass = ["http_proxy", "https_proxy"] # taken from the caller into every job
# get_user_env = false

# Network between the nodes; without it Slurm's NodeAddr is used, or what the node says.
# [network]
# interface = "ib0"
# family = "ipv4"       # or "ipv6": what to prefer
# ports = "20000-29999" # for pools; without it those outside the nodes' ephemeral range
`
