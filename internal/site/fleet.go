package site

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Fleet is a cluster and how it is reached.
type Fleet struct {
	Name         string
	Kind         string // "slurm" or "local"
	URL          string // of slurmrestd: http, https or unix; "" lets tp find a way
	TokenFile    string // a file with a JWT
	TokenCommand []string
	Timeout      time.Duration // of one request
	User         string        // in Slurm; "" is whom the token names
	Cluster      string        // ClusterName of slurm.conf; "" takes what answers
	Transports   []string      // ways to try, in order; empty for all of Transports
	NoFallback   bool          // nothing stands in for a URL that fails
	Slurmrestd   string        // program of the private child; "" is searched
	Tools        string        // directory of sbatch, squeue and the like; "" for PATH
}

// DefaultsOn are the layers of defaults for a job on a fleet: what is set for
// the fleet, then the [defaults]. A later layer wins.
func (c *Config) DefaultsOn(fleet string) []Layer {
	return slices.Concat(c.fleets[fleet], c.Defaults)
}

// job are the settings that a fleet gives its jobs.
func (k fleetKeys) job() (keys spec.JobKeys, given bool) {
	for _, s := range []struct {
		text string
		into *any
	}{{k.Account, &keys.Account}, {k.Partition, &keys.Partition}, {k.QOS, &keys.QOS}, {k.Time, &keys.Time}} {
		if s.text != "" {
			*s.into, given = s.text, true
		}
	}
	if len(k.Prolog) > 0 {
		keys.Prolog, given = k.Prolog, true
	}
	return keys, given
}

// DefaultTimeout of one request: slurmctld's own MessageTimeout is 10 s.
const DefaultTimeout = 10 * time.Second

// Objects is where bundles are kept.
type Objects struct {
	Kind        string // "dir" or "s3"; "" for a directory beside the runs
	Path        string // of kind dir
	Endpoint    string // of kind s3: host or https://host
	Bucket      string
	Region      string
	Prefix      string
	Credentials string // path of a 0600 file
	PathStyle   bool   // bucket in the path instead of the host name
}

// Fleets that no file needs to name.
const (
	Slurm = "slurm" // the cluster this machine belongs to
	Local = "local" // this machine alone, see package slurm/local
)

// Names are the fleets of the files, else the one that is implied.
func (c *Config) Names() []string {
	if len(c.Fleets) == 0 {
		return []string{c.implied}
	}
	return sorted(c.Fleets)
}

// elsewhere is where Slurm is when it is not on the PATH: in cron, and where it
// is a module.
var elsewhere = []string{"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin"}

// implied is local where nothing speaks of Slurm: no site file, no address, no
// command and no configuration of it. A login node taken for a machine of its
// own would train there.
func implied(o Options, sitePath string) string {
	if sitePath != "" || o.Getenv("TP_SLURMREST_URL") != "" || o.Getenv("SLURM_CONF") != "" {
		return Slurm
	}
	for _, file := range []string{"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"} {
		if _, err := os.Stat(filepath.Join(o.Root, file)); err == nil {
			return Slurm
		}
	}
	dirs := filepath.SplitList(o.Getenv("PATH"))
	for _, dir := range elsewhere {
		dirs = append(dirs, filepath.Join(o.Root, dir))
	}
	for _, dir := range dirs {
		for _, name := range []string{"sinfo", "scontrol"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return Slurm
			}
		}
	}
	return Local
}

// Fleet finds a fleet; "" is the default one.
func (c *Config) Fleet(name string) (Fleet, error) {
	known := sorted(c.Fleets)
	if name == "" {
		name = c.DefaultFleet
	}
	if _, ok := c.Fleets[name]; !ok && name == Local {
		return Fleet{Name: Local, Kind: Local, Timeout: DefaultTimeout}, nil
	}
	if len(known) == 0 && name == Slurm {
		return Fleet{Name: Slurm, Kind: Slurm, Timeout: DefaultTimeout}, nil
	}
	if len(known) == 0 && name == c.DefaultFleet {
		return Fleet{Name: c.implied, Kind: c.implied, Timeout: DefaultTimeout}, nil
	}
	if name == "" && len(known) == 1 {
		name = known[0]
	}
	if name == "" {
		return Fleet{}, fault.New(fault.Usage, "no default among the fleets %s", strings.Join(known, ", ")).WithHint("--fleet %s", known[0])
	}
	if f, ok := c.Fleets[name]; ok {
		return f, nil
	}
	if len(known) == 0 {
		known = []string{c.implied}
	}
	err := fault.New(fault.Usage, "no fleet %q; known: %s; and %s is this machine alone", name, strings.Join(known, ", "), Local)
	if near := fault.Nearest(name, append(known, Local)); near != "" {
		return Fleet{}, err.WithHint("--fleet %s", near)
	}
	return Fleet{}, err.WithHint("tp fleet ls")
}

