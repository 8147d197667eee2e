// Package site reads what the administrator and the user have set up: how to
// reach a cluster, its hardware, where runs and objects lie, and policy.
//
//	c, err := site.Load(site.Options{})
//	fleet, err := c.Fleet("")                 // the default one
//	reg := c.Registry()                       // nil without [series]: ask the cluster
//	reg = site.FromSnapshot(snapshot)
//	nodes, perNode, series, err := reg.Resolve(profile)
//
// The site file is TP_SITE, else /etc/tp/site.toml, else ~/.config/tp/site.toml;
// none at all is fine. The user file is ~/.config/tp/user.toml (XDG_CONFIG_HOME
// is respected): it may change where things are and how they are reached, and
// never policy, hardware registry or image list. Both are strict: an unknown
// key is an error with its place and the nearest known key.
package site

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Options say whose files are read. Zero values mean the process's own.
type Options struct {
	Getenv func(string) string
	Home   string
	User   string
	System string // default /etc/tp/site.toml
	Root   string // before the places where Slurm may be; "" but in tests
}

// Config is both files, merged.
type Config struct {
	SitePath string // "" when there is none
	SiteUID  int    // owner of the site file; meaningless without one
	UserPath string // "" when there is none
	// Notes are what the preview must say about the files themselves, such as
	// a site file that is not root's.
	Notes []string

	RunRoot      string        // absolute, "{user}" and "~" expanded
	StateDir     string        // absolute; private to the user
	PlanTTL      time.Duration // how long a plan may be confirmed
	Poll         time.Duration // least time between two rounds of asking a cluster
	DefaultFleet string
	Objects      Objects
	Fleets       map[string]Fleet
	Series       []Series // in the order of the file; empty without [series]
	Requests     Ways     // of every series that does not say otherwise
	Software     Software
	Recipes      string // absolute path of a directory of recipes; "" for none
	Environment  Environment
	Network      Network // between nodes
	// Defaults are the [defaults] tables, the site's first: a later layer wins.
	Defaults []Layer

	implied string // the fleet when no file names one
	values  map[string]Value
	fleets  map[string][]Layer // the job settings of each fleet, the site's first
}

// Network is the network between the nodes, as far as the site must say.
type Network struct {
	Interface string // whose addresses are used; "" lets Slurm and the node choose
	Family    string // "ipv4" or "ipv6" is preferred; "" for ipv4
	Ports     string // the only ports to use, "20000-29999"
}

// Layer is one [defaults] table, typed by lab.NewJobFile(File, Prefix, Keys).
type Layer struct {
	File   *tomlfile.File
	Prefix []string
	Keys   spec.JobKeys
}

// Environment says what every job's environment gets beside its own.
type Environment struct {
	Pass       []string // names whose value is taken from the caller
	GetUserEnv bool     // SLURM_GET_USER_ENV: Slurm runs the user's login shell once
}

// Defaults of keys that are not set.
const (
	// DefaultPlanTTL is as long as Slurm's default token lives.
	DefaultPlanTTL = 30 * time.Minute
	// DefaultPoll keeps a hundred waiting users at ten questions a second.
	DefaultPoll = 10 * time.Second
	// minPoll is below what anybody can read.
	minPoll = 2
	// maxFile bounds a file; a registry of 1,000 series has 300 kB.
	maxFile = 4 << 20
)

