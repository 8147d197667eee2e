package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/rest"
)

// candidate is one place to try.
type candidate struct {
	way     Way
	what    string // as shown
	address string // of URL and Socket
	program string // of Child and CLI
	err     error  // why there is nothing to try
	absent  bool   // and nobody said that there is
	user    string // who was asked for, once it is known; of URL
}

// sockets are where slurmrestd's packages and common playbooks put its socket:
// Debian's and Ubuntu's units, SchedMD's own (sharedstatedir), Slurm-web's
// manual. All are directories that only root can make.
var sockets = func() (list []string) {
	for _, dir := range []string{"/run/slurmrestd", "/run", "/var/run/slurmrestd", "/var/run", "/run/slurm", "/var/lib/slurmrestd", "/var/lib"} {
		list = append(list, dir+"/slurmrestd.socket", dir+"/slurmrestd.sock")
	}
	return list
}()

// programs are where slurmrestd is when it is not on the PATH, which ordinary
// users have without sbin.
var programs = []string{"/usr/sbin", "/usr/local/sbin", "/opt/slurm/sbin", "/opt/slurm/bin"}

// probeTimeout bounds the question to a socket that nobody configured.
const probeTimeout = 2 * time.Second

// candidates are the places of a way, or one that says why there is none.
func (s *search) candidates(way Way) []candidate {
	if s.barrier == nil && s.User != "" && s.User != s.self {
		s.barrier = fmt.Errorf("the fleet is asked as %s, here it would be %s", s.User, s.self)
	}
	if way != URL && s.barrier != nil {
		return []candidate{{way: way, what: noun[way], err: s.barrier}}
	}
	switch way {
	case URL:
		return s.urls()
	case Socket:
		return s.sockets()
	case Child:
		return []candidate{s.child()}
	}
	return []candidate{s.commands()}
}

// noun is how a way without an address is called.
var noun = map[Way]string{URL: "url", Socket: "unix socket", Child: "private slurmrestd", CLI: "command line"}

