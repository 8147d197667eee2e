package cli

import (
	"context"
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
	sacctmgr := func(args ...string) command { // it knows no --clusters
		return t.program(t.Path("sacctmgr"), append([]string{"--noheader", "--parsable2", "show"}, args...)...)
	}
	ask(func(out string) { f.Partitions = slurm.ParseRecords(out) }, t.call("scontrol", "--all", "--oneliner", "show", "partitions"))
	ask(func(out string) { f.Associations = parseAssociations(out) }, sacctmgr("user", "name="+user, "withassoc",
		"format=cluster,account,partition,qos,defaultqos,defaultaccount"))
	ask(func(out string) { f.QOS = fields(out) }, sacctmgr("qos", "format=name"))
	ask(func(out string) { f.Accounts = fields(out) }, sacctmgr("account", "format=account"))
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
	if here := f.Config.Get("ClusterName"); here != "" { // accounting may serve many clusters
		var mine []slurm.Association
		for _, a := range f.Associations {
			if a.Cluster == here {
				mine = append(mine, a)
			}
		}
		if f.Associations != nil {
			f.Associations = append([]slurm.Association{}, mine...)
		}
	}
	return f, nil
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