// Load reads and merges the files.
func Load(o Options) (*Config, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	c := &Config{PlanTTL: DefaultPlanTTL, Poll: DefaultPoll, Fleets: map[string]Fleet{}, values: map[string]Value{}, fleets: map[string][]Layer{}}
	config := xdg(o, "XDG_CONFIG_HOME", ".config")
	c.RunRoot = filepath.Join(xdg(o, "XDG_DATA_HOME", ".local/share"), "tp", "runs")
	c.StateDir = filepath.Join(xdg(o, "XDG_STATE_HOME", ".local/state"), "tp")
	c.note("run_root", c.RunRoot, "default")
	c.note("state_dir", c.StateDir, "default")
	c.note("plan_ttl", "30m", "default")
	c.note("poll_seconds", "10", "default")

	system := []string{o.System, filepath.Join(config, "tp", "site.toml")}
	if named := o.Getenv("TP_SITE"); named != "" {
		system = []string{named}
	}
	for _, path := range system {
		data, info, err := read(path)
		if errors.Is(err, fs.ErrNotExist) && o.Getenv("TP_SITE") == "" {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Usage, "site file: %w; TP_SITE names it", err).WithHint("tp site init %s, or unset TP_SITE", shell.Quote(path))
		}
		if err != nil {
			return nil, fault.New(fault.Usage, "site file: %w", err)
		}
		if err := c.addSite(o, path, data, info); err != nil {
			return nil, err
		}
		break
	}
	c.implied = implied(o, c.SitePath)
	path := filepath.Join(config, "tp", "user.toml")
	switch data, info, err := read(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fault.New(fault.Usage, "user file: %w", err)
	default:
		if err := c.addUser(o, path, data, info); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

func (o Options) filled() (Options, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Home == "" {
		o.Home = o.Getenv("HOME")
	}
	if o.System == "" {
		o.System = "/etc/tp/site.toml"
	}
	if o.Root == "" {
		o.Root = o.Getenv("TP_TEST_ROOT") // a machine without Slurm, where the tests' own has one
	}
	if o.Home == "" || o.User == "" { // HOME may be unset in cron, USER in containers
		u, err := user.Current()
		if err != nil {
			return o, err
		}
		if o.Home == "" {
			o.Home = u.HomeDir
		}
		if o.User == "" {
			o.User = u.Username
		}
	}
	return o, nil
}

// xdg is a base directory; the specification says that relative ones are
// ignored.
func xdg(o Options, name, below string) string {
	if dir := o.Getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(o.Home, below)
}

// read also refuses a file that everybody may write: it names commands.
func read(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, nil, fault.New(fault.Usage, "%s may be written by everybody, so it is not read", path).WithHint("chmod o-w %s", path)
	}
	data, err := durable.Read(path, maxFile)
	return data, info, err
}

func uid(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func (c *Config) addSite(o Options, path string, data []byte, info fs.FileInfo) error {
	c.SitePath, c.SiteUID = path, uid(info)
	if c.SiteUID != 0 {
		c.Notes = append(c.Notes, "site file "+path+" belongs to uid "+strconv.Itoa(c.SiteUID)+", not to root")
	}
	f, err := tomlfile.Parse(path, data)
	if err != nil {
		return err
	}
	var keys siteKeys
	if err := f.Decode(&keys); err != nil {
		return err
	}
	if err := c.policy(o, f, keys); err != nil {
		return err
	}
	return c.merge(o, f, data, keys.Shared)
}

func (c *Config) addUser(o Options, path string, data []byte, info fs.FileInfo) error {
	c.UserPath = path
	if id := uid(info); id != os.Getuid() && id != 0 {
		return fault.New(fault.Usage, "user file %s belongs to uid %d, neither to you nor to root, so it is not read", path, id)
	}
	f, err := tomlfile.Parse(path, data)
	if err != nil {
		return err
	}
	for _, k := range f.Keys() {
		if what, ok := siteOnly[k.Path[0]]; ok {
			return f.Errorf(k.Path[:1], "%s comes from the site file alone", what)
		}
	}
	var keys userKeys
	if err := f.Decode(&keys); err != nil {
		return err
	}
	return c.merge(o, f, data, keys.Shared)
}

// expand replaces a leading ~ and every {user}; the result must be absolute.
func expand(o Options, text string) (string, bool) {
	if text == "~" || strings.HasPrefix(text, "~/") {
		text = o.Home + text[1:]
	}
	text = strings.ReplaceAll(text, "{user}", o.User)
	return filepath.Clean(text), filepath.IsAbs(text)
}
