package connect

import (
	"context"

	"github.com/tuneplane/tp/slurm"
)

// openCLI asks Slurm's own commands.
func (s *search) openCLI(context.Context) (slurm.Client, slurm.Info, error) {
	return nil, slurm.Info{}, errNoCommands
}
