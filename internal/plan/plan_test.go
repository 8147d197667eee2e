package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

type registry struct{}

func (registry) Resolve(p spec.Profile) (int, int, site.Series, error) {
	s := site.Series{Name: p.Series, GRES: "gpu:" + p.Series, Devices: 8, CPUs: 64, Memory: 800000, Partitions: []string{p.Series}}
	switch {
	case p.Series == "cpu":
		return p.Devices, 0, site.Series{Name: "cpu", CPUs: 64, Memory: 200000, Partitions: []string{"cpu"}}, nil
	case p.Nodes > 0:
		return p.Nodes, p.PerNode, s, nil
	case p.Devices <= 8:
		return 1, p.Devices, s, nil
	}
	return p.Devices / 8, 8, s, nil
}

func input(profiles ...string) Input {
	s := &spec.Spec{
		Experiment: "hello", Name: "hello", Recipe: spec.Recipe{Name: "custom/custom"}, Framework: spec.Framework{Kind: "custom"},
		Roles: []spec.Role{{Name: "train", Driver: true, Body: "true"}, {Name: "rollout", Body: "true"}},
		Job:   spec.Job{Time: spec.PerRole{"": "90m"}},
	}
	for _, text := range profiles {
		p, err := spec.ParseProfile(text)
		if err != nil {
			panic(err)
		}
		s.Profiles = append(s.Profiles, p)
	}
	snap := &slurm.Snapshot{Info: slurm.Info{Cluster: "lab", Release: "24.11.5"}}
	for _, series := range []string{"h200", "h100", "cpu"} {
		for i := range 4 {
			n := slurm.Node{Name: fmt.Sprint(series, i), State: "IDLE", Partitions: []string{series}, CPUs: 64, Memory: 800000}
			if series != "cpu" {
				n.GRES = []slurm.GRES{{Name: "gpu", Type: series, Count: 8}}
			}
			snap.Nodes = append(snap.Nodes, n)
		}
		snap.Partitions = append(snap.Partitions, slurm.Partition{Name: series, State: "UP", MaxTime: 600, DefaultTime: 60})
	}
	return Input{
		Spec: s, Registry: registry{}, Snapshot: snap, Fleet: "lab", User: "ann", RunID: "run-0123456789ab", RunDir: "/runs/ann/hello/run-0123456789ab",
		Env: []spec.EnvVar{{Name: "PATH", Value: "/bin"}, {Name: "HOME", Value: "/home/ann"}}, Now: time.Unix(1750000000, 0),
	}
}

func TestTwoPoolsBecomeTwoComponents(t *testing.T) {
	p, err := Resolve(input("rollout=h100:4", "train=h200:16"))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Fixed.Request.Components
	if len(c) != 2 || c[0].Partition != "h200" || c[0].Nodes != 2 || c[1].Partition != "h100" {
		t.Fatalf("components %+v; component 0 must be the driver's pool", c)
	}
	if c[1].CPUsPerTask != 32 || c[1].Memory != 400000 || c[0].Memory != 800000 || c[0].TimeLimit != 90 {
		t.Errorf("half the devices must get half of CPUs and memory: %+v", c[1])
	}
	if p.GPUs() != 20 || p.Fixed.Request.Name != "hello.run-0123456789ab" {
		t.Errorf("%d GPUs, name %q", p.GPUs(), p.Fixed.Request.Name)
	}
}

func TestEqualPoolsShareAComponent(t *testing.T) {
	p, err := Resolve(input("train=h200:8", "rollout=h200:8"))
	if err != nil {
		t.Fatal(err)
	}
	c, pools := p.Fixed.Request.Components, p.Fixed.Pools
	if len(c) != 1 || c[0].Nodes != 2 || pools[1].Component != 0 || pools[1].NodeOffset != 1 {
		t.Fatalf("components %+v, pools %+v", c, pools)
	}
	if !strings.Contains(p.Fixed.Request.Script, "--relative=1") || strings.Contains(p.Fixed.Request.Script, "#SBATCH hetjob") {
		t.Error("the second pool must take the second node of a plain job")
	}
}

func TestRolesSharingAPool(t *testing.T) {
	p, err := Resolve(input("h200:8"))
	if err != nil {
		t.Fatal(err)
	}
	if pools := p.Fixed.Pools; len(pools) != 1 || len(pools[0].Roles) != 2 {
		t.Fatalf("pools %+v", pools)
	}
	if n := strings.Count(p.Fixed.Request.Script, "tp_start "); n < 2 {
		t.Errorf("%d steps for two roles", n)
	}
}

