package site

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

func gpu(typ string, n int) []slurm.GRES { return []slurm.GRES{{Name: "gpu", Type: typ, Count: n}} }

func mixed() *slurm.Snapshot {
	return &slurm.Snapshot{
		Info: slurm.Info{Transport: "slurmrestd", Cluster: "c", Release: "24.11"},
		Nodes: []slurm.Node{
			{Name: "a1", GRES: gpu("nvidia_H200", 8), CPUs: 128, Memory: 2000000, Partitions: []string{"all", "gpu"}},
			{Name: "a2", GRES: gpu("nvidia_H200", 8), CPUs: 96, Memory: 1900000, Partitions: []string{"all", "gpu", "old"}, State: "DOWN"},
			{Name: "a3", GRES: gpu("nvidia_H200", 4), CPUs: 32, Memory: 900000, Partitions: []string{"gpu"}},
			{Name: "b1", GRES: append(gpu("nvidia_h100_80gb_hbm3", 4), slurm.GRES{Name: "shard", Count: 64}), Partitions: []string{"gpu"}},
			{Name: "c1", GRES: gpu("h100_nvl", 2), Partitions: []string{"gpu"}},
			{Name: "d1", GRES: gpu("a100-sxm4-40gb", 4)},
			{Name: "d2", GRES: gpu("a100-sxm4-80gb", 4)},
			{Name: "e1", GRES: gpu("", 8)},
			{Name: "f1", GRES: []slurm.GRES{{Name: "nvme", Count: 1}}, CPUs: 64, Memory: 256000, Partitions: []string{"all"}},
			{Name: "g1", GRES: []slurm.GRES{{Name: "npu", Type: "ascend910b", Count: 8}}},
		},
		Partitions: []slurm.Partition{{Name: "old", State: "DOWN"}, {Name: "all", Default: true, State: "UP"}, {Name: "gpu", State: "UP"}},
	}
}

func TestFromSnapshot(t *testing.T) {
	var got []string
	for _, s := range FromSnapshot(mixed()).Series {
		got = append(got, fmt.Sprintf("%s %s %dx%d cpus=%d mem=%d %v", s.Name, s.GRES, s.Nodes, s.PerNode, s.CPUs, s.Memory, s.Partitions))
	}
	want := `a100-sxm4-40gb gpu:a100-sxm4-40gb 1x4 cpus=0 mem=0 []
a100-sxm4-80gb gpu:a100-sxm4-80gb 1x4 cpus=0 mem=0 []
ascend910b npu:ascend910b 1x8 cpus=0 mem=0 []
gpu gpu 1x8 cpus=0 mem=0 []
h100 gpu:nvidia_h100_80gb_hbm3 1x4 cpus=0 mem=0 [gpu]
h100_nvl gpu:h100_nvl 1x2 cpus=0 mem=0 [gpu]
h200 gpu:nvidia_H200 1x8 cpus=96 mem=1900000 [all gpu old]
cpu  1x0 cpus=64 mem=256000 [all]`
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
	if r := FromSnapshot(nil); len(r.Series) != 0 {
		t.Error("series of nothing")
	}
	reg := FromSnapshot(mixed())
	for i, n := range mixed().Nodes {
		count := 0
		for _, s := range reg.Series {
			if s.Has(n) {
				count++
			}
		}
		if count != 1 && n.Name != "a1" && n.Name != "a2" && n.Name != "e1" { // cpu has their partition; "gpu" counts every type
			t.Logf("node %d %s is of %d series", i, n.Name, count)
		}
	}
	// Only the case tells them apart.
	twins := FromSnapshot(&slurm.Snapshot{Nodes: []slurm.Node{{GRES: gpu("H200", 8)}, {GRES: gpu("h200", 8)}}})
	if names := strings.Join(twins.Names(), " "); names != "H200 h200" {
		t.Errorf("twins: %s", names)
	}
}

