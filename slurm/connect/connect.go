// Package connect picks the way to a cluster and says which and why.
//
//	client, choice, err := connect.Open(ctx, connect.Fleet{Name: "gpu", URLs: urls}, connect.Options{})
//	fmt.Println(choice.Transport) // slurmrestd v0.0.42 at unix:///run/slurmrestd/rest.sock
package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/rest"
)

// Fleet is what the site file says about reaching one cluster.
type Fleet struct {
	Name string
	// URLs of slurmrestd, in order of preference.
	URLs []string
	// User in Slurm; default: the user who runs tp.
	User string
	// Where tokens come from, for http(s) and for a shared unix socket: a file,
	// else a command, else SLURM_JWT if TokenEnv. With none of them http(s)
	// uses "scontrol token", and a unix socket no token.
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
	DialectHint   string // Choice.Dialect of last time
	// Known is the Info of last time; it saves a question to slurmdbd.
	Known  slurm.Info
	EnvURL string // TP_SLURMREST_URL, after the site's own
	JWT    string // SLURM_JWT
	Tools  cli.Tools
	Clock  func() time.Time
}

// Choice says what was taken and why.
type Choice struct {
	Transport string // slurm.Info.Transport
	URL       string
	Dialect   string // to be remembered for Options.DialectHint
	// Release is what the ping said, "24.11.5". Cluster and accounting are in
	// the client's Info, which may cost a slow question to slurmdbd.
	Release  string
	Warnings []string
	// Rejected holds what was tried before, in order.
	Rejected []Attempt
}

// Attempt is one way that did not work.
type Attempt struct {
	What string // address
	Err  error
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
		fmt.Fprintf(&b, "\n  %s: %s", a.What, strings.ReplaceAll(a.Err.Error(), "\n", " "))
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

// Open tries the fleet's addresses in order, then Options.EnvURL, and takes
// the first that answers a ping.
func Open(ctx context.Context, f Fleet, o Options) (slurm.Client, Choice, error) {
	var choice Choice
	f.Name = cmp.Or(f.Name, "slurm")
	if f.User == "" {
		if u, err := user.Current(); err == nil {
			f.User = u.Username
		}
	}
	urls := f.URLs
	if o.EnvURL != "" {
		urls = append(urls[:len(urls):len(urls)], o.EnvURL)
	}
	for _, address := range urls {
		client, info, warnings, err := try(ctx, f, o, address)
		if err == nil {
			choice.Transport, choice.URL, choice.Dialect = info.Transport, address, info.Dialect
			choice.Release, choice.Warnings = info.Release, warnings
			return client, choice, nil
		}
		choice.Rejected = append(choice.Rejected, Attempt{What: redact(address), Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	attempts := choice.Rejected
	if len(urls) == 0 {
		attempts = []Attempt{{"slurmrestd", errors.New("no address is configured")}}
	}
	return nil, choice, &Error{Fleet: f.Name, Attempts: attempts}
}

func try(ctx context.Context, f Fleet, o Options, address string) (*rest.Client, slurm.Info, []string, error) {
	token, warnings := tokenSource(f, o, strings.HasPrefix(address, "unix:"))
	if token != nil && unprotected(address) {
		warnings = append(warnings, fmt.Sprintf("the token travels unencrypted to %s", redact(address)))
	}
	var client *rest.Client
	client, err := rest.New(rest.Options{
		URL: address, User: f.User, Token: token, TLS: f.TLS,
		Timeout: o.Timeout, SubmitTimeout: o.SubmitTimeout, Dialect: o.DialectHint, Known: o.Known, Clock: o.Clock,
		Mine: func(ctx context.Context) ([]slurm.Job, error) { return mine(ctx, o.Tools, client) },
	})
	if err != nil {
		return nil, slurm.Info{}, nil, err
	}
	info, err := client.Ping(ctx)
	return client, info, warnings, err
}

// mine asks squeue, if there is one and it talks to the same cluster: another
// cluster's "none" would be taken for an answer.
func mine(ctx context.Context, tools cli.Tools, client *rest.Client) ([]slurm.Job, error) {
	if _, err := exec.LookPath(tools.Path("squeue")); err != nil {
		return nil, slurm.ErrCannotLookUp
	}
	info, err := client.Info(ctx)
	if err != nil {
		return nil, err
	}
	here, err := tools.ClusterName(ctx)
	if err != nil {
		return nil, err
	}
	if here != info.Cluster {
		return nil, fmt.Errorf("%w: squeue here asks cluster %s, not %s", slurm.ErrCannotLookUp, here, info.Cluster)
	}
	return tools.Mine(ctx)
}

// unprotected: plain HTTP that leaves this machine.
func unprotected(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func redact(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}
