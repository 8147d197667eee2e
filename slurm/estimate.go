package slurm

import "time"

// Estimate is what the scheduler would do with a job that is only tried.
type Estimate struct {
	Start     time.Time // zero when Slurm does not say
	Nodes     string    // compact node list
	Partition string    // "" for a heterogeneous job, whose components may differ
	CPUs      int       // over all components
	Text      string    // Slurm's own words
}
