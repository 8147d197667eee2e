package wire

import (
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Node holds the keys of /nodes of all dialects side by side.
type Node struct {
	Name        Text  `json:"name"`
	Address     Text  `json:"address"`
	State       Words `json:"state"`       // v0.0.38: base state only, lower case
	StateFlags  Words `json:"state_flags"` // v0.0.38
	Reason      Text  `json:"reason"`
	Partitions  List  `json:"partitions"`
	Features    List  `json:"features"`
	CPUs        Num   `json:"cpus"`
	AllocCPUs   Num   `json:"alloc_cpus"`
	Memory      Num   `json:"real_memory"`
	AllocMemory Num   `json:"alloc_memory"`
	GRES        Text  `json:"gres"`
	GRESUsed    Text  `json:"gres_used"`
	Reservation Text  `json:"reservation"`
}

// Model is the node in the words of package slurm.
func (w *Node) Model() slurm.Node {
	n := slurm.Node{
		Name:       string(w.Name),
		Address:    string(w.Address),
		Reason:     string(w.Reason),
		Partitions: w.Partitions,
		Features:   w.Features,
		CPUs:       w.CPUs.Count(),
		CPUsUsed:   w.AllocCPUs.Count(),
		Memory:     slurm.MiB(w.Memory.Count()),
		MemoryUsed: slurm.MiB(w.AllocMemory.Count()),
		GRES:       slurm.ParseGRES(string(w.GRES)),
		GRESUsed:   slurm.ParseGRES(string(w.GRESUsed)),
		Reserved:   string(w.Reservation),
		State:      "UNKNOWN",
	}
	if len(w.State) > 0 {
		n.State = w.State[0]
		n.Flags = slices.Concat(w.State[1:], w.StateFlags)
	}
	return n
}

// Partition: v0.0.38 is flat, later dialects nest; the keys "nodes" and
// "qos" exist in both as a string and as an object.
type Partition struct {
	Name     Text  `json:"name"`
	Flags    Words `json:"flags"` // v0.0.38 and from .45
	Defaults Maybe[struct {
		Time Num `json:"time"`
	}] `json:"defaults"`
	Maximums Maybe[struct {
		Time   Num `json:"time"`
		Nodes  Num `json:"nodes"`
		CPUs   Num `json:"cpus_per_node"`
		Memory Num `json:"partition_memory_per_node"`
	}] `json:"maximums"`
	Minimums Maybe[struct {
		Nodes Num `json:"nodes"`
	}] `json:"minimums"`
	Partition Maybe[struct {
		State Words `json:"state"` // from v0.0.40
	}] `json:"partition"`
	Nodes    eitherNodes    `json:"nodes"`
	Accounts Maybe[allowed] `json:"accounts"`
	Groups   Maybe[allowed] `json:"groups"`
	QOS      Maybe[allowed] `json:"qos"`
	State    Words          `json:"state"`
	MaxTime  Num            `json:"max_time_limit"`
	DefTime  Num            `json:"default_time_limit"`
	MinNodes Num            `json:"min nodes per job"`
	MaxNodes Num            `json:"maximum_nodes_per_job"`
	MaxCPUs  Num            `json:"maximum_cpus_per_node"`
	MaxMem   Num            `json:"maximum_memory_per_node"`
	Total    Num            `json:"total_nodes"`
	flatPermissions
}

type flatPermissions struct {
	AllowedAccounts List `json:"allowed_accounts"`
	DeniedAccounts  List `json:"denied_accounts"`
	AllowedGroups   List `json:"allowed_groups"`
	AllowedQOS      List `json:"allowed_qos"`
	DeniedQOS       List `json:"denied_qos"`
}

type allowed struct {
	Allowed List `json:"allowed"`
	Deny    List `json:"deny"`
}

type eitherNodes struct {
	configured string
	total      int
}

func (e *eitherNodes) UnmarshalJSON(b []byte) error {
	var flat Maybe[string]
	var nested Maybe[struct {
		Configured Text `json:"configured"`
		Total      Num  `json:"total"`
	}]
	_, _ = flat.UnmarshalJSON(b), nested.UnmarshalJSON(b)
	e.configured = flat.V + string(nested.V.Configured)
	e.total = nested.V.Total.Count()
	return nil
}

// Model is the partition in the words of package slurm.
func (w *Partition) Model() slurm.Partition {
	p := slurm.Partition{
		Name:          string(w.Name),
		State:         strings.Join(slices.Concat(w.State, w.Partition.V.State), "+"),
		Default:       slices.Contains(w.Flags, "DEFAULT"),
		Nodes:         w.Nodes.configured,
		TotalNodes:    w.Nodes.total + w.Total.Count(),
		MaxTime:       firstTime(w.MaxTime, w.Maximums.V.Time),
		DefaultTime:   max(0, firstTime(w.DefTime, w.Defaults.V.Time)), // -1: no default
		MinNodes:      w.MinNodes.Count() + w.Minimums.V.Nodes.Count(),
		MaxNodes:      w.MaxNodes.Count() + w.Maximums.V.Nodes.Count(),
		MaxMemPerNode: slurm.MiB(w.MaxMem.Count() + w.Maximums.V.Memory.Count()),

		MaxCPUsPerNode: w.MaxCPUs.Count() + w.Maximums.V.CPUs.Count(),
		AllowAccounts:  either(w.AllowedAccounts, w.Accounts.V.Allowed),
		DenyAccounts:   either(w.DeniedAccounts, w.Accounts.V.Deny),
		AllowQOS:       either(w.AllowedQOS, w.QOS.V.Allowed),
		DenyQOS:        either(w.DeniedQOS, w.QOS.V.Deny),
		AllowGroups:    either(w.AllowedGroups, w.Groups.V.Allowed),
	}
	return p
}

func firstTime(flat, nested Num) slurm.Minutes {
	if flat.Set || flat.Infinite {
		return minutes(flat)
	}
	return minutes(nested)
}

func either(flat, nested List) []string {
	if len(flat) > 0 {
		return flat
	}
	return nested
}

// Reservation holds the keys of /reservations.
type Reservation struct {
	Name      Text  `json:"name"`
	Nodes     Text  `json:"node_list"`
	Partition Text  `json:"partition"`
	Users     List  `json:"users"`
	Accounts  List  `json:"accounts"`
	Flags     Words `json:"flags"`
	Start     Num   `json:"start_time"`
	End       Num   `json:"end_time"`
}

// Model is the reservation in the words of package slurm.
func (w *Reservation) Model() slurm.Reservation {
	return slurm.Reservation{
		Name: string(w.Name), Nodes: string(w.Nodes), Partition: string(w.Partition),
		Users: w.Users, Accounts: w.Accounts, Flags: w.Flags,
		Start: w.Start.Time(), End: w.End.Time(),
	}
}
