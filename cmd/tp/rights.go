package main

import (
	"context"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/slurm"
	slurmcli "github.com/tuneplane/tp/slurm/cli"
)

// How long accounts and QOS are remembered: asking costs a plan 10 to 30 ms,
// and an administrator who grants one is not asked about it twice. A question
// that failed is put again soon.
const (
	rightsFor       = time.Hour
	rightsFailedFor = time.Minute
)

// rights are what accounting grants the user on a cluster, as it was remembered
// or asked now.
func (a *app) rights(ctx context.Context, c *cluster) gates.Rights {
	if c.info.Local || !c.info.Account {
		return gates.Rights{}
	}
	m, who := &c.choice.Memory, c.user(a)
	life := rightsFor
	if m.Rights == nil {
		life = rightsFailedFor
	}
	if age := a.now().Sub(m.RightsSeen); m.RightsOf != who || age < 0 || age > life {
		ctx, cancel := context.WithTimeout(ctx, factsTimeout)
		defer cancel()
		m.Rights, m.RightsOf, m.RightsSeen = associations(ctx, c, who), who, a.now().Round(0)
		conf := config(ctx, c)()
		m.Enforce, m.EnforceKnown = conf.Get("AccountingStorageEnforce"), conf != nil
		if conf != nil { // the same answer, so nobody needs to ask again
			m.CLIFilter, m.Seen = conf.Get("CliFilterPlugins"), a.now().Round(0)
		}
		c.memory.save(*m)
	}
	return gates.Rights{Associations: m.Rights, Enforce: m.Enforce, Asked: m.EnforceKnown}
}

// associations asks slurmrestd, else sacctmgr; nil when neither tells.
func associations(ctx context.Context, c *cluster, user string) []slurm.Association {
	if rest, ok := c.Client.(interface {
		Associations(context.Context, string, string) ([]slurm.Association, error)
	}); ok {
		if own, err := rest.Associations(ctx, c.info.Cluster, user); err == nil {
			return own
		}
	}
	own, err := slurmcli.Tools{Dir: c.fleet.Tools, Timeout: factsTimeout}.Associations(ctx, c.info.Cluster, user)
	if err != nil {
		return nil
	}
	return own
}

// parents asks sacctmgr for the tree of accounts.
func parents(ctx context.Context, c *cluster) func() map[string]string {
	return func() map[string]string {
		tree, err := slurmcli.Tools{Dir: c.fleet.Tools, Timeout: factsTimeout}.Parents(ctx, c.info.Cluster)
		if err != nil {
			return nil
		}
		return tree
	}
}

// licenses asks scontrol, if it is the cluster's.
func licenses(ctx context.Context, c *cluster) func() map[string]int {
	return func() map[string]int {
		if config(ctx, c)() == nil {
			return nil
		}
		have, err := slurmcli.Tools{Dir: c.fleet.Tools, Timeout: factsTimeout}.Licenses(ctx)
		if err != nil {
			return nil
		}
		return have
	}
}