func TestDigestCoversTheFixedPartOnly(t *testing.T) {
	base, _ := Resolve(input("h200:8"))
	later := input("h200:8")
	later.Now = later.Now.Add(time.Minute)
	later.Snapshot.Nodes[0].State = "DOWN"
	later.NewBytes, later.Transport = 7, "elsewhere"
	same, _ := Resolve(later)
	if base.Digest != same.Digest {
		t.Error("what was observed must not change the digest")
	}
	for name, change := range map[string]func(*Input){
		"run id":     func(in *Input) { in.RunID = "run-ffffffffffff" },
		"bundle":     func(in *Input) { in.Bundle.Digest = "x" },
		"time":       func(in *Input) { in.Spec.Job.Time = spec.PerRole{"": "91m"} },
		"env":        func(in *Input) { in.Env[0].Value = "/usr/bin" },
		"parameters": func(in *Input) { in.Spec.Params = []spec.Param{{Name: "lr", Value: "1e-5"}} },
	} {
		in := input("h200:8")
		change(&in)
		if other, _ := Resolve(in); other.Digest == base.Digest {
			t.Errorf("a change of %s must change the digest", name)
		}
	}
}

func TestNoTimeLimitIsSaid(t *testing.T) {
	in := input("h200:8")
	in.Spec.Job.Time = nil
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	if p.Fixed.Pools[0].TimeMinutes != 60 || len(p.Observed.Warnings) != 1 || !strings.Contains(p.Observed.Warnings[0], "0-01:00:00") {
		t.Errorf("limit %d, warnings %q", p.Fixed.Pools[0].TimeMinutes, p.Observed.Warnings)
	}
	in.Snapshot.Partitions[0].DefaultTime, in.Snapshot.Partitions[0].MaxTime = 0, slurm.Unlimited
	if _, err := Resolve(in); err == nil {
		t.Error("no limit anywhere must be an error")
	}
}

func TestAnEnvironmentThatNothingCanStartWithIsRefused(t *testing.T) {
	resolve := func(n, size int) error {
		in := input("cpu:1")
		for i := range n {
			name := fmt.Sprintf("V%03d", i)
			in.Spec.Env = append(in.Spec.Env, spec.EnvVar{Name: name, Value: strings.Repeat("x", size-len(name)-1)})
		}
		_, err := Resolve(in)
		return err
	}
	if err := resolve(1, maxVariable); err != nil {
		t.Errorf("the largest variable: %v", err)
	}
	if err := resolve(1, maxVariable+1); fault.CodeOf(err) != fault.Usage {
		t.Errorf("one byte more: %v", err)
	}
	if err := resolve(11, 100_000); fault.CodeOf(err) != fault.Usage {
		t.Errorf("many large ones: %v", err)
	}
}

