package connect

import (
	"context"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
)

// openCLI asks Slurm's own commands, through slurmdbd where the fleet is another
// cluster than theirs.
func (s *search) openCLI(ctx context.Context) (slurm.Client, slurm.Info, error) {
	tools := s.o.Tools
	if s.Cluster != "" {
		if here, err := tools.ClusterName(ctx); err == nil && here != s.Cluster {
			tools.Cluster = s.Cluster
		}
	}
	client := cli.New(cli.Options{Tools: tools, SubmitTimeout: s.o.SubmitTimeout, Known: s.o.Last.Info, Clock: s.o.Clock})
	info, err := client.Ping(ctx)
	return client, info, err
}
