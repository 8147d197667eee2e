package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm/connect"
)

// known is what a cluster said of itself last time: its dialect, so that newer
// ones need not be tried, and its name, which costs v0.0.38 a slow question to
// slurmdbd; and which ways led nowhere. It is a short cut only; a wrong or lost
// one costs requests.
type known struct{ path string }

// known is kept per host as well: the same path or address may be another
// cluster on another login node with the same home directory.
func (a *app) known(f site.Fleet) known {
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(host + "\x00" + f.Name + "\x00" + f.URL + "\x00" + os.Getenv("TP_SLURMREST_URL") + "\x00" + os.Getenv("SLURM_CONF")))
	return known{filepath.Join(a.conf.StateDir, "clusters", hex.EncodeToString(sum[:8])+".json")}
}

func (k known) load() (m connect.Memory) {
	if data, err := durable.Read(k.path, 64<<10); err == nil && json.Unmarshal(data, &m) != nil {
		return connect.Memory{}
	}
	return m
}

func (k known) save(m connect.Memory) {
	data, err := json.Marshal(m)
	if err == nil && os.MkdirAll(filepath.Dir(k.path), 0o700) == nil {
		durable.WriteFile(k.path, data, 0o600)
	}
}
