package main

import (
	"context"
	"fmt"
	"time"
)

// filtersFor is how long a cluster's CliFilterPlugins are remembered: asking
// costs every submission 10 ms, and administrators change them rarely.
const filtersFor = 24 * time.Hour

// filters warns of what sbatch would do to a job here and slurmrestd does not:
// the cli_filter plugins of slurm.conf run inside sbatch (slurm.conf(5),
// CliFilterPlugins). Nothing is said where slurm.conf cannot be asked.
func (a *app) filters(ctx context.Context, c *cluster) []string {
	if c.info.Dialect == "" { // sbatch itself
		return nil
	}
	m := &c.choice.Memory
	if age := a.now().Sub(m.Seen); age < 0 || age > filtersFor {
		conf := config(ctx, c)()
		if conf == nil {
			return nil
		}
		m.CLIFilter, m.Seen = conf.Get("CliFilterPlugins"), a.now().Round(0)
		c.memory.save(*m)
	}
	if m.CLIFilter == "" {
		return nil
	}
	return []string{fmt.Sprintf("this cluster's %s checks or changes jobs of sbatch, and slurmrestd does not run it: --transport cli, or transports = [\"cli\"] under [fleets.%s], goes through sbatch", m.CLIFilter, c.fleet.Name)}
}
