package site

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Example is a commented site file for `tp site init`: the hardware that the
// snapshot shows is filled in, everything else stands there as a comment. A nil
// snapshot gives a made-up series, commented out. It decodes strictly, as it
// is and with every commented key uncommented.
func Example(snap *slurm.Snapshot) []byte {
	var b strings.Builder
	b.WriteString(head)
	if snap != nil && snap.Info.Transport != "" {
		fmt.Fprintf(&b, "# Asked: %s, Slurm %s, through %s.\n\n", line(snap.Info.Cluster), line(snap.Info.Release), line(snap.Info.Transport))
	}
	b.WriteString("# Hardware. Name, GRES as Slurm spells it, and what one node has.\n")
	reg := FromSnapshot(snap)
	for _, s := range reg.Series {
		b.WriteString("\n" + s.toml())
	}
	if len(reg.Series) == 0 {
		made := Series{Name: "h200", GRES: "gpu:h200", Devices: 8, CPUs: 128, Memory: 2 << 20, Partitions: []string{"gpu"}}
		b.WriteString("\n# " + strings.ReplaceAll(strings.TrimSpace(made.toml()), "\n", "\n# ") + "\n")
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
		list := make([]string, len(s.Partitions))
		for i, p := range s.Partitions {
			list[i] = basic(p)
		}
		fmt.Fprintf(&b, "partitions = [%s] # the first one is used\n", strings.Join(list, ", "))
	}
	b.WriteString("# price = 2.5 # per device and hour\n")
	return b.String()
}

// basic is a TOML basic string. Go's ASCII quoting differs in \x, \a and \v,
// none of which a name of Slurm holds; they are replaced.
func basic(s string) string {
	return strconv.QuoteToASCII(line(s))
}

// line keeps foreign text on one line and printable.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd {
			return '?'
		}
		return r
	}, s)
}

const head = `# Site file of tp. Every key is optional; a commented line shows an example.
# "{user}" stands for the user's name, a leading ~ for the home directory.

# Runs: on a file system that login and compute nodes share.
# run_root = "/shared/tp/runs"
# state_dir = "~/.local/state/tp"
# plan_ttl = "30m"      # how long a plan may be confirmed
# poll_seconds = 10     # least time between two questions to the cluster, ≥ 2
# default_fleet = "main"

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
# account = "research"
# partition = "gpu"
# qos = "normal"
# time = "4h"

`

const tail = `
# Images that jobs may use; without the list every image may be used.
# [images]
# allow = ["registry.example.org/*"]

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
