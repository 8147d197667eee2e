package plan

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// wanting is a registry whose series are asked for as a site wants.
type wanting struct {
	registry
	change func(*site.Series)
}

func (r wanting) Resolve(p spec.Profile) (int, int, site.Series, error) {
	nodes, per, s, err := r.registry.Resolve(p)
	s.Origin = "/etc/tp/site.toml:20"
	r.change(&s)
	return nodes, per, s, err
}

func TestASiteSaysHowItIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		ways     site.Ways
		mem      string
		has, not []string // of the script
		fails    string
	}{
		"gres":          {ways: site.Ways{}, has: []string{`--gres=gpu:h200:4`, `--mem=400000M`}, not: []string{"gpus-per-node"}},
		"gpus-per-node": {ways: site.Ways{GPURequest: site.ByGPUsPerNode}, has: []string{`--gpus-per-node=h200:4`}, not: []string{"#SBATCH --gres"}},
		"none":          {ways: site.Ways{GPURequest: site.NotRequested}, has: []string{"TP_GPUS_PER_NODE=4"}, not: []string{"gpu:h200", "--gpus"}},
		"per CPU":       {ways: site.Ways{Memory: site.PerCPUMemory}, has: []string{`--mem-per-cpu=12500M`}, not: []string{"--mem="}},
		"forbid":        {ways: site.Ways{Memory: site.ForbidMemory}, not: []string{"--mem"}},
		"forbid, asked": {ways: site.Ways{Memory: site.ForbidMemory, MemoryOrigin: "/etc/tp/site.toml:9"}, mem: "10G", fails: `which this site forbids: mem = "forbid" at /etc/tp/site.toml:9`},
		"require":       {ways: site.Ways{Memory: site.RequireMemory}, mem: "10G", has: []string{`--mem=10G`}},
		"place": {ways: site.Ways{Account: "gpu-acc", QOS: "h2", Reservation: "r", Share: slurm.ExclusiveUser, Segment: 4, Switches: 2, Prolog: []string{"module load cuda"}, Time: "3h"},
			has: []string{`--account=gpu-acc`, `--qos=h2`, `--reservation=r`, `--exclusive=user`, `--segment=4`, `--switches=2`, "\nmodule load cuda\nmodule load mine\n", `--time=0-03:00:00`}},
	} {
		in := input("train=h200:4")
		in.Spec.Roles = in.Spec.Roles[:1]
		in.Spec.Job.Prolog = []string{"module load mine"}
		if c.ways.Time != "" {
			in.Spec.Job.Time = nil
		}
		if c.mem != "" {
			in.Spec.Job.Memory = spec.PerRole{"": c.mem}
		}
		in.Registry = wanting{change: func(s *site.Series) { s.Ways = c.ways }}
		p, err := Resolve(in)
		if c.fails != "" || err != nil {
			if c.fails == "" || fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", name, err, c.fails)
			}
			continue
		}
		script := p.Fixed.Request.Script
		for _, text := range c.has {
			if !strings.Contains(script, text) {
				t.Errorf("%s: the script lacks %s:\n%s", name, text, script[:min(len(script), 900)])
			}
		}
		for _, text := range c.not {
			if strings.Contains(script, text) {
				t.Errorf("%s: the script has %s", name, text)
			}
		}
	}
}

// A site that wants memory said cannot be left without it.
func TestRequiredMemoryThatNobodyKnows(t *testing.T) {
	in := input("h200:8")
	in.Registry = wanting{change: func(s *site.Series) { s.Memory, s.Ways.Memory = 0, site.RequireMemory }}
	if _, err := Resolve(in); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), `mem = "require"`) {
		t.Error(err)
	}
}

func TestWhoSaysTheAccount(t *testing.T) {
	for name, c := range map[string]struct {
		value  spec.PerRole
		key    string
		origin string
		want   string
	}{
		"nobody":                     {want: "of-series"},
		"the site, for all":          {spec.PerRole{"": "of-fleet"}, "account", "/etc/tp/site.toml:5", "of-series"},
		"the site, for the role":     {spec.PerRole{"train": "of-role"}, "account.train", "/etc/tp/site.toml:5", "of-series"},
		"the user file":              {spec.PerRole{"": "mine"}, "account", "/home/a/.config/tp/user.toml:5", "mine"},
		"job.toml":                   {spec.PerRole{"": "(null)"}, "account", "job.toml:2", "(null)"},
		"a flag, with blanks and +":  {spec.PerRole{"": "Dept bioinf+"}, "account", "--account", "Dept bioinf+"},
		"a flag beside the site":     {spec.PerRole{"": "of-fleet", "train": "mine"}, "account.train", "--account", "mine"},
		"of a file with longer name": {spec.PerRole{"": "mine"}, "account", "/etc/tp/site.toml:5:1", "mine"},
	} {
		in := input("train=h200:8")
		in.Registry = wanting{change: func(s *site.Series) { s.Ways.Account = "of-series" }}
		in.Spec.Job.Account = c.value
		in.Settings = []Setting{{Key: "account", Origin: "/etc/tp/site.toml:5"}}
		if c.key != "" {
			in.Settings = []Setting{{Key: c.key, Origin: c.origin}}
			if c.key != "account" {
				in.Settings = append(in.Settings, Setting{Key: "account", Origin: "/etc/tp/site.toml:5"})
			}
		}
		p, err := Resolve(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Fixed.Request.Components[0].Account; got != c.want {
			t.Errorf("%s: account %q, want %q", name, got, c.want)
		}
	}
}

// GPUs that Slurm does not count do not make a job that never fits.
func TestDevicesWithoutGRESAreNotCounted(t *testing.T) {
	in := input("h200:8")
	for i := range in.Snapshot.Nodes {
		in.Snapshot.Nodes[i].GRES = nil
	}
	in.Registry = wanting{change: func(s *site.Series) { s.GRES, s.Ways.GPURequest = "", site.NotRequested }}
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.Observed.Verdicts {
		if v.Level == "block" {
			t.Errorf("%+v", v)
		}
	}
	if p.GPUs() != 8 {
		t.Errorf("%d GPUs", p.GPUs())
	}
}
