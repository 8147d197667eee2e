package site

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// deviceNames are the GRES names that count as computing devices: gres.conf(5)
// knows gpu; the others are what vendors of NPUs, DCUs and MLUs tell their
// customers to use. Bandwidth, licences, shards and local disks are no series.
var deviceNames = []string{"gpu", "npu", "dcu", "mlu", "xpu", "hpu", "tpu", "gcu", "ppu"}

func isDevice(g slurm.GRES) bool { return slices.Contains(deviceNames, g.Name) && g.Count > 0 }

// FromSnapshot makes a registry of what the cluster reports, for sites without
// a site file: one series per GRES type, "gpu" for devices without type, "cpu"
// for nodes without devices.
//
// Where nodes of one type differ, Devices is the largest count per node, so
// that no valid request is refused here; CPUs and Memory are the smallest
// among the nodes of that count, so that a whole-node request fits them all.
// Nodes that are down count too: a series that is offline still exists.
func FromSnapshot(snap *slurm.Snapshot) *Registry {
	r := &Registry{Origin: "cluster"}
	if snap == nil {
		return r
	}
	nodes := map[string][]slurm.Node{} // by GRES without count
	for _, n := range snap.Nodes {
		plain := true
		for _, g := range n.GRES {
			if isDevice(g) {
				plain = false
				key := strings.TrimSuffix(g.Name+":"+g.Type, ":")
				nodes[key] = append(nodes[key], n)
			}
		}
		if plain || snap.Info.Local {
			nodes[""] = append(nodes[""], n)
		}
	}
	// On this machine alone a job without GPUs runs beside those that have them.
	feature := ""
	if snap.Info.Local {
		feature = Local
	}
	gres := sorted(nodes)
	names := seriesNames(gres)
	for _, g := range gres {
		s := measured(names[g], g, nodes[g], snap)
		s.Feature = feature
		r.Series = append(r.Series, s)
	}
	// Devices first, as people look for them; "cpu" sorts into the middle else.
	slices.SortStableFunc(r.Series, func(a, b Series) int {
		return cmp.Or(-cmp.Compare(min(a.Devices, 1), min(b.Devices, 1)), strings.Compare(a.Name, b.Name))
	})
	return r
}

func measured(name, gres string, nodes []slurm.Node, snap *slurm.Snapshot) Series {
	s := Series{Name: name, GRES: gres, Origin: "cluster", Nodes: 1}
	kind, typ, _ := strings.Cut(gres, ":")
	count := func(n slurm.Node) (total int) {
		for _, g := range n.GRES {
			if g.Name == kind && g.Type == typ {
				total += g.Count
			}
		}
		return total
	}
	for _, n := range nodes {
		s.Devices = max(s.Devices, count(n))
	}
	inPartition := map[string]int{}
	for _, n := range nodes {
		for _, p := range n.Partitions {
			inPartition[p]++
		}
		if count(n) < s.Devices {
			continue
		}
		if n.CPUs > 0 && (s.CPUs == 0 || n.CPUs < s.CPUs) {
			s.CPUs = n.CPUs
		}
		if n.Memory > 0 && (s.Memory == 0 || n.Memory < s.Memory) {
			s.Memory = n.Memory
		}
	}
	s.PerNode = s.Devices
	s.Partitions = sorted(inPartition)
	slices.SortStableFunc(s.Partitions, func(a, b string) int { // the first is what a job gets
		pa, _ := snap.Partition(a)
		pb, _ := snap.Partition(b)
		return cmp.Or(-cmp.Compare(up(pa), up(pb)), -cmp.Compare(bit(pa.Default), bit(pb.Default)), -cmp.Compare(inPartition[a], inPartition[b]))
	})
	return s
}

func up(p slurm.Partition) int { return bit(p.State == "UP" || p.State == "") }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// seriesNames gives each GRES its name: the shortened type, or the whole type
// in lower case where two types would get the same short name, or with its
// case where only that tells them apart.
func seriesNames(gres []string) map[string]string {
	names := map[string]string{}
	for _, form := range []func(kind, typ string) string{
		func(kind, typ string) string { return shorten(typ) },
		func(kind, typ string) string { return strings.ToLower(typ) },
		func(kind, typ string) string { return typ },
		func(kind, typ string) string { return kind + "-" + typ },
	} {
		count := map[string]int{}
		try := map[string]string{}
		for _, g := range gres {
			if _, done := names[g]; done {
				continue
			}
			kind, typ, _ := strings.Cut(g, ":")
			switch {
			case g == "":
				try[g] = "cpu"
			case typ == "":
				try[g] = kind
			default:
				try[g] = form(kind, typ)
			}
			count[try[g]]++
		}
		taken := map[string]bool{}
		for _, n := range names {
			taken[n] = true
		}
		for g, n := range try {
			if count[n] == 1 && !taken[n] {
				names[g] = n
			}
		}
	}
	return names
}

var (
	vendors = []string{"nvidia", "amd", "intel", "huawei", "tesla", "geforce", "instinct", "gpu"}
	// details are sizes of memory and kinds of sockets: 80gb, 80g, hbm3e, sxm5, pcie.
	details = regexp.MustCompile(`^(\d+g(i?b)?|hbm\d?e?|sxm\d?|pcie|oam)$`)
	seps    = regexp.MustCompile(`[_\- ]+`)
)

// shorten takes vendor names from the front and details from the back:
// nvidia_h100_80gb_hbm3 is h100, h100_nvl stays what it is.
func shorten(typ string) string {
	words := seps.Split(strings.ToLower(typ), -1)
	for len(words) > 1 && slices.Contains(vendors, words[0]) {
		words = words[1:]
	}
	for len(words) > 1 && details.MatchString(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	return strings.Join(words, "_")
}
