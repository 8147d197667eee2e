// Package connect picks the way to a cluster and says which and why.
//
//	client, choice, err := connect.Open(ctx, connect.Fleet{Name: "gpu", URLs: urls}, connect.Options{})
//	fmt.Println(choice.Transport) // slurmrestd v0.0.42 at unix:///run/slurmrestd/rest.sock
//
// The ways are tried in an order: the addresses that somebody configured, a
// well-known unix socket on this machine, a slurmrestd started for this process
// alone, Slurm's own commands. All but the first act as the user who runs tp,
// on the cluster of this machine; so they stand in for a configured address
// only where that is the same user and the same cluster, and never in silence.
package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
)

// Way is a kind of transport.
type Way string

const (
	URL    Way = "url"    // slurmrestd at a configured address
	Socket Way = "socket" // slurmrestd at a well-known unix socket
	Child  Way = "child"  // a private slurmrestd
	CLI    Way = "cli"    // sbatch, squeue, scontrol, sacct
)

// Ways are all of them, in the order they are tried.
var Ways = []Way{URL, Socket, Child, CLI}

// Fleet is what the site file says about reaching one cluster.
type Fleet struct {
	Name string
	// URLs of slurmrestd, in order of preference.
	URLs []string
	// User in Slurm; default: whom the token names, else the user who runs tp.
	User string
	// Cluster is ClusterName of slurm.conf. Who answers with another name is
	// not this fleet. "" takes whatever answers.
	Cluster string
	// Alone says that no other cluster is known here, so that the cluster of
	// this machine is this fleet even before it was ever reached.
	Alone bool
	// Order are the ways to try; all of Ways when it is empty.
	Order []Way
	// NoFallback ends the search when no address answers.
	NoFallback bool
	// Slurmrestd is the program of the private child; default: searched.
	Slurmrestd string
	// Where tokens come from, for http(s) and for a shared unix socket: a file,
	// else a command, else SLURM_JWT if TokenEnv. With none of them, and where
	// SLURM_JWT is of no use, http(s) uses "scontrol token".
	TokenFile    string
	TokenCommand []string
	TokenEnv     bool
	TLS          *tls.Config
}

// Options are the caller's circumstances; environment variables come in as
// values.
type Options struct {
	Timeout       time.Duration // of a read, see rest.Options
	SubmitTimeout time.Duration
	// Last is the Choice's Memory of last time. It saves questions and says
	// which ways need not be tried first.
	Last   Memory
	EnvURL string // TP_SLURMREST_URL, after the site's own
	JWT    string // SLURM_JWT
	Tools  cli.Tools
	Clock  func() time.Time
	// Warn gets what is found out after Open, such as a token that was replaced.
	Warn func(string)

	sockets  []string // well-known ones, for tests
	programs []string // directories of slurmrestd, for tests
}

// Choice says what was taken and why.
type Choice struct {
	Way       Way
	Transport string // slurm.Info.Transport
	URL       string // or the program's path
	// Release is what the ping said, "24.11.5". Cluster and accounting are in
	// the client's Info, which may cost a slow question to slurmdbd.
	Release  string
	User     string // whose jobs are submitted and shown
	Warnings []string
	// Rejected holds what was tried before, in order.
	Rejected []Attempt
	// Memory is for Options.Last, without the client's Info.
	Memory Memory
}

// Attempt is one way that did not work.
type Attempt struct {
	Way  Way
	What string // address
	Err  error
	// Absent: there was nothing to try and nobody had named it, as on every
	// machine without an address, a socket or a slurmrestd.
	Absent bool
}

func (a Attempt) String() string {
	return a.What + ": " + strings.Join(strings.Fields(a.Err.Error()), " ")
}

// Others are the ways that were not taken, and why, but for addresses that
// failed: those are in Warnings. The absent ones are apart.
func (c Choice) Others() (failed, absent []string) {
	for _, a := range c.Rejected {
		switch {
		case a.Absent:
			absent = append(absent, a.String())
		case a.Way != URL || a.What == noun[URL]:
			failed = append(failed, a.String())
		}
	}
	return failed, absent
}

