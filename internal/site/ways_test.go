package site

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/slurm"
)

const ways = `[requests]
gpu_request = "gpus-per-node"
mem = "per_cpu"
[fleets.main]
prolog = ["module load slurm"]
[series.h100]
gres = "gpu:nvidia_h100_80gb_hbm3"
aliases = ["H100-SXM", "hopper"]
devices = 8
mem = "forbid"
account = "dept-bioinformatics and more"
exclusive = "user"
segment = 4
switches = 2
time = "3h"
prolog = ["module load cuda"]
[series.npu]
gres = "npu:ascend910b"
devices = 8
exclusive = true
gpu_request = "gres"
[series.bare]
devices = 4
gpu_request = "none"
partitions = ["gpu"]
`

func TestWaysOfASite(t *testing.T) {
	c, _, err := world(t, nil, map[string]string{"etc/site.toml": ways})
	if err != nil {
		t.Fatal(err)
	}
	h100, npu, bare := c.Series[0], c.Series[1], c.Series[2]
	if w := h100.Ways; w.GPURequest != ByGPUsPerNode || w.Memory != ForbidMemory || !strings.HasSuffix(w.MemoryOrigin, "site.toml:10") || w.Account != "dept-bioinformatics and more" ||
		w.Share != slurm.ExclusiveUser || w.Segment != 4 || w.Switches != 2 || w.Time != "3h" || len(w.Prolog) != 1 {
		t.Errorf("h100: %+v", w)
	}
	if w := npu.Ways; w.GPURequest != ByGRES || w.Memory != PerCPUMemory || !strings.HasSuffix(w.MemoryOrigin, "site.toml:3") || w.Share != slurm.Exclusive {
		t.Errorf("npu: %+v", w)
	}
	if !bare.Has(slurm.Node{Partitions: []string{"gpu"}, GRES: []slurm.GRES{{Name: "gpu", Count: 4}}}) || bare.Has(slurm.Node{Partitions: []string{"cpu"}}) {
		t.Error("a series without GRES is known by its partition")
	}
	for _, name := range []string{"h100", "HOPPER", "h100-sxm", "nvidia_h100_80gb_HBM3"} {
		if s, err := c.Registry().Find(name); err != nil || s.Name != "h100" {
			t.Errorf("%s: %v, %v", name, s.Name, err)
		}
	}
	if l := c.DefaultsOn("main"); len(l) != 1 || len(l[0].Keys.Prolog) != 1 {
		t.Errorf("the fleet's prolog: %+v", l)
	}
	if r := c.Measured(mixed()); r.Series[0].Ways.Memory != PerCPUMemory {
		t.Errorf("what is measured is asked for as the site wants: %+v", r.Series[0].Ways)
	}
}

func TestWaysRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"[requests]\ngpu_request = 'gpus'": `requests.gpu_request: "gpus": expected gres or gpus-per-node or none`,
		"[requests]\nmem = 'no'":           `:2:1: requests.mem: "no": expected allow or require or forbid or per_cpu`,
		"[series.x]\nmem = 'percpu'":       `series.x.mem: "percpu"`,
		"[series.x]\ngres = 'npu:a'\ndevices = 8\ngpu_request = 'gpus-per-node'": `gpus-per-node asks for GRES gpu alone, not for "npu:a"`,
		"[series.x]\ndevices = 8":                                            `gpu_request = "none" where no job asks for them`,
		"[series.x]\nexclusive = 'yes'":                                      `expected true, "user", "mcs" or "topo"`,
		"[series.x]\nsegment = 0":                                            "0 is not between 1 and 65536",
		"[series.x]\ntime = '1:30'":                                          "ambiguous",
		"[series.x]\naliases = ['a b']":                                      "has no =, comma, colon or blank",
		"[series.h100]\n[series.x]\naliases = ['H100']":                      `:3:1: series.x.aliases: "H100" means series h100 already`,
		"[series.a]\naliases = ['hopper']\n[series.b]\naliases = ['Hopper']": `"Hopper" means series a already`,
		"[series.x]\nalias = ['a']":                                          `did you mean "aliases"?`,
		"[series.x]\ngres = 'gpu:h:8'\ndevices = 8":                          "without a count",
		"[series.x]\ngres = 'gpu:8'\ndevices = 8":                            "ends in a count",
		"[series.x]\ngres = 'gpu:h'\ndevices = 8\ngpu_request = 'none'\nmem = 'forbid'\nprice = -1": "negative",
	} {
		_, _, err := world(t, nil, map[string]string{"etc/site.toml": text})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// What one person calls h100 is on another site H100, nvidia_h100_80gb_hbm3,
// h100nvl beside h100, or has no name at all.
func TestNamesOfDevices(t *testing.T) {
	on := func(types ...string) *Registry {
		snap := &slurm.Snapshot{}
		for _, typ := range types {
			snap.Nodes = append(snap.Nodes, slurm.Node{GRES: gpu(typ, 8)})
		}
		return FromSnapshot(snap)
	}
	for _, c := range []struct {
		reg        *Registry
		name, want string
	}{
		{on("nvidia_h200"), "h200", "gpu:nvidia_h200"},
		{on("H200"), "h200", "gpu:H200"},
		{on("H200"), "H200", "gpu:H200"},
		{on("NVIDIA-H100-80GB-HBM3"), "h100", "gpu:NVIDIA-H100-80GB-HBM3"},
		{on("h100", "h100nvl"), "h100", "gpu:h100"}, // this is its name
		{on("h100nvl"), "H100", `series "H100" is not in the hardware registry; did you mean h100nvl?`},
		{on("h100nvl", "h100pcie"), "h100", `series "h100" could be h100nvl or h100pcie`},
		{on(""), "h200", `series "h200" is not in the hardware registry; known: gpu (gpu: its devices have no type here)`},
		{on(""), "gpu", "gpu"},
		{&Registry{Series: []Series{{Name: "big", GRES: "gpu:nvidia_h100_80gb_hbm3"}, {Name: "h100nvl", GRES: "gpu:h100nvl"}}}, "h100", `series "h100" could be big or h100nvl`},
		{&Registry{Series: []Series{{Name: "big", GRES: "gpu:nvidia_h100_80gb_hbm3", Aliases: []string{"H100"}}, {Name: "h100nvl", GRES: "gpu:h100nvl"}}}, "h100", "gpu:nvidia_h100_80gb_hbm3"},
		{&Registry{Series: []Series{{Name: "old", GRES: "gpu:A100", Feature: "40g"}, {Name: "new", GRES: "gpu:A100", Feature: "80g"}}}, "a100", `series "a100" could be old or new`},
	} {
		s, err := c.reg.Find(c.name)
		got := s.GRES
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || err == nil && got != c.want {
			t.Errorf("%s among %v: %q, want %q", c.name, c.reg.Names(), got, c.want)
		}
	}
}
