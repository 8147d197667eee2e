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
	var own wire.Associations
	var qos, accounts wire.Names
	var group sync.WaitGroup
	ask := func(op, path string, v wire.Answer, take func()) {
		group.Go(func() {
			if c.read(ctx, op, path, v) == nil {
				take()
			}
		})
	}
	query := "?user=" + strings.ReplaceAll(url.PathEscape(user), "%", "%%")
	ask("list associations", "/slurmdb/%s/associations"+query, &own, func() {
		f.Associations = []slurm.Association{}
		for _, a := range own.Of(user) {
			if info.Cluster == "" || a.Cluster == info.Cluster {
				f.Associations = append(f.Associations, a)
			}
		}
	})
	ask("list QOS", "/slurmdb/%s/qos", &qos, func() { f.QOS = qos.All() })
	ask("list accounts", "/slurmdb/%s/accounts", &accounts, func() { f.Accounts = accounts.All() })
	group.Wait()
	return f, nil
}
