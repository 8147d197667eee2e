package connect

import (
	"maps"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Memory is what one search leaves for the next, per host and fleet. It only
// saves time: configured addresses are always asked first, but for a minute
// after one was silent.
type Memory struct {
	// Info is the client's of last time: dialect, cluster name, accounting.
	Info slurm.Info
	// Way worked at Since, and is the first of the automatic ones for an hour:
	// a slurmrestd that is installed later is found by then. A way that was
	// ordered is none that was found.
	Way   Way       `json:",omitempty"`
	Since time.Time `json:",omitzero"`
	// Silent are configured addresses that did not answer, and when.
	Silent map[string]time.Time `json:",omitempty"`
	// CLIFilter is slurm.conf's CliFilterPlugins as it was Seen.
	CLIFilter string    `json:",omitempty"`
	Seen      time.Time `json:",omitzero"`
	// Rights are RightsOf's accounts and QOS as they were RightsSeen; nil when
	// they could not be asked. Enforce is slurm.conf's AccountingStorageEnforce,
	// which counts only if EnforceKnown.
	Rights       []slurm.Association
	RightsOf     string    `json:",omitempty"`
	RightsSeen   time.Time `json:",omitzero"`
	Enforce      string    `json:",omitempty"`
	EnforceKnown bool      `json:",omitempty"`
}

const (
	// silentFor spares the next commands the wait for a dead address, 5 s where
	// packets are dropped; a server that restarts is missed for no longer.
	silentFor = time.Minute
	// wayFor is how long a way is preferred.
	wayFor = time.Hour
)

// fresh is what of it still counts. A clock that went back makes it all old.
func (m Memory) fresh(now time.Time) Memory {
	old := func(t time.Time, life time.Duration) bool { return t.After(now) || now.Sub(t) > life }
	if old(m.Since, wayFor) {
		m.Way, m.Since = "", time.Time{}
	}
	m.Silent = maps.Clone(m.Silent)
	maps.DeleteFunc(m.Silent, func(_ string, t time.Time) bool { return old(t, silentFor) })
	return m
}

func (m *Memory) silence(address string, now time.Time) {
	if m.Silent == nil {
		m.Silent = map[string]time.Time{}
	}
	if _, ok := m.Silent[address]; !ok { // else it would never be asked again
		m.Silent[address] = now
	}
}

// took notes the way that worked.
func (m *Memory) took(way Way, now time.Time) {
	if m.Way != way {
		m.Way, m.Since = way, now
	}
}

// Same reports whether there is nothing new to write down.
func (m Memory) Same(other Memory) bool {
	return m.Info == other.Info && m.Way == other.Way && m.Since.Equal(other.Since) && m.CLIFilter == other.CLIFilter && m.Seen.Equal(other.Seen) && m.RightsSeen.Equal(other.RightsSeen) && maps.EqualFunc(m.Silent, other.Silent, time.Time.Equal)
}