func TestResolve(t *testing.T) {
	r := FromSnapshot(mixed())
	r.Series[6].Nodes = 2 // default shape of h200: 2x8
	for text, want := range map[string]string{
		"h200":                  "2x8 gpu:nvidia_H200",
		"H200:4":                "1x4 gpu:nvidia_H200",
		"train=h200:8":          "1x8 gpu:nvidia_H200",
		"h200:16":               "2x8 gpu:nvidia_H200",
		"h200:4x2":              "4x2 gpu:nvidia_H200",
		"nvidia_h200:1":         "1x1 gpu:nvidia_H200",
		"h100:4":                "1x4 gpu:nvidia_h100_80gb_hbm3",
		"nvidia_h100_80gb_hbm3": "1x4 gpu:nvidia_h100_80gb_hbm3",
		"gpu:8":                 "1x8 gpu",
		"cpu":                   "1x0 ",
		"cpu:2":                 "2x0 ",
		"h200:12":               "admission: profile h200:12: 12 is no multiple of 8, the devices of a node; nearest: 8 or 16",
		"h200:2x16":             "admission: profile h200:2x16: a node of h200 has 8 devices, not 16; nearest: h200:2x8 or h200:4x8",
		"cpu:2x4":               "admission: profile cpu:2x4: cpu has no devices, so cpu:N counts nodes; nearest: cpu:2",
		"h2o0":                  `admission: series "h2o0" is not in the hardware registry; did you mean h200?`,
		"a100":                  `admission: series "a100" could be a100-sxm4-40gb or a100-sxm4-80gb`,
		"b300":                  `admission: series "b300" is not in the hardware registry; did you mean`,
		"ascend":                `admission: series "ascend" is not in the hardware registry; did you mean ascend910b?`,
	} {
		p, err := spec.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		nodes, per, s, err := r.Resolve(p)
		got := fmt.Sprintf("%dx%d %s", nodes, per, s.GRES)
		if err != nil {
			got = err.Error()
			if f := err.(*fault.Error); f.Code != fault.Blocked || f.Gate != "admission" || f.Hint == "" {
				t.Errorf("%s: %+v", text, f)
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}

	// Neither of two is what the short name says.
	r = &Registry{Series: []Series{{Name: "h100nvl", GRES: "gpu:h100nvl", Devices: 4}, {Name: "h100pcie", GRES: "gpu:h100pcie", Devices: 4}}}
	if _, err := r.Find("h100"); err == nil || !strings.Contains(err.Error(), "could be h100nvl or h100pcie") {
		t.Errorf("ambiguous alias: %v", err)
	}
	if _, err := (&Registry{}).Find("x"); err == nil || strings.Contains(err.Error(), "Known") {
		t.Errorf("empty registry: %v", err)
	}
}

// A partition that CPU nodes share with GPU nodes made those count as CPU nodes
// in a registry that was measured, not written.
func TestMeasuredNodesWithoutDevicesShareAPartition(t *testing.T) {
	snap := &slurm.Snapshot{Nodes: []slurm.Node{
		{Name: "c1", Partitions: []string{"cpu", "short"}},
		{Name: "g1", Partitions: []string{"gpu", "short"}, GRES: []slurm.GRES{{Name: "gpu", Type: "h100", Count: 8}}},
	}}
	s, err := FromSnapshot(snap).Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	if !s.Has(snap.Nodes[0]) || s.Has(snap.Nodes[1]) {
		t.Errorf("series cpu has c1: %v, g1: %v", s.Has(snap.Nodes[0]), s.Has(snap.Nodes[1]))
	}
}

// What does not exist is no help.
func TestNearestProfileExists(t *testing.T) {
	snap := &slurm.Snapshot{Nodes: []slurm.Node{{Name: "a", GRES: gpu("h200", 8)}, {Name: "b", GRES: gpu("h200", 8)}}}
	for text, want := range map[string]string{
		"h200:99":   "99 is no multiple of 8, the devices of a node; nearest: 16 (the cluster has 2 nodes of h200)",
		"h200:12":   "12 is no multiple of 8, the devices of a node; nearest: 8 or 16",
		"h200:2x16": "a node of h200 has 8 devices, not 16; nearest: h200:2x8 (the cluster has 2 nodes of h200)",
	} {
		p, err := spec.ParseProfile(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := FromSnapshot(snap).Counted(snap).Resolve(p); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, wanted %q", text, err, want)
		}
	}
}

// A hint for one pool keeps its roles and its size.
func TestAmbiguousSeriesKeepsTheProfile(t *testing.T) {
	p, err := spec.ParseProfile("reward=a100:4")
	if err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if _, _, _, err := FromSnapshot(mixed()).Resolve(p); !errors.As(err, &f) || f.Hint != "--profile reward=a100-sxm4-40gb:4" {
		t.Errorf("%v: %+v", err, f)
	}
}
