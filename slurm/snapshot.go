package slurm

import (
	"slices"
	"time"
)

// Snapshot is a cluster at one moment, as far as the caller may see it.
type Snapshot struct {
	Taken        time.Time
	Info         Info
	Nodes        []Node
	Partitions   []Partition
	Reservations []Reservation
}

// Node is one compute node.
type Node struct {
	Name       string
	Address    string   // NodeAddr
	State      string   // base state, upper case: IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN, …
	Flags      []string // DRAIN, NOT_RESPONDING, POWERED_DOWN, CLOUD, …, upper case
	Reason     string
	Partitions []string
	Features   []string
	CPUs       int
	CPUsUsed   int
	Memory     MiB
	MemoryUsed MiB
	GRES       []GRES // configured
	GRESUsed   []GRES
	Reserved   string    // reservation name
	Jobs       []NodeJob `json:",omitempty"` // who runs there, as far as it was asked
}

// NodeJob is a job on a node, with its part of the node.
type NodeJob struct {
	ID   JobID
	Name string
	GRES []GRES
}

// Usable reports whether the node can run jobs now or after powering up.
// Powered-down cloud nodes count: Slurm wakes them (slurm.conf(5), ResumeProgram).
func (n Node) Usable() bool {
	switch n.State {
	case "DOWN", "ERROR", "UNKNOWN", "FUTURE", "INVALID":
		return false
	}
	for _, bad := range []string{"DRAIN", "FAIL", "NOT_RESPONDING", "INVALID_REG", "MAINTENANCE", "BLOCKED", "EXTERNAL", "POWER_DRAIN"} {
		if slices.Contains(n.Flags, bad) {
			return false
		}
	}
	return true
}

// Count is how many of a GRES the node has; an empty type counts all types.
func Count(list []GRES, name, typ string) int {
	total := 0
	for _, g := range list {
		if g.Name == name && (typ == "" || g.Type == typ) {
			total += g.Count
		}
	}
	return total
}

// Partition is one queue.
type Partition struct {
	Name        string
	State       string // UP, DOWN, DRAIN, INACTIVE; "" where the dialect does not tell (v0.0.39)
	Default     bool   // false where the dialect does not tell (v0.0.39–.44)
	Nodes       string // configured node list, compact
	TotalNodes  int
	MaxTime     Minutes // 0 when not told, Unlimited when there is no limit
	DefaultTime Minutes
	// Limits of one job, or of one component of a heterogeneous job; 0 for none.
	MinNodes       int `json:",omitempty"`
	MaxNodes       int
	MaxCPUsPerNode int `json:",omitempty"` // of all jobs of the partition on a node
	MaxMemPerNode  MiB `json:",omitempty"`
	AllowAccounts  []string
	DenyAccounts   []string
	AllowQOS       []string
	DenyQOS        []string
	AllowGroups    []string
}

// Reservation is a span of time in which nodes are set aside.
type Reservation struct {
	Name      string
	Nodes     string
	Partition string
	Users     []string
	Accounts  []string
	Flags     []string // MAINT, FLEX, …
	Start     time.Time
	End       time.Time
}

// Partition finds a partition by name.
func (s *Snapshot) Partition(name string) (Partition, bool) {
	for _, p := range s.Partitions {
		if p.Name == name {
			return p, true
		}
	}
	return Partition{}, false
}

// NodesIn lists the nodes of a partition.
func (s *Snapshot) NodesIn(partition string) []Node {
	var out []Node
	for _, n := range s.Nodes {
		if slices.Contains(n.Partitions, partition) {
			out = append(out, n)
		}
	}
	return out
}
