package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Live is a fleet as it answered.
type Live struct {
	Fleet string
	Snap  *slurm.Snapshot
	Facts *slurm.Facts // nil where Slurm's commands could not be asked
}

// Check holds the files against the clusters that answered. Each finding says
// where the key stands and what would be right.
func (c *Config) Check(clusters []Live) []Finding {
	var out []Finding
	for _, s := range c.Series {
		out = append(out, c.checkSeries(s, clusters)...)
	}
	for _, l := range clusters {
		for _, layer := range c.DefaultsOn(l.Fleet) {
			at := func(key string) string { return layer.File.Origin(append(slices.Clone(layer.Prefix), key)...) }
			text := func(v any) string { s, _ := v.(string); return s }
			out = append(out, l.checkNames("defaults", at, text(layer.Keys.Account), text(layer.Keys.QOS), text(layer.Keys.Reservation))...)
			if p := text(layer.Keys.Partition); p != "" {
				if _, ok := l.Snap.Partition(p); !ok {
					out = append(out, Bad.finding("partition", at("partition"), nearest("partition", p, l.partitions()), "fleet %s has no partition %s", l.Fleet, p))
				}
			}
		}
	}
	return out
}

// checkSeries looks at one [series] on the fleets that have such nodes.
func (c *Config) checkSeries(s Series, clusters []Live) []Finding {
	at := func(key string) string {
		if where := c.Origin("series." + s.Name + "." + key); where != "" {
			return where
		}
		return s.Origin
	}
	topic := "series " + s.Name
	var out []Finding
	found := false
	for _, l := range clusters {
		nodes := filter(l.Snap.Nodes, s.Has)
		if len(nodes) == 0 {
			continue
		}
		found = true
		out = append(out, Good.finding(topic, s.Origin, "", "%d nodes on fleet %s", len(nodes), l.Fleet))
		out = append(out, l.checkSizes(s, topic, at, nodes)...)
		out = append(out, l.checkPlaces(s, topic, at, nodes)...)
		out = append(out, l.checkWays(s, topic, at)...)
		out = append(out, l.checkNames(topic, at, s.Ways.Account, s.Ways.QOS, s.Ways.Reservation)...)
	}
	if !found && len(clusters) > 0 {
		out = append(out, whyNone(s, topic, at, clusters))
	}
	return out
}

// whyNone says what keeps every node out of a series.
func whyNone(s Series, topic string, at func(string) string, clusters []Live) Finding {
	kind, typ, _ := strings.Cut(s.GRES, ":")
	var types []string
	for _, l := range clusters {
		for _, n := range l.Snap.Nodes {
			for _, g := range n.GRES {
				name := strings.TrimSuffix(g.Name+":"+g.Type, ":")
				if strings.EqualFold(name, s.GRES) && name != s.GRES {
					return Bad.finding(topic, at("gres"), fmt.Sprintf("gres = %s", basic(name)), "the nodes have %s, which differs in case", name)
				}
				if isDevice(g) && !slices.Contains(types, name) {
					types = append(types, name)
				}
			}
			if s.GRES == "" || slurm.Count(n.GRES, kind, typ) > 0 {
				if s.Feature != "" && !slices.Contains(n.Features, s.Feature) {
					return Bad.finding(topic, at("feature"), "tp fleet show lists the nodes", "nodes like %s have features %s, none has %s", n.Name, strings.Join(n.Features, ","), s.Feature)
				}
				return Bad.finding(topic, at("partitions"), fmt.Sprintf("partitions = [%s]", quoted(n.Partitions)), "node %s has its devices and is in none of its partitions", n.Name)
			}
		}
	}
	slices.Sort(types)
	return Bad.finding(topic, at("gres"), "tp site init prints what there is", "no node has %s; the nodes have %s", cmp.Or(s.GRES, "its place"), cmp.Or(strings.Join(types, ", "), "no devices"))
}

// checkSizes: nobody may be promised more than the largest node has.
func (l Live) checkSizes(s Series, topic string, at func(string) string, nodes []slurm.Node) []Finding {
	var out []Finding
	kind, typ, _ := strings.Cut(s.GRES, ":")
	var devices, cpus int
	var memory slurm.MiB
	for _, n := range nodes {
		devices, cpus, memory = max(devices, slurm.Count(n.GRES, kind, typ)), max(cpus, n.CPUs), max(memory, n.Memory)
	}
	if s.GRES != "" && s.Devices > devices {
		out = append(out, Bad.finding(topic, at("devices"), fmt.Sprintf("devices = %d", devices), "%d devices, and no node has more than %d", s.Devices, devices))
	}
	if s.CPUs > cpus {
		out = append(out, Bad.finding(topic, at("cpus"), fmt.Sprintf("cpus = %d", cpus), "%d CPUs, and no node has more than %d", s.CPUs, cpus))
	}
	if s.Memory > memory {
		out = append(out, Bad.finding(topic, at("memory"), fmt.Sprintf("memory = %s", basic(memory.String())), "%s of memory, and no node has more than %s", s.Memory, memory))
	}
	return out
}

