package cli

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// Facts asks scontrol and sacctmgr, all at once. What one of them refuses stays
// unset; an error comes only where scontrol does not answer at all. The last
// field of sacctmgr's lines may be cut in a table, never with --parsable2.
func (t Tools) Facts(ctx context.Context, user string) (*slurm.Facts, error) {
	f := &slurm.Facts{}
	var group sync.WaitGroup
	ask := func(take func(out string), c command) {
		group.Go(func() {
			if out, err := c.output(ctx); err == nil {
				take(string(out))
			}
		})
	}
	ask(func(out string) { f.Partitions = slurm.ParseRecords(out) }, t.call("scontrol", "--all", "--oneliner", "show", "partitions"))
	ask(func(out string) { f.Associations = parseAssociations(out) }, t.associations(user))
	ask(func(out string) { f.QOS = fields(out) }, t.sacctmgr("qos", "format=name"))
	ask(func(out string) { f.Accounts = fields(out) }, t.sacctmgr("account", "format=account"))
	out, err := t.call("scontrol", "show", "config").output(ctx)
	read := time.Now()
	group.Wait()
	if err != nil {
		return nil, err
	}
	f.Config = slurm.ParseConfig(string(out))
	if f.Clock = slurm.ConfigTime(string(out)); !f.Clock.IsZero() {
		f.Read = read
	}
	if here := f.Config.Get("ClusterName"); here != "" {
		f.Associations = on(here, f.Associations)
	}
	return f, nil
}

func (t Tools) sacctmgr(args ...string) command { // it knows no --clusters
	c := t.program(t.Path("sacctmgr"), append([]string{"--noheader", "--parsable2", "show"}, args...)...)
	c.slurm = true
	return c
}

func (t Tools) associations(user string) command {
	return t.sacctmgr("user", "name="+user, "withassoc", "format=cluster,account,partition,qos,defaultqos,defaultaccount")
}

// Associations are a user's own on a cluster; empty when accounting knows none.
func (t Tools) Associations(ctx context.Context, cluster, user string) ([]slurm.Association, error) {
	out, err := t.associations(user).output(ctx)
	if err != nil {
		return nil, err
	}
	return on(cluster, parseAssociations(string(out))), nil
}

// on picks a cluster's: accounting may serve many. nil stays nil.
func on(cluster string, all []slurm.Association) []slurm.Association {
	return slices.DeleteFunc(all, func(a slurm.Association) bool { return a.Cluster != cluster })
}

// Parents is the account above each account of a cluster.
func (t Tools) Parents(ctx context.Context, cluster string) (map[string]string, error) {
	out, err := t.sacctmgr("associations", "cluster="+cluster, "user=", "format=account,parentname").output(ctx)
	if err != nil {
		return nil, err
	}
	parents := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if account, parent, ok := strings.Cut(strings.TrimSpace(line), "|"); ok {
			parents[account] = parent
		}
	}
	return parents, nil
}

// Licenses are the licences of the cluster by name, with how many there are in
// all; those of a server in accounting are named NAME@SERVER.
func (t Tools) Licenses(ctx context.Context) (map[string]int, error) {
	out, err := t.call("scontrol", "--oneliner", "show", "licenses").output(ctx)
	if err != nil {
		return nil, err
	}
	total := map[string]int{}
	for _, r := range slurm.ParseRecords(string(out)) {
		if n, ok := r.Number("Total"); ok {
			total[r.Get("LicenseName")] += n
		}
	}
	return total, nil
}

// parseAssociations reads cluster|account|partition|qos|default qos|default account.
func parseAssociations(out string) []slurm.Association {
	list := []slurm.Association{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != 6 || f[1] == "" {
			continue
		}
		list = append(list, slurm.Association{Cluster: f[0], Account: f[1], Partition: f[2], QOS: split(f[3], ","), DefaultQOS: f[4], Default: f[5] == f[1]})
	}
	return list
}

// fields are the lines that say something.
func fields(out string) []string { return split(out, "\n") }

func split(text, at string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, at) {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