func TestAKeptPlanThatIsDamagedIsRefused(t *testing.T) {
	b := Book{Dir: t.TempDir()}
	digest := strings.Repeat("a", 64)
	for _, text := range []string{"", "{", "{}", `{"plan":{}}`, `{"plan":{"digest":"` + strings.Repeat("b", 64) + `"}}`} {
		if err := os.WriteFile(filepath.Join(b.Dir, digest+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Load(digest[:12]); fault.CodeOf(err) != fault.Changed {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestConfirm(t *testing.T) {
	in := input("h200:8")
	p, _ := Resolve(in)
	if _, err := Confirm(p, in.Now.Add(time.Minute)); err != nil {
		t.Errorf("a good plan: %v", err)
	}
	code := func(p *Plan, now time.Time) fault.Code {
		_, err := Confirm(p, now)
		var f *fault.Error
		errors.As(err, &f)
		if f == nil {
			return fault.OK
		}
		return f.Code
	}
	if c := code(p, in.Now.Add(31*time.Minute)); c != fault.Changed {
		t.Errorf("an expired plan gives code %d", c)
	}
	blocked := *p
	blocked.Observed.Verdicts = []gates.Verdict{{Gate: "capacity", Code: "capacity.neverFits", Level: gates.Block}}
	if c := code(&blocked, in.Now); c != fault.Blocked {
		t.Errorf("a blocked plan gives code %d", c)
	}
	forged := *p
	forged.Fixed.Fleet = "other"
	if c := code(&forged, in.Now); c != fault.Changed {
		t.Errorf("a forged plan gives code %d", c)
	}
}

// What no transport could send is refused before any is asked, also offline.
func TestMoreComponentsThanSlurmTakesAreRefused(t *testing.T) {
	for n, want := range map[int]fault.Code{slurm.MaxComponents: fault.OK, slurm.MaxComponents + 1: fault.Usage} {
		var profiles []string
		for i := range n {
			profiles = append(profiles, fmt.Sprintf("r%d=h200:1", i))
		}
		in := input(profiles...)
		in.Snapshot = nil
		in.Spec.Roles = nil
		for i := range n {
			role := fmt.Sprintf("r%d", i)
			in.Spec.Roles = append(in.Spec.Roles, spec.Role{Name: role, Driver: i == 0, Body: "true"})
			in.Spec.Job.Time[role] = fmt.Sprintf("%dm", i+1)
		}
		if _, err := Resolve(in); fault.CodeOf(err) != want {
			t.Errorf("%d components: %v", n, err)
		}
	}
}

// Every directive says the pool it is of and who set it.
func TestOriginOfDirectives(t *testing.T) {
	in := input("train=h200:16", "rollout=h100:4")
	in.Spec.Job.QOS = spec.PerRole{"rollout": "low"}
	in.Settings = []Setting{{"time", "90m", "job.toml:4"}, {"qos.rollout", "low", "--qos"}}
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"0 job-name": "the experiment's name and the run's id", "0 time": "train pool · job.toml:4", "1 time": "rollout pool · job.toml:4",
		"1 qos": "rollout pool · --qos", "0 nodes": "train pool · profile train=h200:16", "1 gres": "rollout pool · profile rollout=h100:4",
		"0 partition": "train pool · series h200", "1 mem": "rollout pool · series h100: its share of a node", "0 no-requeue": "default",
	}
	for i, options := range p.Fixed.Request.Options() {
		for _, o := range options {
			got := p.Origin(i, o)
			if got == "" || strings.HasSuffix(got, " · ") || strings.HasSuffix(got, "site") {
				t.Errorf("%d %s: %q", i, o.Name, got)
			}
			key := fmt.Sprint(i, " ", o.Name)
			if w, ok := want[key]; ok && w != got {
				t.Errorf("%s: %q, wanted %q", key, got, w)
			}
			delete(want, key)
		}
	}
	if len(want) > 0 {
		t.Errorf("no directive for %v", want)
	}
}

func TestPoolThatEndsBeforeTheDriver(t *testing.T) {
	for name, c := range map[string]struct {
		time spec.PerRole
		want string
	}{
		"shorter":             {spec.PerRole{"train": "4m", "rollout": "1m"}, "pool rollout ends before the driver: its time limit is 0-00:01:00, that of pool train 0-00:04:00"},
		"the driver for ever": {spec.PerRole{"train": "UNLIMITED", "rollout": "1m"}, "that of pool train UNLIMITED"},
		"longer":              {spec.PerRole{"train": "4m", "rollout": "5m"}, ""},
		"for ever":            {spec.PerRole{"train": "4m", "rollout": "UNLIMITED"}, ""},
		"alike":               {spec.PerRole{"": "4m"}, ""},
	} {
		in := input("rollout=h100:4", "train=h200:8")
		in.Spec.Job.Time = c.time
		p, err := Resolve(in)
		if err != nil {
			t.Fatal(name, err)
		}
		text := strings.Join(p.Observed.Warnings, "\n")
		if strings.Contains(text, "before the driver") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: warnings %q, wanted %q", name, text, c.want)
		}
	}
}

func TestWholeNodesAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		profiles []string
		job      spec.Job
		want     string
	}{
		"a CPU pool":    {[]string{"cpu:1"}, spec.Job{}, "pool train takes whole nodes of series cpu, 64 CPUs and 200000M each; for less: --cpus-per-node N --mem SIZE"},
		"beside others": {[]string{"train=h200:8", "rollout=cpu:1"}, spec.Job{}, "--cpus-per-node rollout=N --mem rollout=SIZE"},
		"told how many": {[]string{"cpu:1"}, spec.Job{CPUsPerNode: spec.PerRole{"": "4"}}, ""},
		"GPUs":          {[]string{"h200:4"}, spec.Job{}, ""},
	} {
		in := input(c.profiles...)
		c.job.Time = in.Spec.Job.Time
		in.Spec.Job = c.job
		p, err := Resolve(in)
		if err != nil {
			t.Fatal(name, err)
		}
		if text := strings.Join(p.Observed.Notes, "\n"); (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: notes %q, wanted %q", name, text, c.want)
		}
	}
}
