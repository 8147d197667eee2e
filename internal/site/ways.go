package site

import (
	"fmt"
	"slices"

	"github.com/tuneplane/tp/internal/tomlfile"
	"github.com/tuneplane/tp/slurm"
)

// Ways are how a site wants jobs of a series to be asked for, and what they
// get where neither the user nor the lab says otherwise.
type Ways struct {
	GPURequest GPURequest
	Memory     MemoryRule
	// MemoryOrigin is where the rule stands, "site.toml:20".
	MemoryOrigin string

	Account     string
	QOS         string
	Reservation string
	Time        string      // as written, "4h"
	Share       slurm.Share // of its nodes
	Segment     int         // nodes per block of topology/block; 0 for none
	Switches    int         // most leaf switches; 0 for any number
	Prolog      []string    // lines before those of the job
}

// GPURequest is how devices are asked for. "" is --gres.
type GPURequest string

// Ways to ask for devices.
const (
	ByGRES        GPURequest = "gres"
	ByGPUsPerNode GPURequest = "gpus-per-node"
	// NotRequested: partition or constraint alone give the devices.
	NotRequested GPURequest = "none"
)

// MemoryRule says whether jobs ask for memory. "" is AllowMemory.
type MemoryRule string

// Rules for memory.
const (
	AllowMemory   MemoryRule = "allow"   // sent where it is known
	RequireMemory MemoryRule = "require" // always sent
	ForbidMemory  MemoryRule = "forbid"  // never sent
	PerCPUMemory  MemoryRule = "per_cpu" // sent as memory per CPU
)

// requests takes [requests], which holds for every series.
func (c *Config) requests(f *tomlfile.File, k requestKeys) error {
	w, err := asked(f, []string{"requests"}, k.GPURequest, k.MemoryRule, Ways{})
	c.Requests = w
	return err
}

// asked checks the two rules in a table and lays them over those around it.
func asked(f *tomlfile.File, table []string, gpus, memory string, w Ways) (Ways, error) {
	at := func(key string) []string { return append(slices.Clone(table), key) }
	if err := oneOf(f, at("gpu_request"), gpus, string(ByGRES), string(ByGPUsPerNode), string(NotRequested)); err != nil {
		return w, err
	}
	if err := oneOf(f, at("mem"), memory, string(AllowMemory), string(RequireMemory), string(ForbidMemory), string(PerCPUMemory)); err != nil {
		return w, err
	}
	if gpus != "" {
		w.GPURequest = GPURequest(gpus)
	}
	if memory != "" {
		w.Memory, w.MemoryOrigin = MemoryRule(memory), f.Origin(at("mem")...)
	}
	return w, nil
}

// newWays checks what a [series.<name>] table says beside its hardware.
func newWays(f *tomlfile.File, name string, k seriesKeys, common Ways) (Ways, error) {
	at := func(key string) []string { return []string{"series", name, key} }
	w, err := asked(f, at("")[:2], k.GPURequest, k.MemoryRule, common)
	if err != nil {
		return w, err
	}
	w.Account, w.QOS, w.Reservation, w.Time, w.Segment, w.Switches, w.Prolog = k.Account, k.QOS, k.Reservation, k.Time, k.Segment, k.Switches, k.Prolog
	if err := checkTime(f, at("time"), k.Time); err != nil {
		return w, err
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"segment", k.Segment}, {"switches", k.Switches}} {
		if _, set := f.Find(at(n.key)...); set && (n.value < 1 || n.value > 1<<16) {
			return w, f.Errorf(at(n.key), "%d is not between 1 and 65536", n.value)
		}
	}
	if w.Share, err = share(k.Exclusive); err != nil {
		return w, f.Errorf(at("exclusive"), "%w", err)
	}
	return w, nil
}

// share reads exclusive = true, or who may share the nodes.
func share(v any) (slurm.Share, error) {
	switch v := v.(type) {
	case nil:
		return slurm.ShareDefault, nil
	case bool:
		if v {
			return slurm.Exclusive, nil
		}
		return slurm.ShareDefault, nil
	case string:
		if s := slurm.Share(v); s == slurm.ExclusiveUser || s == slurm.ExclusiveMCS || s == slurm.ExclusiveTopo {
			return s, nil
		}
	}
	return "", fmt.Errorf("%v: expected true, \"user\", \"mcs\" or \"topo\"", v)
}
