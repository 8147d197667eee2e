package site

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
	"github.com/tuneplane/tp/slurm"
)

// Series is one node type of the hardware registry.
type Series struct {
	Name       string    // "h200"
	GRES       string    // "gpu:H200", Slurm's own spelling, without a count; "" for nodes without devices
	Devices    int       // per node; without a GRES only where none is asked for
	CPUs       int       // per node; 0 when not known
	Memory     slurm.MiB // per node; 0 when not known
	Nodes      int       // default shape: nodes …
	PerNode    int       // … and devices on each
	Arch       string    // "x86_64", "aarch64"; "" when not known
	Partitions []string  // the first is used unless told otherwise
	Price      float64   // per device and hour, per node and hour without devices; 0 when not known
	Constraint string    // sent with every job of this series
	Feature    string    // node feature that tells its nodes from others with the same GRES
	Aliases    []string  // other names that people may type, in any case
	Ways       Ways
	Origin     string // "site.toml:20" or "cluster"
	Exist      int    // nodes of it that the cluster has, whatever their state; 0 when not known
}

// Has reports whether a node is of this series.
func (s Series) Has(n slurm.Node) bool {
	if s.Feature != "" && !slices.Contains(n.Features, s.Feature) {
		return false
	}
	if s.GRES == "" {
		// Partitions often hold nodes of several kinds: a series without devices
		// means those without, unless a feature names others.
		return s.sharesPartition(n) && (s.Feature != "" || s.Devices > 0 || !slices.ContainsFunc(n.GRES, isDevice))
	}
	name, typ, _ := strings.Cut(s.GRES, ":")
	return slurm.Count(n.GRES, name, typ) > 0 && s.sharesPartition(n)
}

func (s Series) sharesPartition(n slurm.Node) bool {
	return len(s.Partitions) == 0 || slices.ContainsFunc(s.Partitions, func(p string) bool { return slices.Contains(n.Partitions, p) })
}

// checkAliases refuses a name that two series would answer to.
func checkAliases(f *tomlfile.File, list []Series) error {
	owner := map[string]string{}
	for _, s := range list {
		owner[strings.ToLower(s.Name)] = s.Name
	}
	for _, s := range list {
		for _, a := range s.Aliases {
			at := []string{"series", s.Name, "aliases"}
			if a == "" || strings.ContainsAny(a, "=,: \t\n") {
				return f.Errorf(at, "%q: an alias has no =, comma, colon or blank", a)
			}
			if other, taken := owner[strings.ToLower(a)]; taken && other != s.Name {
				return f.Errorf(at, "%q means series %s already", a, other)
			}
			owner[strings.ToLower(a)] = s.Name
		}
	}
	return nil
}

// newSeries checks one [series.<name>] table.
func newSeries(f *tomlfile.File, name string, k seriesKeys, common Ways) (Series, error) {
	at := func(key string) []string { return []string{"series", name, key} }
	s := Series{Name: name, GRES: k.GRES, Devices: k.Devices, CPUs: k.CPUs, Arch: k.Arch, Partitions: k.Partitions,
		Price: k.Price, Constraint: k.Constraint, Feature: k.Feature, Aliases: k.Aliases, Origin: f.Origin("series", name)}
	var err error
	if s.Ways, err = newWays(f, name, k, common); err != nil {
		return s, err
	}
	if name == "" || strings.ContainsAny(name, "=,: \t\n") {
		return s, f.Errorf(at("")[:2], "a series has a name without =, comma, colon and blank")
	}
	if k.GRES != "" {
		parts := strings.Split(k.GRES, ":")
		if len(parts) > 2 || slices.Contains(parts, "") || strings.ContainsAny(k.GRES, " ,()=\t\n") {
			return s, f.Errorf(at("gres"), "%q: expected NAME or NAME:TYPE without a count, such as gpu:h200", k.GRES)
		}
		if _, err := strconv.Atoi(parts[len(parts)-1]); err == nil {
			return s, f.Errorf(at("gres"), "%q ends in a count; write devices = %s", k.GRES, parts[len(parts)-1])
		}
	}
	switch {
	case k.Devices < 0 || k.Devices > 1024:
		return s, f.Errorf(at("devices"), "%d is not between 0 and 1024", k.Devices)
	case k.GRES != "" && k.Devices == 0:
		return s, f.Errorf(at("gres"), "devices is missing: how many has a node?")
	case k.GRES == "" && k.Devices > 0 && s.Ways.GPURequest != NotRequested:
		return s, f.Errorf(at("devices"), "gres is missing: how does Slurm call them? (gpu_request = \"none\" where no job asks for them)")
	case s.Ways.GPURequest == ByGPUsPerNode && k.GPURequest != "" && k.GRES != "gpu" && !strings.HasPrefix(k.GRES, "gpu:"):
		return s, f.Errorf(at("gpu_request"), "gpus-per-node asks for GRES gpu alone, not for %q", k.GRES)
	case k.CPUs < 0 || k.CPUs > 1<<16:
		return s, f.Errorf(at("cpus"), "%d is not between 0 and 65536", k.CPUs)
	case math.IsNaN(k.Price) || math.IsInf(k.Price, 0):
		return s, f.Errorf(at("price"), "%v is no price", k.Price)
	case k.Price < 0:
		return s, f.Errorf(at("price"), "%v is negative", k.Price)
	}
	if k.Memory != "" {
		mib, err := spec.ParseMemory(k.Memory)
		if err != nil {
			return s, f.Errorf(at("memory"), "%w", err)
		}
		s.Memory = slurm.MiB(mib)
	}
	s.Nodes, s.PerNode = 1, s.Devices
	if k.Default != "" {
		p, err := spec.ParseProfile("x:" + k.Default)
		if err != nil {
			return s, f.Errorf(at("default"), "%q: expected a count or NODESxDEVICES, such as 2x8", k.Default)
		}
		if s.Nodes, s.PerNode, err = s.shape(p); err != nil {
			return s, f.Errorf(at("default"), "%w", err)
		}
	}
	return s, nil
}