// overlay lays the keys of a file over a fleet of a lower layer. Whoever
// changes the URL changes the receiver of the token, so the lower layer's
// token goes with its URL.
func (fl Fleet) overlay(o Options, f *tomlfile.File, name string, k fleetKeys) (Fleet, error) {
	at := func(key string) []string { return []string{"fleets", name, key} }
	if err := oneOf(f, at("kind"), k.Kind, "slurm", "local"); err != nil {
		return fl, err
	}
	if fl.Name == "" {
		fl = Fleet{Name: name, Kind: "slurm", Timeout: DefaultTimeout}
	}
	if k.URL != "" {
		if err := CheckURL(k.URL); err != nil {
			return fl, f.Errorf(at("url"), "%v", err)
		}
		if k.URL != fl.URL {
			fl.TokenFile, fl.TokenCommand = "", nil
		}
	}
	if k.TokenFile != "" && len(k.TokenCommand) > 0 {
		return fl, f.Errorf(at("token_command"), "token_file is set as well; one of them is enough")
	}
	if k.TokenFile != "" {
		path, ok := expand(o, k.TokenFile)
		if !ok {
			return fl, f.Errorf(at("token_file"), "%q is no absolute path", k.TokenFile)
		}
		fl.TokenFile, fl.TokenCommand = path, nil
	}
	if len(k.TokenCommand) > 0 {
		fl.TokenFile, fl.TokenCommand = "", k.TokenCommand
	}
	if k.Timeout != "" {
		d, err := duration(f, at("timeout"), k.Timeout, time.Second, 10*time.Minute)
		if err != nil {
			return fl, err
		}
		fl.Timeout = d
	}
	if err := checkTime(f, at("time"), k.Time); err != nil {
		return fl, err
	}
	if err := fl.reach(o, f, name, k); err != nil {
		return fl, err
	}
	set(&fl.Kind, k.Kind)
	set(&fl.URL, k.URL)
	return fl, nil
}

// CheckURL refuses what is no address of slurmrestd, and says what was
// probably meant.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err == nil && slices.Contains([]string{"http", "https", "unix"}, u.Scheme) && u.Host+u.Path != "":
		if u.RawQuery != "" || u.Fragment != "" {
			return errors.New("an address ends before its ? or #; a token has no place in it: token_file or token_command")
		}
		if u.User != nil {
			return errors.New("a password has no place in a URL; use token_file or token_command")
		}
		return nil
	case strings.HasPrefix(text, "/"):
		return fmt.Errorf("%q: write unix://%s", text, text)
	case hostPort.MatchString(text):
		return fmt.Errorf("%q: write http://%s", text, text)
	}
	return fmt.Errorf("%q: expected http://HOST:PORT, https://HOST:PORT or unix:///PATH", text)
}

var hostPort = regexp.MustCompile(`^([A-Za-z0-9_.-]+|\[[0-9a-fA-F:]+\]):\d+/?$`)

// objects lays [objects] over the lower layer's; another kind, endpoint or
// bucket starts afresh, so credentials never go to a host they are not for.
func (c *Config) objects(o Options, f *tomlfile.File, k objectKeys) error {
	at := func(key string) []string { return []string{"objects", key} }
	if err := oneOf(f, at("kind"), k.Kind, "dir", "s3"); err != nil {
		return err
	}
	now := c.Objects
	if (k.Kind != "" && k.Kind != now.Kind) || (k.Endpoint != "" && k.Endpoint != now.Endpoint) || (k.Bucket != "" && k.Bucket != now.Bucket) {
		if k.Kind == "" {
			k.Kind = now.Kind
		}
		now = Objects{}
	}
	for _, p := range []struct{ key, text string }{{"path", k.Path}, {"credentials", k.Credentials}} {
		if p.text == "" {
			continue
		}
		path, ok := expand(o, p.text)
		if !ok {
			return f.Errorf(at(p.key), "%q is no absolute path", p.text)
		}
		if p.key == "path" {
			now.Path = path
		} else {
			now.Credentials = path
		}
	}
	set(&now.Kind, k.Kind)
	set(&now.Endpoint, k.Endpoint)
	set(&now.Bucket, k.Bucket)
	set(&now.Region, k.Region)
	set(&now.Prefix, k.Prefix)
	if k.PathStyle != nil {
		now.PathStyle = *k.PathStyle
	}
	if now.Kind == "" && now.Path != "" {
		now.Kind = "dir"
	}
	c.Objects = now
	return nil
}
