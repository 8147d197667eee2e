package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm/connect"
)

// known is what a cluster said of itself last time: its dialect, so that newer
// ones need not be tried, and its name, which costs v0.0.38 a slow question to
// slurmdbd; and which ways led nowhere. It is a short cut only; a wrong or lost
// one costs requests.
type known struct {
	path   string
	beside string // of the memory that says what is asked, where path has nothing
}

// known is kept per host as well: the same path or address may be another
// cluster on another login node with the same home directory.
//
// --transport has a memory of its own: it is an order for one command, and what
// it finds, another cluster even, must not steer the next one.
func (a *app) known(f site.Fleet) known {
	host, _ := os.Hostname()
	what := strings.Join([]string{host, f.Name, f.URL, os.Getenv("TP_SLURMREST_URL"), os.Getenv("SLURM_CONF")}, "\x00")
	path := func(what string) string {
		sum := sha256.Sum256([]byte(what))
		return filepath.Join(a.conf.StateDir, "clusters", hex.EncodeToString(sum[:8])+".json")
	}
	if a.cli.Transport == "" {
		return known{path: path(what)}
	}
	return known{path: path(what + "\x00" + a.cli.Transport), beside: path(what)}
}

func (k known) load() connect.Memory {
	if m, ok := remembered(k.path); ok || k.beside == "" {
		return m
	}
	m, _ := remembered(k.beside)
	return connect.Memory{Info: m.Info}
}

func remembered(path string) (m connect.Memory, ok bool) {
	data, err := durable.Read(path, 64<<10)
	if err != nil || json.Unmarshal(data, &m) != nil {
		return connect.Memory{}, false
	}
	return m, true
}

func (k known) save(m connect.Memory) {
	data, err := json.Marshal(m)
	if err == nil && os.MkdirAll(filepath.Dir(k.path), 0o700) == nil {
		durable.WriteFile(k.path, data, 0o600)
	}
}
