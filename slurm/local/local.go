// Package local runs the batch script of a job on this machine, where there is
// no Slurm: a first taste and a debugger, not a scheduler. Nothing waits: a job
// starts at once or is refused.
//
//	client, err := local.Open(local.Options{Dir: stateDir})
//	sub, err := client.Submit(ctx, &slurm.Request{...})
//
// The script is the very text that a cluster would run. It finds srun, scontrol
// and scancel in [Client.Commands], which must come first on the PATH of the
// request; they do for one node and one task what the script asks of Slurm.
//
// A job is a directory jobs/<id>. A small bash process in a session of its own
// keeps it: it outlives tp and the terminal, watches the time limit, writes down
// how the script ended and kills what is left. It holds a lock (flock, of this
// machine alone) for as long as it lives, so that its death is noticed at once
// and a reused pid is never taken for it.
package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm"
)

//go:embed sh
var embedded embed.FS

// Partition is the only one.
const Partition = "local"

// DefaultTime is the limit of a job that asks for none.
const DefaultTime slurm.Minutes = 24 * 60

// Transport is what the preview says.
const Transport = "this machine (no Slurm): one pool, no queue"

// Options of a client.
type Options struct {
	// Dir is private state, of this user; each host has its own part of it.
	Dir string
	// Grace is how long a job that was asked to end may take before it is
	// killed; default 30 s, Slurm's KillWait. The batch script itself gives its
	// roles ten.
	Grace time.Duration
}

// Client is this machine as a slurm.Client.
type Client struct {
	dir   string // Options.Dir/<host>
	bin   string // the commands, by content
	host  string
	user  string
	grace time.Duration

	root   string        // "/"; tests have devices of their own
	minute time.Duration // of a time limit; tests have shorter ones
}

// Open looks at the machine; nothing is written before a job is submitted.
func Open(o Options) (*Client, error) {
	if !filepath.IsAbs(o.Dir) || strings.ContainsAny(o.Dir, ":\n") {
		return nil, fmt.Errorf("directory %q for local jobs: expected an absolute path without colon and newline, for it goes onto a PATH", o.Dir)
	}
	u, err := user.Current()
	if err != nil {
		return nil, err
	}
	c := &Client{host: hostname(), user: u.Username, grace: cmp.Or(o.Grace, 30*time.Second), root: "/", minute: time.Minute}
	c.dir = filepath.Join(o.Dir, c.host)
	sum := sha256.New()
	for _, name := range commands {
		sum.Write(file(name))
	}
	// By content: a job keeps the commands that it was shown with.
	c.bin = filepath.Join(c.dir, "bin-"+hex.EncodeToString(sum.Sum(nil)[:4]))
	return c, nil
}

// hostname is a word that a node list and a path can hold.
func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789.-_") != "" || strings.Trim(name, ".") == "" {
		return "localhost"
	}
	return name
}

// commands are what a batch script calls; supervise keeps a job.
var commands = []string{"supervise", "srun", "scontrol", "scancel"}

func file(name string) []byte {
	data, err := embedded.ReadFile("sh/" + name)
	if err != nil {
		panic(err) // the list above is wrong
	}
	return data
}

// Commands is the directory of srun, scontrol and scancel. It belongs in front
// of the PATH in Request.Env.
func (c *Client) Commands() string { return c.bin }

// install writes the commands, once.
func (c *Client) install() error {
	if err := os.MkdirAll(c.bin, 0o700); err != nil {
		return err
	}
	for _, name := range commands {
		path := filepath.Join(c.bin, name)
		if have, err := os.ReadFile(path); err == nil && string(have) == string(file(name)) {
			continue
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := durable.WriteFile(path, file(name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Info is this machine.
func (c *Client) Info(context.Context) (slurm.Info, error) {
	return slurm.Info{Cluster: c.host, Transport: Transport, Local: true}, nil
}

// Check refuses what only a scheduler can do and says what has no meaning here.
func (c *Client) Check(_ context.Context, r *slurm.Request) (warnings []string, err error) {
	switch {
	case len(r.Components) != 1 || r.Components[0].Nodes > 1 || r.Components[0].Tasks() > 1:
		return nil, errors.New("this machine is one pool of one node with one task per role")
	case r.Hold:
		return nil, errors.New("there is no queue to hold a job in")
	case !r.Begin.IsZero():
		return nil, errors.New("there is no queue to wait in for a begin time")
	case r.Dependency != "":
		return nil, errors.New("there is no queue to wait in for another job")
	case r.Array != "":
		return nil, errors.New("there is no queue to wait in for an array's tasks")
	case !r.Deadline.IsZero():
		return nil, errors.New("there is no queue that a deadline would end the waiting in")
	case r.Container != "":
		return nil, errors.New("containers are Slurm's here")
	case r.Signal.Name != "":
		return nil, errors.New("no signal is sent before the time limit")
	}
	p := r.Components[0]
	for _, given := range []struct{ what, value string }{
		{"account", p.Account}, {"QOS", p.QOS}, {"reservation", p.Reservation}, {"constraint", p.Constraint},
		{"licenses", p.Licenses}, {"node list", strings.Join(slices.Concat(p.NodeList, p.Exclude), ",")}, {"mail", strings.Join(r.MailType, ",") + r.MailUser},
		{"prefer", p.Prefer}, {"time-min", p.TimeMin.String()}, {"exclusive", string(p.Share)}, {"network", p.Network}, {"wckey", r.WCKey}, {"extra", r.Extra},
		{"switches", nonzero(p.Switches)}, {"segment", nonzero(p.Segment)}, {"nice", nonzero(r.Nice)}, {"priority", nonzero(r.Priority)},
		{"mem-per-cpu", nonzero(int(p.MemoryPerCPU))}, {"mem-per-gpu", nonzero(int(p.MemoryPerGPU))},
	} {
		if given.value != "" {
			warnings = append(warnings, fmt.Sprintf("%s %s has no meaning on this machine and is ignored", given.what, given.value))
		}
	}
	if r.Requeue {
		warnings = append(warnings, "nothing starts the job again on this machine; --requeue is ignored")
	}
	return warnings, nil
}

func nonzero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
