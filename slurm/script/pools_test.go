package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm/slurmtest"
)

// commands are stand-ins for what pools.sh asks: srun runs its tasks here, one
// process each, and sends its stdin to all of them.
var commands = map[string]string{
	"srun": `n=1
while [[ $1 == --* ]]; do case $1 in --ntasks=*) n=${1#*=} ;; esac; shift; done
mkfifo "$FAKE/in."{0,1,2}.$$
for ((i = 0; i < n; i++)); do SLURM_PROCID=$i SLURMD_NODENAME=${NODE:-n}$((i + 1)) "$@" <"$FAKE/in.$i.$$" & done
eval "tee $(for ((i = 1; i < n; i++)); do printf '"$FAKE/in.%s.$$" ' $i; done) >\"$FAKE/in.0.\$\$\""
wait`,
	"scontrol": `cat "$FAKE/nodes" 2>/dev/null`,
	"getent":   `grep "^$1 $2 " "$FAKE/hosts" 2>/dev/null | cut -d ' ' -f 3- || exit 2`,
	"ip": `case "$*" in
*"route get"*) grep "^route $1 " "$FAKE/ip" 2>/dev/null | cut -d ' ' -f 3- ;;
*"addr show"*) grep "^addr $1 " "$FAKE/ip" 2>/dev/null | cut -d ' ' -f 3- | if [[ $* == *' dev '* ]]; then grep " $6 "; else cat; fi ;;
esac`,
}