// checkPlaces looks at partitions, time and constraint.
func (l Live) checkPlaces(s Series, topic string, at func(string) string, nodes []slurm.Node) []Finding {
	var out []Finding
	for _, name := range s.Partitions {
		p, ok := l.Snap.Partition(name)
		switch {
		case !ok:
			out = append(out, Bad.finding(topic, at("partitions"), nearest("partition", name, l.partitions()), "fleet %s has no partition %s", l.Fleet, name))
		case !slices.ContainsFunc(nodes, func(n slurm.Node) bool { return slices.Contains(n.Partitions, name) }):
			out = append(out, Bad.finding(topic, at("partitions"), "leave it out, or tp fleet show", "partition %s holds none of its nodes", name))
		case p.State != "UP" && p.State != "":
			out = append(out, Warn.finding(topic, at("partitions"), "scontrol update partition="+name+" state=up", "partition %s is %s", name, p.State))
		}
	}
	for _, c := range []struct{ key, text string }{{"constraint", s.Constraint}, {"feature", s.Feature}} {
		if strings.Contains(c.text, "*") {
			continue // counts of nodes are left to Slurm
		}
		for _, feature := range strings.FieldsFunc(c.text, func(r rune) bool { return strings.ContainsRune("&|()[],! ", r) }) {
			if !slices.ContainsFunc(nodes, func(n slurm.Node) bool { return slices.Contains(n.Features, feature) }) {
				out = append(out, Bad.finding(topic, at(c.key), "scontrol show node lists the features", "no node of the series has feature %s", feature))
			}
		}
	}
	return out
}

// checkWays holds how resources are asked for against what slurm.conf knows.
func (l Live) checkWays(s Series, topic string, at func(string) string) []Finding {
	if l.Facts == nil || l.Facts.Config == nil {
		return nil
	}
	var out []Finding
	conf, w := l.Facts.Config, s.Ways
	name, _, _ := strings.Cut(s.GRES, ":")
	_, known := conf.Option("GresTypes", name)
	switch {
	case w.GPURequest == NotRequested && s.GRES != "" && known:
		out = append(out, Warn.finding(topic, at("gpu_request"), `gpu_request = "gres", unless partition or constraint give them`, "slurm.conf counts %s, and a job that asks for none gets none", name))
	case w.GPURequest != NotRequested && s.GRES != "" && !known:
		out = append(out, Bad.finding(topic, at("gres"), "GresTypes="+name+" in slurm.conf, or gpu_request = \"none\"", "GresTypes=%s does not name %s: no job can ask for it", conf.Get("GresTypes"), name))
	}
	memory := consumesMemory(conf)
	switch {
	case w.Memory == ForbidMemory && memory:
		for _, p := range s.Partitions {
			if record := l.Facts.Partition(p); record != nil && !hasDefaultMemory(conf, record) {
				out = append(out, Warn.finding(topic, w.MemoryOrigin, "DefMemPerCPU for partition "+p+" in slurm.conf", "mem = \"forbid\", and partition %s has no default: every job takes all memory of its nodes", p))
			}
		}
	case (w.Memory == RequireMemory || w.Memory == PerCPUMemory) && !memory:
		out = append(out, Note.finding(topic, w.MemoryOrigin, `mem = "forbid"`, "mem = %q, and memory is not counted here (SelectTypeParameters=%s)", w.Memory, conf.Get("SelectTypeParameters")))
	}
	if w.Segment > 0 && conf.Get("TopologyPlugin") != "topology/block" {
		out = append(out, Warn.finding(topic, at("segment"), "leave segment out", "segments need topology/block; this is %s", conf.Get("TopologyPlugin")))
	}
	if w.Switches > 0 && conf.Get("TopologyPlugin") != "topology/tree" {
		out = append(out, Warn.finding(topic, at("switches"), "leave switches out", "switches are known to topology/tree; this is %s", conf.Get("TopologyPlugin")))
	}
	return out
}

// checkNames looks for account, QOS and reservation.
func (l Live) checkNames(topic string, at func(string) string, account, qos, reservation string) []Finding {
	var out []Finding
	if l.Facts != nil {
		for _, n := range []struct {
			key, name string
			known     []string
		}{{"account", account, l.Facts.Accounts}, {"qos", qos, l.Facts.QOS}} {
			// slurmdbd folds the case of both names.
			if n.name != "" && n.known != nil && !slices.ContainsFunc(n.known, func(k string) bool { return strings.EqualFold(k, n.name) }) {
				out = append(out, Bad.finding(topic, at(n.key), nearest(n.key, n.name, n.known), "fleet %s has no %s %s", l.Fleet, n.key, n.name))
			}
		}
	}
	if reservation != "" && !slices.ContainsFunc(l.Snap.Reservations, func(r slurm.Reservation) bool { return r.Name == reservation }) {
		out = append(out, Warn.finding(topic, at("reservation"), "scontrol show reservation", "fleet %s has no reservation %s now", l.Fleet, reservation))
	}
	return out
}

func (l Live) partitions() []string {
	var names []string
	for _, p := range l.Snap.Partitions {
		names = append(names, p.Name)
	}
	return names
}
