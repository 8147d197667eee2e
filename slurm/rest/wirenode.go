package rest

import (
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// wireNode holds the keys of /nodes of all dialects side by side.
type wireNode struct {
	Name        text  `json:"name"`
	Address     text  `json:"address"`
	State       words `json:"state"`       // v0.0.38: base state only, lower case
	StateFlags  words `json:"state_flags"` // v0.0.38
	Reason      text  `json:"reason"`
	Partitions  csv   `json:"partitions"`
	Features    csv   `json:"features"`
	CPUs        num   `json:"cpus"`
	AllocCPUs   num   `json:"alloc_cpus"`
	Memory      num   `json:"real_memory"`
	AllocMemory num   `json:"alloc_memory"`
	GRES        text  `json:"gres"`
	GRESUsed    text  `json:"gres_used"`
	Reservation text  `json:"reservation"`
}

func (w *wireNode) node() slurm.Node {
	n := slurm.Node{
		Name:       string(w.Name),
		Address:    string(w.Address),
		Reason:     string(w.Reason),
		Partitions: w.Partitions,
		Features:   w.Features,
		CPUs:       w.CPUs.count(),
		CPUsUsed:   w.AllocCPUs.count(),
		Memory:     slurm.MiB(w.Memory.count()),
		MemoryUsed: slurm.MiB(w.AllocMemory.count()),
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

// wirePartition: v0.0.38 is flat, later dialects nest; the keys "nodes" and
// "qos" exist in both as a string and as an object.
type wirePartition struct {
	Name     text  `json:"name"`
	Flags    words `json:"flags"` // v0.0.38 and from .45
	Defaults maybe[struct {
		Time num `json:"time"`
	}] `json:"defaults"`
	Maximums maybe[struct {
		Time  num `json:"time"`
		Nodes num `json:"nodes"`
	}] `json:"maximums"`
	Partition maybe[struct {
		State words `json:"state"` // from v0.0.40
	}] `json:"partition"`
	Nodes    eitherNodes    `json:"nodes"`
	Accounts maybe[allowed] `json:"accounts"`
	Groups   maybe[allowed] `json:"groups"`
	QOS      maybe[allowed] `json:"qos"`
	State    words          `json:"state"`
	MaxTime  num            `json:"max_time_limit"`
	DefTime  num            `json:"default_time_limit"`
	MaxNodes num            `json:"maximum_nodes_per_job"`
	Total    num            `json:"total_nodes"`
	flatPermissions
}

type flatPermissions struct {
	AllowedAccounts csv `json:"allowed_accounts"`
	DeniedAccounts  csv `json:"denied_accounts"`
	AllowedGroups   csv `json:"allowed_groups"`
	AllowedQOS      csv `json:"allowed_qos"`
	DeniedQOS       csv `json:"denied_qos"`
}

type allowed struct {
	Allowed csv `json:"allowed"`
	Deny    csv `json:"deny"`
}

type eitherNodes struct {
	configured string
	total      int
}

func (e *eitherNodes) UnmarshalJSON(b []byte) error {
	var flat maybe[string]
	var nested maybe[struct {
		Configured text `json:"configured"`
		Total      num  `json:"total"`
	}]
	_, _ = flat.UnmarshalJSON(b), nested.UnmarshalJSON(b)
	e.configured = flat.v + string(nested.v.Configured)
	e.total = nested.v.Total.count()
	return nil
}

func (w *wirePartition) partition() slurm.Partition {
	p := slurm.Partition{
		Name:          string(w.Name),
		State:         strings.Join(slices.Concat(w.State, w.Partition.v.State), "+"),
		Default:       slices.Contains(w.Flags, "DEFAULT"),
		Nodes:         w.Nodes.configured,
		TotalNodes:    w.Nodes.total + w.Total.count(),
		MaxTime:       firstTime(w.MaxTime, w.Maximums.v.Time),
		DefaultTime:   max(0, firstTime(w.DefTime, w.Defaults.v.Time)), // -1: no default
		MaxNodes:      w.MaxNodes.count() + w.Maximums.v.Nodes.count(),
		AllowAccounts: either(w.AllowedAccounts, w.Accounts.v.Allowed),
		DenyAccounts:  either(w.DeniedAccounts, w.Accounts.v.Deny),
		AllowQOS:      either(w.AllowedQOS, w.QOS.v.Allowed),
		DenyQOS:       either(w.DeniedQOS, w.QOS.v.Deny),
		AllowGroups:   either(w.AllowedGroups, w.Groups.v.Allowed),
	}
	return p
}

func firstTime(flat, nested num) slurm.Minutes {
	if flat.set || flat.infinite {
		return minutes(flat)
	}
	return minutes(nested)
}

func either(flat, nested csv) []string {
	if len(flat) > 0 {
		return flat
	}
	return nested
}

type wireReservation struct {
	Name      text  `json:"name"`
	Nodes     text  `json:"node_list"`
	Partition text  `json:"partition"`
	Users     csv   `json:"users"`
	Accounts  csv   `json:"accounts"`
	Flags     words `json:"flags"`
	Start     num   `json:"start_time"`
	End       num   `json:"end_time"`
}

func (w *wireReservation) reservation() slurm.Reservation {
	return slurm.Reservation{
		Name: string(w.Name), Nodes: string(w.Nodes), Partition: string(w.Partition),
		Users: w.Users, Accounts: w.Accounts, Flags: w.Flags,
		Start: w.Start.time(), End: w.End.time(),
	}
}