// Error lists every way that was tried.
type Error struct {
	Fleet    string
	Attempts []Attempt
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %s cannot be reached", e.Fleet)
	for _, a := range e.Attempts {
		b.WriteString("\n  " + a.String())
	}
	return b.String()
}

// Unwrap lets errors.As find an *slurm.AuthError among the attempts.
func (e *Error) Unwrap() []error {
	var all []error
	for _, a := range e.Attempts {
		all = append(all, a.Err)
	}
	return all
}

// search is one Open.
type search struct {
	Fleet
	o       Options
	self    string // who runs tp
	choice  Choice
	expect  string // ClusterName that a substitute for an address must have
	barrier error  // why nothing may stand in for the addresses that failed
}

// Open tries the ways in order and takes the first that answers a ping.
func Open(ctx context.Context, f Fleet, o Options) (slurm.Client, Choice, error) {
	s := newSearch(f, o)
	for _, way := range s.order() {
		for _, c := range s.candidates(way) {
			client, err := s.try(ctx, &c)
			if err == nil {
				return client, s.choice, nil
			}
			s.reject(c, err)
			if ctx.Err() != nil {
				return nil, s.choice, &Error{Fleet: s.Name, Attempts: s.choice.Rejected}
			}
		}
	}
	return nil, s.choice, &Error{Fleet: s.Name, Attempts: s.choice.Rejected}
}

// Survey tries every way, each for itself, and says what comes of it: an error
// of nil is a way that works.
func Survey(ctx context.Context, f Fleet, o Options) []Attempt {
	o.Last = Memory{Info: o.Last.Info}
	var out []Attempt
	for _, way := range Ways {
		f.Order = []Way{way}
		client, choice, err := Open(ctx, f, o)
		if err != nil {
			out = append(out, choice.Rejected...)
			continue
		}
		out = append(out, Attempt{Way: way, What: choice.Transport})
		Close(client)
	}
	return out
}

// Close ends what a client has started.
func Close(client slurm.Client) {
	if c, ok := client.(interface{ Close() error }); ok {
		_ = c.Close()
	}
}

func newSearch(f Fleet, o Options) *search {
	s := &search{Fleet: f, o: o}
	s.Name = cmp.Or(f.Name, "slurm")
	if u, err := user.Current(); err == nil {
		s.self = u.Username
	}
	if o.Clock == nil {
		s.o.Clock = time.Now
	}
	s.expect = cmp.Or(f.Cluster, o.Last.Info.Cluster)
	s.choice.Memory = s.o.Last.fresh(s.o.Clock())
	if len(f.Order) == 1 { // asked for by name: nothing is skipped
		s.choice.Memory.Silent = nil
	}
	return s
}

// order puts the way that worked last time before the other automatic ones,
// never before a configured address, and only where no order was asked for.
func (s *search) order() []Way {
	if len(s.Order) > 0 {
		return s.Order
	}
	last := s.choice.Memory.Way
	if last == "" || last == URL {
		return Ways
	}
	rest := slices.DeleteFunc(slices.Clone(Ways), func(w Way) bool { return w == URL || w == last })
	return append([]Way{URL, last}, rest...)
}

// reject notes a failure and what follows from one of a configured address.
func (s *search) reject(c candidate, err error) {
	s.choice.Rejected = append(s.choice.Rejected, Attempt{Way: c.way, What: c.what, Err: err, Absent: c.absent && len(s.Order) == 0})
	if c.way != URL || c.address == "" {
		return
	}
	var gone *slurm.Unreachable
	if errors.As(err, &gone) {
		s.choice.Memory.silence(c.address, s.o.Clock())
	}
	switch {
	case s.barrier != nil:
	case s.NoFallback:
		s.barrier = errors.New("fallback = false: nothing stands in for the address")
	case c.user != "" && c.user != s.self:
		s.barrier = fmt.Errorf("the fleet is asked as %s, here it would be %s", c.user, s.self)
	case s.expect == "" && !s.Alone:
		s.barrier = fmt.Errorf("nothing says that fleet %s is the cluster of this machine; cluster = NAME under [fleets.%s] does", s.Name, s.Name)
	}
}
