package connect

import (
	"context"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
)

// openCLI asks Slurm's own commands.
func (s *search) openCLI(ctx context.Context) (slurm.Client, slurm.Info, error) {
	client := cli.New(cli.Options{Tools: s.o.Tools, SubmitTimeout: s.o.SubmitTimeout, Known: s.o.Last.Info, Clock: s.o.Clock})
	info, err := client.Ping(ctx)
	return client, info, err
}