func (s *search) urls() (list []candidate) {
	all := s.URLs
	if s.o.EnvURL != "" && !slices.Contains(all, s.o.EnvURL) {
		all = append(all[:len(all):len(all)], s.o.EnvURL)
	}
	for _, address := range all {
		c := candidate{way: URL, what: redact(address), address: address, user: s.User}
		if when, ok := s.choice.Memory.Silent[address]; ok {
			c.err = &slurm.Unreachable{Op: "ping", Via: c.what, NotSent: true,
				Err: fmt.Errorf("it did not answer at %s and is asked again from %s on", when.Format("15:04:05"), when.Add(silentFor).Format("15:04:05"))}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		list = []candidate{{way: URL, what: noun[URL], err: errors.New("no address is configured"), absent: true}}
	}
	return list
}

func (s *search) sockets() (list []candidate) {
	places := s.o.sockets
	if places == nil {
		places = sockets
	}
	var seen []os.FileInfo
	for _, path := range places {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&os.ModeSocket == 0 || slices.ContainsFunc(seen, func(have os.FileInfo) bool { return os.SameFile(have, info) }) {
			continue // /var/run is /run
		}
		seen = append(seen, info)
		address := (&url.URL{Scheme: "unix", Path: path}).String()
		list = append(list, candidate{way: Socket, what: address, address: address})
	}
	if len(list) == 0 {
		list = []candidate{{way: Socket, what: noun[Socket], err: errors.New("none of slurmrestd in /run or /var/lib"), absent: true}}
	}
	return list
}

func (s *search) child() candidate {
	c := candidate{way: Child, what: noun[Child]}
	c.program, c.err = s.findSlurmrestd()
	switch {
	case c.err != nil:
		c.absent = s.Slurmrestd == ""
	case cli.MissingConfig() != nil:
		c.err = cli.MissingConfig()
	case os.Geteuid() == 0:
		c.err = errors.New("slurmrestd does not run as root")
	}
	return c
}

// findSlurmrestd looks where the site says, on the PATH, beside sbatch and in
// the usual places.
func (s *search) findSlurmrestd() (string, error) {
	const name = "slurmrestd"
	if s.Slurmrestd != "" {
		_, err := exec.LookPath(s.Slurmrestd)
		return s.Slurmrestd, err
	}
	if s.o.Tools.Dir == "" {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	dirs := s.o.programs
	if dirs == nil {
		dirs = programs
	}
	if sbatch, err := exec.LookPath(s.o.Tools.Path("sbatch")); err == nil {
		if real, err := filepath.EvalSymlinks(sbatch); err == nil {
			prefix := filepath.Dir(filepath.Dir(real))
			dirs = append([]string{prefix + "/sbin", filepath.Dir(real)}, dirs...)
		}
	}
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program slurmrestd on the PATH, beside sbatch or in %s", strings.Join(dirs, ":"))
}

func (s *search) commands() candidate {
	c := candidate{way: CLI, what: noun[CLI]}
	c.program, c.err = exec.LookPath(s.o.Tools.Path("sbatch"))
	if c.err != nil {
		c.absent = s.o.Tools.Dir == ""
		c.err = fmt.Errorf("no program %s on the PATH", s.o.Tools.Path("sbatch"))
	} else {
		c.err = cli.MissingConfig()
	}
	return c
}

// try asks one place and makes it the choice.
func (s *search) try(ctx context.Context, c *candidate) (slurm.Client, error) {
	if c.err != nil {
		return nil, c.err
	}
	var client slurm.Client
	var info slurm.Info
	var warnings []string
	var err error
	if c.way == CLI {
		client, info, err = s.openCLI(ctx)
	} else {
		client, info, warnings, err = s.openREST(ctx, c)
	}
	if err == nil {
		err = s.same(ctx, *c, info)
	}
	if err != nil {
		Close(client)
		return nil, err
	}
	s.choice.Way, s.choice.Transport, s.choice.Release = c.way, info.Transport, info.Release
	s.choice.URL, s.choice.User = cmp.Or(c.address, c.program), cmp.Or(c.user, s.self)
	s.choice.Warnings = append(s.choice.Warnings, warnings...)
	if len(s.Order) == 0 { // what was ordered says nothing about what works best
		s.choice.Memory.took(c.way, s.o.Clock())
	}
	for _, a := range s.choice.Rejected {
		if a.Way == URL && a.What != noun[URL] {
			s.choice.Warnings = append(s.choice.Warnings, fmt.Sprintf("fleet %s is reached through %s instead of %s", s.Name, info.Transport, a))
		}
	}
	delete(s.choice.Memory.Silent, c.address)
	return client, nil
}

// same refuses another cluster: one that the site file does not mean, and for
// a substitute of an address one that the address is not.
func (s *search) same(ctx context.Context, c candidate, info slurm.Info) error {
	want := s.Cluster
	if c.way != URL && len(s.choice.Rejected) > 0 && s.configured() {
		want = s.expect
	}
	if want == "" {
		return nil
	}
	found := info.Cluster
	if found == "" && c.way != URL { // v0.0.38 and .39 do not say it
		var err error
		if found, err = s.o.Tools.ClusterName(ctx); err != nil {
			return fmt.Errorf("its name cannot be asked: %w", err)
		}
	}
	if found != "" && found != want {
		return fmt.Errorf("it is cluster %s, not %s", found, want)
	}
	return nil
}

// configured: somebody named an address.
func (s *search) configured() bool { return len(s.URLs) > 0 || s.o.EnvURL != "" }

// openREST asks a slurmrestd. A unix socket takes its caller's identity from
// the kernel unless it is shared; then it wants a token.
func (s *search) openREST(ctx context.Context, c *candidate) (slurm.Client, slurm.Info, []string, error) {
	if c.way == Socket {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, probeTimeout)
		defer cancel()
	}
	unix := strings.HasPrefix(c.address, "unix:")
	tokens := s.tokens(c.way)
	if c.way == Child || unix && tokens.optional() {
		client, info, err := s.ping(ctx, c, nil)
		var auth *slurm.AuthError
		if c.way == Child || !errors.As(err, &auth) {
			return client, info, nil, err
		}
		Close(client)
	}
	client, info, err := s.ping(ctx, c, tokens)
	warnings := tokens.settle()
	if err == nil && unprotected(c.address) {
		warnings = append(warnings, fmt.Sprintf("the token travels unencrypted to %s", c.what))
	}
	return client, info, warnings, err
}

func (s *search) ping(ctx context.Context, c *candidate, tokens *tokens) (slurm.Client, slurm.Info, error) {
	var client *rest.Client
	o := rest.Options{
		URL: c.address, Binary: c.program, User: s.User, Self: s.self, TLS: s.TLS,
		Timeout: s.o.Timeout, SubmitTimeout: s.o.SubmitTimeout, Dialect: s.o.Last.Info.Dialect, Known: s.o.Last.Info, Clock: s.o.Clock,
		Mine:        func(ctx context.Context) ([]slurm.Job, error) { return s.mine(ctx, client) },
		ClusterName: func(ctx context.Context) (string, error) { return s.clusterName(ctx, c.way) },
	}
	if tokens != nil {
		o.Token = tokens.get
	} else {
		o.User = ""
	}
	client, err := rest.New(o)
	if err != nil {
		return nil, slurm.Info{}, err
	}
	info, err := client.Ping(ctx)
	if c.way == URL {
		c.user = client.User()
	}
	return client, info, err
}

// clusterName is asked where slurmrestd does not tell: v0.0.38 and .39 without
// accounting.
func (s *search) clusterName(ctx context.Context, way Way) (string, error) {
	if s.Cluster != "" || way == URL {
		return s.Cluster, nil
	}
	return s.o.Tools.ClusterName(ctx)
}

// mine asks squeue, if there is one and it talks to the same cluster as the
// same user: another's "none" would be taken for an answer.
func (s *search) mine(ctx context.Context, client *rest.Client) ([]slurm.Job, error) {
	if _, err := exec.LookPath(s.o.Tools.Path("squeue")); err != nil {
		return nil, slurm.ErrCannotLookUp
	}
	if who := client.User(); who != s.self {
		return nil, fmt.Errorf("%w: squeue here asks for %s, not for %s", slurm.ErrCannotLookUp, s.self, who)
	}
	info, err := client.Info(ctx)
	if err != nil {
		return nil, err
	}
	here, err := s.o.Tools.ClusterName(ctx)
	if err != nil {
		return nil, err
	}
	if here != info.Cluster {
		return nil, fmt.Errorf("%w: squeue here asks cluster %s, not %s", slurm.ErrCannotLookUp, here, info.Cluster)
	}
	return s.o.Tools.Mine(ctx)
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
