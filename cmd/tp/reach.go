package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	slurmcli "github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/connect"
)

// reaching is how a fleet is reached: the site file's word, and the flags over it.
func (a *app) reaching(fleet site.Fleet) (connect.Fleet, error) {
	f := connect.Fleet{
		Name: fleet.Name, User: fleet.User, Cluster: fleet.Cluster, NoFallback: fleet.NoFallback, Slurmrestd: fleet.Slurmrestd,
		TokenFile: fleet.TokenFile, TokenCommand: fleet.TokenCommand, TokenEnv: jwt != "",
	}
	if fleet.URL != "" {
		f.URLs = []string{fleet.URL}
	}
	if text := os.Getenv("TP_SLURMREST_URL"); text != "" {
		if err := site.CheckURL(text); err != nil {
			return f, fault.New(fault.Usage, "TP_SLURMREST_URL: %w", err)
		}
	}
	ways, err := transports(a.cli.Transport)
	if err != nil {
		return f, err
	}
	if ways == nil {
		ways = fleet.Transports
	}
	for _, name := range ways {
		f.Order = append(f.Order, connect.Way(name))
	}
	if a.cli.TokenFile != "" {
		path, err := filepath.Abs(a.cli.TokenFile)
		if err != nil {
			return f, err
		}
		f.TokenFile, f.TokenCommand = path, nil
	}
	clusters := 0
	for _, name := range a.conf.Names() {
		if other, err := a.conf.Fleet(name); err == nil && other.Kind != site.Local {
			clusters++
		}
	}
	f.Alone = clusters <= 1
	return f, nil
}

// transports reads --transport; nil without it.
func transports(flag string) ([]string, error) {
	if flag == "" {
		return nil, nil
	}
	ways := strings.Split(flag, ",")
	if err := site.CheckTransports(ways); err != nil {
		return nil, fault.New(fault.Usage, "--transport: %w", err).WithHint("tp doctor, which says what works here")
	}
	return ways, nil
}

// circumstances are what connect cannot know by itself.
func (a *app) circumstances(fleet site.Fleet, last connect.Memory) connect.Options {
	return connect.Options{
		Timeout: fleet.Timeout, EnvURL: os.Getenv("TP_SLURMREST_URL"), JWT: jwt, Last: last, Warn: a.warn,
		Tools: slurmcli.Tools{Dir: fleet.Tools},
	}
}

// unreached is the fault when no way works.
func unreached(err error, fleet site.Fleet) error {
	if refused := refusedToken(err, fleet); refused != nil {
		return refused
	}
	found := fault.New(fault.Unreachable, "%w", err)
	if fleet.URL == "" && os.Getenv("TP_SLURMREST_URL") == "" {
		return found.WithHint("on a login node Slurm's commands are enough; elsewhere url under [fleets.%s] in a site file, or export TP_SLURMREST_URL=http://HOST:PORT; --fleet local runs on this machine", fleet.Name)
	}
	return found.WithHint("tp doctor")
}

// user is whose jobs the cluster takes ours for.
func (c *cluster) user(a *app) string {
	if c.choice.User != "" {
		return c.choice.User
	}
	return a.me
}
