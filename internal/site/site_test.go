package site

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/slurm"
)

// world writes files under a home directory and reads the configuration.
func world(t *testing.T, env map[string]string, files map[string]string) (*Config, string, error) {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(Options{Home: home, User: "ada", System: filepath.Join(home, "etc/site.toml"), Root: home, Getenv: func(k string) string {
		return strings.ReplaceAll(env[k], "~", home)
	}})
	return c, home, err
}

func TestNoFiles(t *testing.T) {
	c, home, err := world(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.RunRoot != home+"/.local/share/tp/runs" || c.StateDir != home+"/.local/state/tp" || c.PlanTTL != 30*time.Minute || c.Poll != 10*time.Second || c.SitePath != "" || c.Registry() != nil {
		t.Errorf("%+v", c)
	}
	if f, err := c.Fleet(""); err != nil || f.Kind != Local || f.Timeout != 10*time.Second {
		t.Errorf("fleet %+v, %v", f, err)
	}
}

const full = `run_root = "/shared/{user}/runs"
state_dir = "~/state"
plan_ttl = "1h"
poll_seconds = 5
default_fleet = "main"
[objects]
kind = "s3"
endpoint = "https://s3"
bucket = "b"
credentials = "~/creds"
path_style = true
[fleets.main]
url = "http://c:6820"
token_command = ["scontrol", "token"]
account = "a"
[fleets.laptop]
kind = "local"
[series.h200]
gres = "gpu:H200"
devices = 8
cpus = 128
memory = "2T"
default = "2x8"
partitions = ["gpu", "batch"]
price = 2.5
[series.cpu]
cpus = 64
memory = "1000000M"
[images]
allow = []
[defaults]
time = "4h"
[environment]
pass = ["http_proxy"]
get_user_env = true
[network]
interface = "ib0"
family = "ipv6"
ports = "20000-29999"
`

func TestBothFiles(t *testing.T) {
	c, home, err := world(t, map[string]string{"TP_SITE": "~/my.toml", "XDG_CONFIG_HOME": "~/xdg"}, map[string]string{
		"my.toml":       full,
		"etc/site.toml": "nonsense",
		"xdg/tp/user.toml": `run_root = "~/runs"
[fleets.main]
url = "http://mine:6820"
[fleets.other]
url = "unix:///run/s.sock"
[defaults]
account = "mine"
`})
	if err != nil {
		t.Fatal(err)
	}
	if c.RunRoot != home+"/runs" || c.StateDir != home+"/state" || c.PlanTTL != time.Hour || c.Poll != 5*time.Second || c.Network != (Network{"ib0", "ipv6", "20000-29999"}) {
		t.Errorf("%+v", c)
	}
	if o := c.Objects; o.Kind != "s3" || o.Credentials != home+"/creds" || !o.PathStyle {
		t.Errorf("objects %+v", o)
	}
	main, _ := c.Fleet("")
	if main.URL != "http://mine:6820" || main.TokenCommand != nil {
		t.Errorf("the site's token must not go to the user's URL: %+v", main)
	}
	if l := c.DefaultsOn("main"); len(l) != 3 || l[0].Keys.Account != "a" || l[2].Keys.Account != "mine" {
		t.Errorf("the fleet's defaults come below all others: %+v", l)
	}
	if l := c.DefaultsOn("other"); len(l) != 2 {
		t.Errorf("a fleet without defaults has the common ones: %+v", l)
	}
	if !c.Software.AllowSet || len(c.Software.Allow) != 0 || !c.Environment.GetUserEnv || len(c.Defaults) != 2 || c.Defaults[1].Keys.Account != "mine" {
		t.Errorf("%+v", c)
	}
	s := c.Registry().Series
	if len(s) != 2 || s[0].Name != "h200" || s[0].Memory != 2<<20 || s[0].Nodes != 2 || s[0].PerNode != 8 || s[1].Memory != 1000000 || s[1].Nodes != 1 {
		t.Errorf("series %+v", s)
	}
	for key, want := range map[string]string{"run_root": "xdg/tp/user.toml:1", "plan_ttl": "my.toml:3", "series.h200.gres": "my.toml:19", "fleets.main.url": "user.toml:3", "fleets.main.account": "my.toml:15"} {
		if got := c.Origin(key); !strings.HasSuffix(got, want) {
			t.Errorf("origin of %s: %q, want …%s", key, got, want)
		}
	}
	for _, v := range c.Values() {
		if v.Key == "series.h200.partitions" && v.Text != `["gpu","batch"]` || v.Key == "series.h200.price" && v.Text != "2.5" {
			t.Errorf("%+v", v)
		}
	}
	if os.Getuid() != 0 && len(c.Notes) != 1 {
		t.Errorf("notes %q", c.Notes)
	}
	for name, want := range map[string]string{"mian": "--fleet main", "zzzzzzz": "tp fleet ls"} {
		if _, err := c.Fleet(name); err == nil || err.(*fault.Error).Hint != want {
			t.Errorf("fleet %s: %+v", name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	const site, user = "etc/site.toml", ".config/tp/user.toml"
	for _, c := range []struct{ file, text, want string }{
		{site, "run_rot = 1", `site.toml:1:1: unknown key "run_rot"; did you mean "run_root"?`},
		{site, "[fleets.x]\nurll = 1", `:2:1: unknown key "fleets.x.urll"; did you mean "url"?`},
		{site, "run_root = 'runs'", `site.toml:1:1: run_root: "runs" is no absolute path`},
		{site, "plan_ttl = '5'", "expected a duration"},
		{site, "poll_seconds = 1", "poll_seconds: 1 is not between 2 and 3600"},
		{site, "poll_seconds = 0", "not between"},
		{site, "recipes = 'recipes'", `site.toml:1:1: recipes: "recipes" is no absolute path`},
		{user, "recipes = '/tmp'", "the directory of recipes comes from the site file alone"},
		{site, "[fleets.x]\nkind = 'k8s'", `fleets.x.kind: "k8s": expected slurm or local`},
		{site, "[fleets.x]\nurl = 'ftp://x'", "expected http://"},
		{site, "[fleets.x]\nurl = 'http://me:secret@x'", "no place in a URL"},
		{site, "[fleets.x]\ntoken_file = '/t'\ntoken_command = ['t']", "one of them is enough"},
		{site, "[fleets.x]\ntransport = 'cli'\ntransports = ['url']", "one of them is enough"},
		{site, "[fleets.x]\ntransport = 'http'", "expected url, socket, child, cli"},
		{site, "[fleets.x]\ntransports = ['url', 'cil']", "cli?"},
		{site, "[fleets.x]\ntransports = ['url', 'url']", "comes twice"},
		{site, "[fleets.x]\nslurmrestd = 'sbin/slurmrestd'", "no absolute path"},
		{site, "[fleets.x]\ntools = 'bin'", "no absolute path"},
		{site, "[fleets.x]\nurl = 'http://h:6820/?token=x'", "ends before its ? or #"},
		{site, "[series.x]\nprice = nan", "is no price"},
		{site, "[fleets.x]\nuser = 'a b'", "blanks"},
		{site, "[fleets.x]\ntime = '1:30'", "ambiguous"},
		{site, "default_fleet = 'y'\n[fleets.x]", `site.toml:1: default_fleet "y" is no fleet`},
		{site, "[objects]\nkind = 's3'", "need an endpoint and a bucket"},
		{site, "[objects]\nkind = 'dir'", "need a path"},
		{site, "[series.x]\ngres = 'gpu:8'\ndevices = 8", "ends in a count; write devices = 8"},
		{site, "[series.x]\ngres = 'gpu:h200'", "devices is missing"},
		{site, "[series.x]\ndevices = 8", "gres is missing"},
		{site, "[series.x]\nmemory = '200'", "the unit is missing"},
		{site, "[series.x]\ngres='gpu:h'\ndevices = 8\ndefault = '12'", "nearest: 8 or 16"},
		{site, "[series.'a:b']", "without =, comma, colon"},
		{site, "[environment]\npass = ['A B']", "no name of a variable"},
		{user, "[series.x]", "user.toml:1:2: series: the hardware registry comes from the site file alone"},
		{user, "poll_seconds = 2", "the polling floor comes from the site file alone"},
		{user, "images.allow = ['*']", "the image allow list comes from the site file alone"},
		{user, "fleet = 'x'", `unknown key "fleet"; did you mean "fleets"?`},
	} {
		_, _, err := world(t, nil, map[string]string{c.file: c.text})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
	if _, _, err := world(t, map[string]string{"TP_SITE": "/no/such/file"}, nil); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a named file that is missing: %v", err)
	}
}

func TestWorldWritableFileIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.toml")
	os.WriteFile(path, nil, 0o600)
	os.Chmod(path, 0o666)
	_, err := Load(Options{Home: t.TempDir(), Getenv: func(k string) string { return map[string]string{"TP_SITE": path}[k] }})
	if err == nil || !strings.Contains(err.Error(), "written by everybody") {
		t.Error(err)
	}
}

func TestOwnerIsNoted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a file of somebody else")
	}
	path := filepath.Join(t.TempDir(), "site.toml")
	os.WriteFile(path, nil, 0o600)
	os.Chown(path, 12345, -1)
	c, err := Load(Options{Home: t.TempDir(), Getenv: func(k string) string { return map[string]string{"TP_SITE": path}[k] }})
	if err != nil || c.SiteUID != 12345 || len(c.Notes) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestExampleDecodes(t *testing.T) {
	commented := regexp.MustCompile(`(?m)^# (\[[a-zA-Z.0-9"-]+\]$|[a-z_]+ = )`)
	typeless := mixed()
	typeless.Nodes[7].Features = []string{"A40", "ib"} // gpu:8
	typeless.Nodes[1].Features = []string{"sxm"}
	for name, snap := range map[string]*slurm.Snapshot{"no cluster": nil, "cluster": mixed(), "features": typeless, "hostile": {
		Info:  slurm.Info{Transport: "x\nrun_root = 1", Cluster: "\x1b[31m"},
		Nodes: []slurm.Node{{Partitions: []string{"a\"b\n", "\u202e训"}, GRES: []slurm.GRES{{Name: "gpu", Type: "\"]\n[x", Count: 1}}}},
	}} {
		facts := &slurm.Facts{Config: slurm.Record{"SelectTypeParameters": "CR_CORE", "SchedulerType": "x\n[series.y]"}, Partitions: []slurm.Record{{"PartitionName": "gpu", "Default": "YES", "OverSubscribe": "FORCE:4", "QoS": "a\nb = 1"}}}
		if snap == nil {
			facts = nil
		}
		text := string(Example(snap, facts))
		if name == "features" && (!strings.Contains(text, "# [series.\"A40\"]\n# gres = \"gpu\"\n") || !strings.Contains(text, "# mem = \"forbid\"") || !strings.Contains(text, "Partition all is the default")) {
			t.Errorf("nothing is suggested:\n%s", text)
		}
		c, _, err := world(t, nil, map[string]string{"etc/site.toml": text})
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if snap != nil && len(c.Series) != len(FromSnapshot(snap).Series) {
			t.Errorf("%s: %d series", name, len(c.Series))
		}
		if name == "hostile" {
			continue
		}
		all := commented.ReplaceAllString(text, "$1")
		if all == text {
			t.Error("nothing was uncommented")
		}
		if _, _, err := world(t, nil, map[string]string{"etc/site.toml": all}); err != nil {
			t.Errorf("%s, uncommented: %v\n%s", name, err, all)
		}
	}
}

func TestImpliedFleet(t *testing.T) {
	tools := t.TempDir()
	write := func(path, text string, mode os.FileMode) string {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(filepath.Join(tools, "scontrol"), "#!/bin/sh\n", 0o755)
	data := t.TempDir()
	write(filepath.Join(data, "sinfo"), "no program", 0o644)
	empty := write(filepath.Join(t.TempDir(), "site.toml"), "", 0o644)
	for what, c := range map[string]struct {
		env  map[string]string
		want string
		file string // below the root
	}{
		"conf in cron": {want: Slurm, file: "etc/slurm/slurm.conf"},
		"nothing":      {env: map[string]string{"PATH": data + ":/nonexistent"}, want: Local},
		"a command":    {env: map[string]string{"PATH": "/nonexistent:" + tools}, want: Slurm},
		"SLURM_CONF":   {env: map[string]string{"SLURM_CONF": "/etc/slurm.conf"}, want: Slurm},
		"an address":   {env: map[string]string{"TP_SLURMREST_URL": "http://x:6820"}, want: Slurm},
		"a site file":  {env: map[string]string{"TP_SITE": empty}, want: Slurm},
		"no PATH even": {env: nil, want: Local},
	} {
		root := t.TempDir()
		if c.file != "" {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(c.file)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(root, c.file), "", 0o644)
		}
		conf, err := Load(Options{Getenv: func(name string) string { return c.env[name] }, Home: t.TempDir(), User: "ann", System: "/nonexistent/site.toml", Root: root})
		if err != nil {
			t.Fatal(err)
		}
		f, err := conf.Fleet("")
		if err != nil || f.Name != c.want || f.Kind != c.want || conf.Names()[0] != c.want {
			t.Errorf("%s: %+v, %v, want %s", what, f, err, c.want)
		}
		for _, name := range []string{Local, Slurm} {
			if f, err := conf.Fleet(name); err != nil || f.Kind != name {
				t.Errorf("%s: --fleet %s: %+v, %v", what, name, f, err)
			}
		}
	}
}

func TestMeasuredMachineHasGPUsAndCPUs(t *testing.T) {
	snap := &slurm.Snapshot{Info: slurm.Info{Local: true}, Partitions: []slurm.Partition{{Name: "local", State: "UP"}},
		Nodes: []slurm.Node{{Name: "me", State: "IDLE", Partitions: []string{"local"}, Features: []string{"local"}, CPUs: 8, Memory: 1000, GRES: []slurm.GRES{{Name: "gpu", Count: 2}}}}}
	r := FromSnapshot(snap)
	if names := r.Names(); len(names) != 2 || names[0] != "gpu" || names[1] != "cpu" {
		t.Fatalf("series %v", names)
	}
	for _, s := range r.Series {
		if !s.Has(snap.Nodes[0]) || s.CPUs != 8 {
			t.Errorf("%+v", s)
		}
	}
}
