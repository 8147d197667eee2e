package rest

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Facts is what accounting tells of the user; slurm.conf is not to be had over
// REST. What is refused stays unset.
func (c *Client) Facts(ctx context.Context, user string) (*slurm.Facts, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	f := &slurm.Facts{}
	if !info.Account {
		return f, nil
	}
	var qos, accounts wire.Names
	var group sync.WaitGroup
	ask := func(op, path string, v wire.Answer, take func()) {
		group.Go(func() {
			if c.read(ctx, op, path, v) == nil {
				take()
			}
		})
	}
	group.Go(func() {
		if own, err := c.Associations(ctx, info.Cluster, user); err == nil {
			f.Associations = own
		}
	})
	ask("list QOS", "/slurmdb/%s/qos", &qos, func() { f.QOS = qos.All() })
	ask("list accounts", "/slurmdb/%s/accounts", &accounts, func() { f.Accounts = accounts.All() })
	group.Wait()
	return f, nil
}

// Associations are a user's own on a cluster, on every one with ""; empty when
// accounting knows none.
func (c *Client) Associations(ctx context.Context, cluster, user string) ([]slurm.Association, error) {
	var b wire.Associations
	query := "?user=" + strings.ReplaceAll(url.PathEscape(user), "%", "%%")
	if err := c.read(ctx, "list associations", "/slurmdb/%s/associations"+query, &b); err != nil {
		return nil, err
	}
	own := []slurm.Association{}
	for _, a := range b.Of(user) {
		if cluster == "" || a.Cluster == cluster {
			own = append(own, a)
		}
	}
	return own, nil
}