// inPools runs bash after pools.sh, with the stand-ins and their files.
func inPools(t *testing.T, files map[string]string, text string, env ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, body := range commands {
		write(t, filepath.Join(dir, "bin", name), "#!/bin/bash\n"+body+"\n")
	}
	for name, body := range files {
		write(t, filepath.Join(dir, name), body)
	}
	head := `set -euo pipefail
tp_tmp=$(mktemp -d "$FAKE/tmp.XXXXXX") tp_interface=${IFACE:-} tp_family=${FAMILY:-} tp_ports=${PORTS:-}
tp_say() { printf '# %s\n' "$*"; }
tp_fail() { printf 'FAIL %s\n' "$2"; exit "$1"; }
`
	cmd := exec.Command("bash", "-c", head+poolsFrame+"\n"+text)
	cmd.Env = append([]string{"PATH=" + dir + "/bin:" + os.Getenv("PATH"), "FAKE=" + dir, "SLURM_JOB_ID=1"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	slurmtest.Program(t, path, text)
}

func TestAddresses(t *testing.T) {
	const addrs = `addr -4 1: lo    inet 127.0.0.1/8 scope host lo
addr -4 3: docker0    inet 172.17.0.1/16 scope global docker0
addr -4 4: eth0    inet 10.0.0.7/24 brd 10.0.0.255 scope global eth0
addr -4 5: ib0    inet 10.9.0.7/24 scope global ib0
addr -6 4: eth0    inet6 fe80::1/64 scope link
addr -6 4: eth0    inet6 fd00::99/64 scope global temporary
addr -6 4: eth0    inet6 fd00::7/64 scope global
`
	node := func(addr string) string { return "NodeName=n1 Arch=x86_64 NodeAddr=" + addr + " NodeHostName=n1\n" }
	for _, c := range []struct {
		name  string
		files map[string]string
		env   []string
		want  string // IP, or what it says
	}{
		{"an address of Slurm's", map[string]string{"nodes": node("192.0.2.9"), "ip": addrs}, nil, "192.0.2.9"},
		{"a name that resolves", map[string]string{"nodes": node("n1.cluster"), "hosts": "ahostsv4 n1.cluster 192.0.2.4 STREAM\n", "ip": addrs}, nil, "192.0.2.4"},
		{"IPv6 is listed first", map[string]string{"nodes": node("n1"), "hosts": "ahostsv6 n1 fd00::4 STREAM\nahostsv4 n1 192.0.2.4 STREAM\n", "ip": addrs}, nil, "192.0.2.4"},
		{"only IPv6", map[string]string{"nodes": node("n1"), "hosts": "ahostsv6 n1 fd00::4 STREAM\n", "ip": addrs}, nil, "fd00::4"},
		{"an IPv4 address in IPv6's dress is none", map[string]string{"nodes": node("n1"), "hosts": "ahostsv6 n1 ::ffff:192.0.2.4 STREAM\nahostsv4 n1 192.0.2.4 STREAM\n", "ip": addrs}, []string{"FAMILY=ipv6"}, "fd00::7"},
		{"an IPv6 address of Slurm's", map[string]string{"nodes": node("fd00::5"), "ip": addrs}, nil, "fd00::5"},
		{"the node's own name is loopback", map[string]string{"nodes": node("n1"), "hosts": "ahostsv4 n1 127.0.1.1 STREAM\n", "ip": addrs}, nil, "10.0.0.7"},
		{"nothing resolves: the default route", map[string]string{"nodes": node("n1"), "ip": addrs + "route -4 203.0.113.1 via 10.0.0.1 dev eth0 src 10.0.0.8 uid 0\n"}, nil, "10.0.0.8"},
		{"nothing resolves, no route: the first address", map[string]string{"nodes": node("n1"), "ip": addrs}, nil, "10.0.0.7"},
		{"scontrol knows nothing", map[string]string{"ip": addrs}, nil, "10.0.0.7"},
		{"the site's interface", map[string]string{"nodes": node("192.0.2.9"), "ip": strings.ReplaceAll(addrs, "ib0", "lo")}, []string{"IFACE=lo"}, "127.0.0.1"},
		{"the site prefers IPv6", map[string]string{"nodes": node("192.0.2.9"), "ip": addrs}, []string{"FAMILY=ipv6"}, "fd00::7"},
		{"the site prefers IPv6, but there is none", map[string]string{"nodes": node("192.0.2.9")}, []string{"FAMILY=ipv6"}, "192.0.2.9"},
		{"no such interface", map[string]string{"ip": addrs}, []string{"IFACE=ib7"}, "FAIL node n1 of pool train: there is no interface ib7; there are "},
		{"an interface without an address", map[string]string{"nodes": node("192.0.2.9")}, []string{"IFACE=lo"}, "FAIL interface lo of node n1 (pool train) has no address"},
		{"no address at all", map[string]string{"nodes": node("n1"), "ip": "addr -4 1: lo    inet 127.0.0.1/8 scope host lo\n"}, nil, "FAIL node n1 (pool train) has no address: Slurm's NodeAddr n1 does not resolve"},
	} {
		out, err := inPools(t, c.files, "tp_pool train 1 2 srun --ntasks=1\ntp_meet_all\ntp_place POOL train train 8\ntp_place ROLE re-ward train 8\necho \"IP $TP_POOL_TRAIN_IP $TP_ROLE_RE_WARD_ENDPOINT\"; tp_close; wait", c.env...)
		if strings.HasPrefix(c.want, "FAIL") {
			if !strings.Contains(out, c.want) {
				t.Errorf("%s: %v\n%swanted %q", c.name, err, out, c.want)
			}
			continue
		}
		host := c.want
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if err != nil || !strings.Contains(out, "IP "+c.want+" "+host+":") {
			t.Errorf("%s: %v\n%swanted %q", c.name, err, out, c.want)
		}
	}
}

// A site's prologs print into a step's output, with and without a newline.
func TestNoiseInAStep(t *testing.T) {
	noisy := `srun() { printf 'welcome to n1\nno newline: '; command srun "$@"; }; export -f srun` + "\n"
	out, err := inPools(t, map[string]string{"nodes": "NodeName=n1 X NodeAddr=192.0.2.9 Y\n"},
		noisy+"tp_pool train 1 2 bash -c 'srun \"$@\"' srun --ntasks=1\ntp_meet_all\ntp_place POOL train train 0\necho \"IP $TP_POOL_TRAIN_IP\"; tp_close; wait")
	if err != nil || !strings.Contains(out, "IP 192.0.2.9") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Ranks come as they like; names stand in rank order, and two ranks of one
// machine hold one lock.
func TestThreeRanks(t *testing.T) {
	out, err := inPools(t, map[string]string{"nodes": "NodeName=n1 X NodeAddr=192.0.2.1 Y\nNodeName=n2 X NodeAddr=192.0.2.2 Y\nNodeName=n3 X NodeAddr=192.0.2.3 Y\n"},
		"tp_pool train 3 2 srun --ntasks=3\ntp_meet_all\ntp_place POOL train train 0\ntp_place ROLE train train 0\necho \"$TP_POOL_TRAIN_NODES|$TP_POOL_TRAIN_ADDRS|$TP_POOL_TRAIN_NNODES\"; tp_close; wait")
	if err != nil || !strings.Contains(out, "n1 n2 n3|192.0.2.1 192.0.2.2 192.0.2.3|3") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAStepThatCannotStart(t *testing.T) {
	out, err := inPools(t, nil, "tp_pool train 1 2 bash -c 'echo \"srun: error: no way\" >&2; exit 1'\ntp_meet_all\necho went on")
	if err == nil || !strings.Contains(out, "FAIL the step on the nodes of pool train ended: srun: error: no way") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Where blocks are looked for, by the nodes' ephemeral range.
func TestPortWindows(t *testing.T) {
	for _, c := range []struct {
		low, high, job int
		first, count   int
	}{
		{32768, 60999, 0, 10000, 1423 + 283 + 561}, // stock Linux
		{10000, 60999, 0, 61008, 283 + 561},        // from above
		{1024, 60999, 0, 61008, 283},               // nothing below
		{5000, 8000, 0, 10000, 3471 + 248},         // low and small
		{1024, 65535, 0, 0, 0},                     // no room
		{15000, 65535, 0, 10000, 312 + 561},        // nothing above
	} {
		out, err := inPools(t, nil, "tp_low="+strconv.Itoa(c.low)+" tp_high="+strconv.Itoa(c.high)+" SLURM_JOB_ID="+strconv.Itoa(c.job)+`
tp_windows
blocks=()
while tp_block; do blocks+=("$tp_port"); done
for p in "${blocks[@]}"; do
  if ((p % 16 || p < 1024 || p + 15 > 65535 || (p + 15 >= tp_low && p <= tp_high))); then echo "bad $p"; fi
done
echo "${blocks[0]:-0} ${#blocks[@]} $(printf '%s\n' "${blocks[@]}" | sort -u | grep -c .)"`)
		want := strings.Join([]string{strconv.Itoa(c.first), strconv.Itoa(c.count), strconv.Itoa(c.count)}, " ") + "\n"
		if c.count == 0 {
			err = nil // grep finds none
		}
		if err != nil || out != want {
			t.Errorf("range %d-%d: %v %q, wanted %q", c.low, c.high, err, out, want)
		}
	}
}

// Two jobs whose ids begin at the same block, on one machine and at once: the
// second one gets another, until the first has ended.
func TestIDsThatBeginAtTheSameBlock(t *testing.T) {
	start := "tp_pool train 1 2 srun --ntasks=1\ntp_meet_all\ntp_place POOL train train 0\n"
	first := `(SLURM_JOB_ID=7
` + start + `echo "first $TP_POOL_TRAIN_PORT" >"$FAKE/first"
until [[ -e $FAKE/over ]]; do sleep 0.05; done
tp_close; wait) &
until [[ -s $FAKE/first ]]; do sleep 0.05; done
cat "$FAKE/first"
tp_tmp=$(mktemp -d "$FAKE/tmp.XXXXXX")
`
	out, err := inPools(t, map[string]string{"nodes": "NodeName=n1 X NodeAddr=192.0.2.1 Y\n"},
		first+"SLURM_JOB_ID=1430\n"+start+`echo "second $TP_POOL_TRAIN_PORT"
tp_close
: >"$FAKE/over"; wait
tp_tmp=$(mktemp -d "$FAKE/tmp.XXXXXX") tp_pool_list=() tp_ask=() tp_hear=() tp_names=() tp_addrs=() tp_used=() tp_held=() tp_looked=0 SLURM_JOB_ID=2853
`+start+`echo "third $TP_POOL_TRAIN_PORT"; tp_close; wait`, "PORTS=40000-62767")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := func(which string) string {
		for line := range strings.Lines(out) {
			if p, ok := strings.CutPrefix(strings.TrimSpace(line), which+" "); ok {
				return p
			}
		}
		t.Fatalf("no %s port in\n%s", which, out)
		return ""
	}
	if port("first") == port("second") || port("first") != port("third") {
		t.Errorf("ports\n%s", out)
	}
}
