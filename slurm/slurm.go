// Package slurm is the vocabulary of a Slurm cluster: the job that tp asks
// for, the job as Slurm reports it, and what a cluster looks like at one
// moment. It holds values and one interface, [Client]; how a cluster is
// reached lives in the packages below it (slurm/rest, slurm/cli).
//
//	client, err := connect.Open(ctx, fleet)
//	sub, err := client.Submit(ctx, &slurm.Request{...})
//	jobs, err := client.Jobs(ctx, sub.ID)
//
// Words follow the manual pages sbatch(1) and slurm.conf(5): GRES, QOS,
// association, partition, node list, heterogeneous job component.
package slurm

import (
	"context"
	"fmt"
	"strconv"
)

// JobID numbers a job on one cluster. 0 means "no job". Ids are reused after
// the controller's MaxJobId, so a job is known by (cluster, id) and its name.
type JobID uint32

func (id JobID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Minutes is Slurm's unit of time limits. 0 means "not set", never unlimited;
// see [Unlimited].
type Minutes int

// Unlimited is a time limit without end.
const Unlimited Minutes = -1

// String renders the canonical D-HH:MM:SS of sbatch(1).
func (m Minutes) String() string {
	switch {
	case m == Unlimited:
		return "UNLIMITED"
	case m == 0:
		return ""
	}
	return fmt.Sprintf("%d-%02d:%02d:00", int(m)/1440, int(m)/60%24, int(m)%60)
}

// MiB is Slurm's unit of memory.
type MiB int64

// String renders a --mem value: whole gibibytes when exact, else mebibytes.
func (m MiB) String() string {
	if m > 0 && m%1024 == 0 {
		return strconv.FormatInt(int64(m)/1024, 10) + "G"
	}
	return strconv.FormatInt(int64(m), 10) + "M"
}

// Client is one cluster. Every method may be called from several goroutines.
// Errors are *[Error] when the cluster answered, *[Unreachable] when it did
// not; after an Unreachable from Submit the job may exist all the same.
type Client interface {
	// Info says what answered: cluster, release, dialect and transport.
	Info(ctx context.Context) (Info, error)
	// Snapshot reads nodes, partitions and reservations.
	Snapshot(ctx context.Context) (*Snapshot, error)
	// Submit queues the request. A non-zero id in the result means the job is
	// queued, whatever else the answer said.
	Submit(ctx context.Context, r *Request) (Submitted, error)
	// Jobs reports the jobs with these ids, every component of a heterogeneous
	// one. Ids that the cluster no longer knows are absent from the result;
	// that is no error.
	Jobs(ctx context.Context, ids ...JobID) ([]Job, error)
	// States is Jobs with less: ids, name, user, partition, state, flags, reason
	// and, as far as they are at hand, times and restarts. It is what a list of
	// runs needs, and costs about one question for any number of jobs. Where a
	// cluster can tell no more in one question, ids, state and flags are all
	// there is; such a job has no name and is not FromDB. What only accounting
	// knows is absent when accounting does not answer.
	States(ctx context.Context, ids ...JobID) ([]Job, error)
	// JobsByName reports this user's jobs with exactly this name, from the
	// controller or from accounting. ErrCannotLookUp says that neither can be
	// asked, which is not the same as "there is none".
	JobsByName(ctx context.Context, user, name string) ([]Job, error)
	// Cancel ends the job; for a heterogeneous one the leader's id ends every
	// component. An unknown id is an *Error.
	Cancel(ctx context.Context, id JobID) error
}

// Info identifies what a client talks to.
type Info struct {
	Cluster   string // ClusterName of slurm.conf
	Release   string // "24.11.5"
	Dialect   string // "v0.0.42"; "" for the command line
	Transport string // "slurmrestd unix:///run/rest.sock", shown in the preview
	Account   bool   // whether accounting (slurmdbd) answers
	Local     bool   `json:",omitempty"` // this machine without Slurm: one node, no queue, nothing waits
}

// Submitted is the answer to a submission.
type Submitted struct {
	ID JobID
	// Warnings holds every warning and note of the cluster, and the site's
	// job_submit message, verbatim and in order.
	Warnings []string
}
