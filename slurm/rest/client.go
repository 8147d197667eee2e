// Package rest speaks to slurmrestd of Slurm 22.05 to 26.05, over a unix
// socket or TCP, with or without a JSON web token. It finds the newest dialect
// that the server offers, reads the answers of all of them with one tolerant
// decoder, and writes requests from one table of fields (encode.go).
//
//	client, err := rest.New(rest.Options{URL: "unix:///run/slurmrestd/rest.sock"})
//	sub, err := client.Submit(ctx, request)
//
// Truth is the job id: the HTTP status and errors[] of slurmrestd say little.
package rest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"os/user"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// Options say where slurmrestd is and how to prove who asks. Only URL or
// Binary is needed.
type Options struct {
	// URL is unix:///path, http://host:port or https://host:port, with an
	// optional path prefix before /slurm.
	URL string
	// Binary is the path of a slurmrestd to be started as a private child, which
	// needs no URL and no token. Close ends it.
	Binary string
	// User goes with the token; Slurm 22.05 demands it, and none takes another
	// name than the token's. Default: what the token's claims say, else Self.
	User string
	// Self is who runs this program (default: asked of the system).
	Self string
	// Token fetches a fresh token. nil: the socket's credentials suffice.
	Token func(context.Context) (string, error)
	TLS   *tls.Config
	// Timeout to the first byte of a read (default 10 s); the whole of it may
	// take six times that. SubmitTimeout is for a submission (default 60 s).
	Timeout       time.Duration
	SubmitTimeout time.Duration
	// Dialect is remembered from an earlier time, "v0.0.42". It is tried
	// first; a server that lacks it is asked anew.
	Dialect string
	// Known is an earlier Info of this server. While the release is the same,
	// accounting that was there and the cluster's name are not asked for again:
	// every question to slurmdbd costs 90 to 180 ms on 22.05 (5 ms on 26.05).
	Known slurm.Info
	// Mine lists the caller's own jobs, by squeue --me: slurmctld over REST
	// filters by nothing. nil, or a slurm.ErrCannotLookUp from it: look-up by
	// name relies on accounting.
	Mine func(context.Context) ([]slurm.Job, error)
	// ClusterName is asked where slurmrestd does not say it: v0.0.38 and .39
	// without accounting.
	ClusterName func(context.Context) (string, error)

	Clock func() time.Time
	// Host becomes SLURM_SUBMIT_HOST (default: this host).
	Host string
}

// Client is a cluster behind slurmrestd.
type Client struct {
	o      Options
	wire   *link
	tokens *tokens // nil without a token

	mu       sync.Mutex
	dialect  dialect     // 0: not known yet
	verified bool        // the server has answered in this dialect
	pong     *slurm.Info // of the last Ping
	info     *slurm.Info
}

var _ slurm.Client = (*Client)(nil)

// New makes a client without talking to the server.
func New(o Options) (*Client, error) {
	if o.Timeout <= 0 {
		o.Timeout = readTimeout
	}
	if o.SubmitTimeout <= 0 {
		o.SubmitTimeout = submitTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Host == "" {
		o.Host, _ = os.Hostname()
	}
	if u, err := user.Current(); o.Self == "" && err == nil {
		o.Self = u.Username
	}
	o.TLS = tlsConfig(o.TLS)
	w, err := newLink(o)
	if err != nil {
		return nil, err
	}
	c := &Client{o: o, wire: w, dialect: parseDialect(o.Dialect)}
	if o.Token != nil {
		c.tokens = &tokens{source: o.Token, now: o.Clock}
	}
	return c, nil
}

// Dialect is the one in use, for remembering; "" before the first answer.
func (c *Client) Dialect() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.verified {
		return ""
	}
	return c.dialect.String()
}

// Info asks the controller and accounting once and remembers the answer. After
// a Ping only accounting is left to be asked.
func (c *Client) Info(ctx context.Context) (slurm.Info, error) {
	c.mu.Lock()
	known, pong := c.info, c.pong
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	if pong == nil {
		fresh, err := c.Ping(ctx)
		if err != nil {
			return slurm.Info{}, err
		}
		pong = &fresh
	}
	info := *pong
	if k := c.o.Known; k.Account && k.Cluster != "" && k.Release == info.Release && (info.Cluster == "" || k.Cluster == info.Cluster) {
		info.Cluster, info.Account = k.Cluster, true
	} else {
		var clusters wire.Clusters
		info.Account = c.read(ctx, "list clusters", "/slurmdb/%s/clusters", &clusters) == nil
		if info.Cluster == "" && len(clusters.Clusters) == 1 { // v0.0.38 and .39 do not say it
			info.Cluster = string(clusters.Clusters[0].Name)
		}
	}
	if info.Cluster == "" && c.o.ClusterName != nil {
		info.Cluster, _ = c.o.ClusterName(ctx) // "" where that fails as well
	}
	c.mu.Lock()
	c.info = &info
	c.mu.Unlock()
	return info, nil
}

// User is who the jobs will belong to.
func (c *Client) User() string {
	if c.tokens == nil {
		return c.o.Self
	}
	c.tokens.mu.Lock()
	defer c.tokens.mu.Unlock()
	return c.bearer(ParseClaims(c.tokens.current))
}

func (c *Client) bearer(claims Claims) string {
	return cmp.Or(c.o.User, claims.User(c.o.Self), c.o.Self)
}

// Ping is Info without a question to accounting: Account is false, and Cluster
// is empty before v0.0.40. From 24.11 on a refused token looks like a dead
// controller there; any other read says which, and brings a fresh token.
func (c *Client) Ping(ctx context.Context) (slurm.Info, error) {
	for again := c.tokens != nil; ; again = false {
		var pong wire.Ping
		if err := c.read(ctx, "ping", "/slurm/%s/ping", &pong); err != nil {
			return slurm.Info{}, err
		}
		if pong.Up() {
			info := slurm.Info{
				Cluster:   string(pong.Meta.Slurm.Cluster),
				Release:   string(pong.Meta.Slurm.Release),
				Dialect:   c.Dialect(),
				Transport: c.transport(),
			}
			c.mu.Lock()
			c.pong = &info
			c.mu.Unlock()
			return info, nil
		}
		down := &slurm.Unreachable{Op: "ping", Via: c.wire.via, Err: errors.New("slurmctld does not answer slurmrestd")}
		if !again {
			return slurm.Info{}, down
		}
		var auth *slurm.AuthError
		if err := c.read(ctx, "ping", "/slurm/%s/reservations", new(wire.Reservations)); errors.As(err, &auth) {
			return slurm.Info{}, auth
		} else if err != nil {
			return slurm.Info{}, down
		}
	}
}

func (c *Client) transport() string {
	if c.wire.children != nil {
		return "a private slurmrestd " + c.Dialect() + " (" + c.o.Binary + ")"
	}
	s := "slurmrestd " + c.Dialect() + " at " + c.wire.via
	if c.tokens != nil {
		s += " (token)"
	}
	return s
}
