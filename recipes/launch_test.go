package recipes

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

// testManifests use every launcher and every way that roles can go with it.
var testManifests = map[string]string{
	"t/accelerate": `launcher = "accelerate"
config = "yaml-flat"
roles = ["train"]
[params.procs_per_node]
type = "int"
doc = "processes"
[params.accelerate_config]
type = "str"
doc = "configuration"`,
	"t/mpi": `launcher = "mpi"
config = "none"
roles = ["train"]
[params.procs_per_node]
type = "int"
doc = "processes"
[params.mpi]
type = "str"
doc = "plugin of srun"`,
	"t/ray": `launcher = "ray"
config = "none"
roles = ["train", "rollout", "reward"]
[params.start_timeout]
type = "int"
doc = "seconds"`,
	"t/domains": `launcher = "ray"
config = "none"
pinning = "nvlink-domains"
roles = ["train", "rollout"]`,
	"t/pins": `launcher = "ray"
config = "none"
pinning = "placement-groups"
pins = {global_pool = "train", rollout_pool = "rollout", rollout_pool_reward = "reward", elsewhere = "critic"}
roles = ["train", "rollout", "reward"]`,
	"t/served": `launcher = "torchrun"
config = "none"
roles = ["train", "rollout"]
[server]
role = "rollout"
command = ["trl", "vllm-serve", "--model={model}", "--revision={revision}", "--host=$TP_SERVER_HOST", "--port=$TP_SERVER_PORT"]
health = "/health/"
single = true
[params.model]
type = "str"
default = "it's $TP_MODEL"
doc = "model"
[params.revision]
type = "str"
doc = "revision"
[params.start_timeout]
type = "int"
doc = "seconds"`,
	"t/scripts": `launcher = "plain"
config = "none"
roles = ["train", "rollout"]
[server]
role = "rollout"
health = "/health"`,
}

func testCatalog(t *testing.T) *Catalog {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range testManifests {
		entry := "train.py"
		if name == "t/scripts" {
			entry = "train.sh"
		}
		before, after, _ := strings.Cut(text, "\n[")
		if after != "" {
			after = "[" + after
		}
		tree["catalog/"+name+"/recipe.toml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"name = %q\nversion = \"1\"\ntitle = \"t\"\nsummary = \"s\"\ndriver = \"train\"\n%s\n[framework]\nkind = \"t\"\nversions = [\"1\"]\ndefault = \"1\"\n[entrypoint]\nkind = \"experiment\"\nvalue = %q\n%s\n",
			name, before, entry, after)}
		tree["catalog/"+name+"/template/"+entry] = &fstest.MapFile{Data: []byte("#\n")}
	}
	c, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// launched composes an experiment of a test recipe.
func launched(t *testing.T, recipe string, files map[string]string, o Options) (*lab.Experiment, *spec.Spec, *Composition) {
	t.Helper()
	l, e := newLab(t, "custom/custom", "x", nil)
	o.Catalog = testCatalog(t)
	r, err := o.Catalog.Get(recipe)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := NewLock(r, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteLock(e, lock, "test"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"train.py", "config.yaml"} {
		if _, ok := files[name]; !ok {
			files[name] = "lr: 1\n"
		}
	}
	for name, text := range files {
		if err := os.WriteFile(e.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, c := compose(t, l, e, o)
	for _, role := range s.Roles {
		lint(t, recipe+" "+role.Name, role.Body)
	}
	return e, s, c
}

// executed runs a role's body with programs that print their names, arguments
// and some variables.
func executed(t *testing.T, e *lab.Experiment, body string, env ...string) (string, int) {
	t.Helper()
	bin, runDir := t.TempDir(), t.TempDir()
	for _, name := range []string{"accelerate", "trl"} {
		fake := fmt.Sprintf("#!/bin/bash\nprintf '%s'\nprintf '|%%s' \"$@\"\n", name)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", body)
	cmd.Dir = e.Dir
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "TP_OUT_DIR=" + runDir + "/out", "TP_RUN_DIR=" + runDir, "TP_NNODES=2", "TP_NODE_RANK=1", "TP_LOG_SUFFIX=",
		"TP_GPUS_PER_NODE=4", "TP_ROLE=train", "TP_POOL=train", "TP_ROLE_TRAIN_IP=10.0.0.1", "TP_ROLE_TRAIN_PORT=12000"}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.ReplaceAll(out.String(), runDir, "RUN"), cmd.ProcessState.ExitCode() + boolInt(err != nil && cmd.ProcessState.Success())
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAccelerateCommandLine(t *testing.T) {
	e, s, _ := launched(t, "t/accelerate", map[string]string{}, Options{Set: []string{"lr=2"}})
	got, _ := executed(t, e, s.Roles[0].Body+"\n")
	want := `accelerate|launch|--config_file=RUN/accelerate.1.yaml|--num_machines=2|--num_processes=8|--machine_rank=1|--rdzv_backend=static|--same_network|` +
		`--main_process_ip=10.0.0.1|--main_process_port=12000|train.py|--config|config.yaml|--output-dir|RUN/out|--overrides-json|{"lr": 2}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e, s, _ = launched(t, "t/accelerate", map[string]string{}, Options{Set: []string{"procs_per_node=1", "accelerate_config=a b.yaml"}})
	got, _ = executed(t, e, s.Roles[0].Body)
	if !strings.Contains(got, "--config_file=a b.yaml|") || !strings.Contains(got, "--num_processes=2|") {
		t.Error(got)
	}
}

func TestMPIRole(t *testing.T) {
	_, s, _ := launched(t, "t/mpi", map[string]string{}, Options{})
	if r := s.Roles[0]; *r.MPI != (spec.MPI{Plugin: "pmix"}) || !strings.Contains(r.Body, "tp_command=(python3 'train.py')") && !strings.Contains(r.Body, "tp_command=(python3 train.py)") {
		t.Errorf("%+v\n%s", r.MPI, r.Body)
	}
	_, s, _ = launched(t, "t/mpi", map[string]string{}, Options{Set: []string{"procs_per_node=3", "mpi=pmi2"}})
	if r := s.Roles[0]; *r.MPI != (spec.MPI{Plugin: "pmi2", Tasks: 3}) {
		t.Errorf("%+v", r.MPI)
	}
}

func TestServerCommandLine(t *testing.T) {
	e, s, _ := launched(t, "t/served", map[string]string{}, Options{Profiles: []string{"train=h200:8", "rollout=h100:4"}})
	body := s.Roles[1].Body
	where := []string{"TP_ROLE=rollout", "TP_POOL=rollout", "TP_NNODES=1", "TP_NODE_RANK=0", "TP_ROLE_ROLLOUT_PORT=13000", "TP_ROLE_ROLLOUT_ADDRS=10.0.0.7"}
	got, _ := executed(t, e, body, where...)
	if want := `trl|vllm-serve|--model=it's $TP_MODEL|--host=10.0.0.7|--port=13000`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got, code := executed(t, e, body, append(where, "TP_NNODES=2")...)
	if want := "tp: rollout is one server on one node, and its pool rollout has 2\n"; got != want || code != 64 {
		t.Errorf("exit code %d: %s", code, got)
	}
}

// The driver waits for its servers, and says which of them is not ready.
func TestGate(t *testing.T) {
	e, s, _ := launched(t, "t/scripts", map[string]string{"train.sh": "echo $TP_SERVERS from $TP_SERVER_HOST $TP_SERVER_PORT", "rollout.sh": ""},
		Options{Profiles: []string{"train=h200:8", "rollout=h100:2x1"}})
	one, two := server(t), server(t)
	if one.port > two.port {
		one, two = two, one
	}
	body := s.Roles[0].Body
	body = strings.Replace(body, "tp_timeout=900", "tp_timeout=3", 1)
	env := []string{fmt.Sprintf("TP_ROLE_ROLLOUT_PORT=%d", one.port), "TP_ROLE_ROLLOUT_ADDRS=127.0.0.1 127.0.0.1", "http_proxy=http://127.0.0.1:1"}
	// Two servers on neighbouring ports are not to be had for sure: the second address is asked at port+1.
	body = strings.Replace(body, "$((tp_server_port + tp_rank))", fmt.Sprintf("$((tp_server_port + tp_rank * %d))", two.port-one.port), 1)
	one.ready()
	got, code := executed(t, e, body, env...)
	want := fmt.Sprintf("tp: rollout at http://127.0.0.1:%d is not ready after 3 s: /health answers HTTP Error 503", two.port)
	if code != 1 || !strings.Contains(got, want) || !strings.Contains(got, fmt.Sprintf("tp: rollout at http://127.0.0.1:%d is ready after 0 s", one.port)) {
		t.Errorf("exit code %d: %s", code, got)
	}
	two.ready()
	got, code = executed(t, e, body, env...)
	if want := fmt.Sprintf("http://127.0.0.1:%d http://127.0.0.1:%d from 127.0.0.1 %d\n", one.port, two.port, one.port); code != 0 || !strings.HasSuffix(got, want) {
		t.Errorf("exit code %d: %s", code, got)
	}
}

func TestRayRoles(t *testing.T) {
	_, s, c := launched(t, "t/ray", map[string]string{}, Options{Profiles: []string{"rollout,reward=h100:2x4", "train=h200:16"}})
	var got []string
	for _, r := range s.Roles {
		got = append(got, fmt.Sprintf("%s %v %s %s %v", r.Name, r.Driver, r.Beside, r.Nodes, r.Body != ""))
	}
	want := []string{"train true  first true", "rollout false   false", "reward false   false", "ray-train false train rest true", "ray-rollout false rollout  true"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "places its workers by free GPUs and knows no pools: with train, rollout") {
		t.Errorf("%q", c.Warnings)
	}
	if _, _, c = launched(t, "t/ray", map[string]string{}, Options{}); len(c.Warnings) != 0 {
		t.Errorf("one pool: %q", c.Warnings)
	}
	_, s, c = launched(t, "t/domains", map[string]string{}, Options{Profiles: []string{"rollout=h100:2x8", "train=h200:8"}})
	if len(c.Warnings) != 1 || !strings.Contains(s.Roles[0].Body, `tp_resources=', "nvlink_domain_train": 1, "topo_rank": 1'`) || !strings.Contains(s.Roles[3].Body, `tp_resources=', "nvlink_domain_rollout": 1, "topo_rank": 2'`) {
		t.Errorf("%q\n%s", c.Warnings, s.Roles[3].Body)
	}
}

func TestLauncherErrors(t *testing.T) {
	base := "name = 't/t'\nversion = '1'\ntitle = 't'\nsummary = 's'\nconfig = 'none'\ndriver = 'train'\nroles = ['train', 'rollout']\n" +
		"framework = {kind = 't', versions = ['1'], default = '1'}\nentrypoint = {kind = 'experiment', value = 'train.py'}\n"
	for text, want := range map[string]string{
		"launcher = 'ray'\nserver = {role = 'rollout', health = '/'}":              "the launcher ray starts no servers",
		"launcher = 'torchrun'\nserver = {role = 'train', health = '/'}":           `server.role: "train" is none of the roles that serve the driver`,
		"launcher = 'torchrun'\nserver = {role = 'rollout', health = 'h'}":         `server.health: "h" is no path`,
		"launcher = 'torchrun'\npinning = 'nvlink-domains'":                        "only the launcher ray pins roles",
		"launcher = 'ray'\npinning = 'placement-groups'":                           `pins: belongs to pinning = "placement-groups"`,
		"launcher = 'ray'\npins = {a = 'train'}":                                   `pins: belongs to pinning = "placement-groups"`,
		"launcher = 'ray'\npinning = 'placement-groups'\npins = {'a b' = 'train'}": `expected the beginning of a placement group's name`,
		"launcher = 'ray'\npinning = 'x'":                                          `pinning: "x" is not known; there are nvlink-domains, placement-groups and resources`,
		"launcher = 'ray'\nserver = {role = 'rollout', health = '/', x = 1}":       "unknown key",
	} {
		_, err := ParseManifest("r.toml", []byte(base+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got  %v\n want %s", text, err, want)
		}
	}
}

// Placement groups get the resource of their role's pool, by name, however
// Python was told to start; a sitecustomize of the site is still read.
func TestPinsOfPlacementGroups(t *testing.T) {
	e, s, c := launched(t, "t/pins", map[string]string{}, Options{Profiles: []string{"train=h200:8", "rollout,reward=h100:8"}})
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "a shim in Python keeps its placement groups elsewhere, global_pool, rollout_pool, rollout_pool_reward on theirs") {
		t.Errorf("%q", c.Warnings)
	}
	site := t.TempDir()
	for name, text := range map[string]string{
		"sitecustomize.py":            "import builtins\nbuiltins.site_was_here = True\n",
		"ray/__init__.py":             "",
		"ray/util/__init__.py":        "from ray.util.placement_group import placement_group\n",
		"ray/util/placement_group.py": "def placement_group(bundles, strategy='PACK', name='', lifetime=None, _soft=None, bundle_label_selector=None):\n    return name, bundles, strategy, lifetime\n",
		"ask.py": `import ray.util
from ray.util.placement_group import placement_group
b = [{"GPU": 1}]
for args, kwargs in [((), dict(bundles=b, strategy="STRICT_PACK", name="global_pool_verl_0", lifetime="detached")), ((b, "PACK", "rollout_pool_3"), {}), ((b,), dict(name="rollout_pool_reward_0")), ((b,), {})]:
    print(*placement_group(*args, **kwargs), ray.util.placement_group is placement_group or ray.util.placement_group.placement_group is placement_group, site_was_here)
`,
	} {
		path := filepath.Join(site, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	head, _, ok := strings.Cut(s.Roles[0].Body, "# ---- the head, and the driver")
	pins, after, _ := strings.Cut(head, "tp_driver=")
	_, shim, found := strings.Cut(after, "mkdir -p \"$TP_RUN_DIR/pins\"")
	if !ok || !found {
		t.Fatal(s.Roles[0].Body)
	}
	pins = pins[strings.Index(pins, "export TP_RAY_PINS"):]
	got, code := executed(t, e, pins+"mkdir -p \"$TP_RUN_DIR/pins\""+shim+"python3 '"+site+"/ask.py'", "PYTHONPATH="+site)
	want := "global_pool_verl_0 [{'GPU': 1, 'tp_pool_train': 0.001}] STRICT_PACK detached True True\n" +
		"rollout_pool_3 [{'GPU': 1, 'tp_pool_rollout': 0.001}] PACK None True True\n" +
		"rollout_pool_reward_0 [{'GPU': 1, 'tp_pool_rollout': 0.001}] PACK None True True\n" +
		" [{'GPU': 1}] PACK None True True\n"
	if got != want || code != 0 {
		t.Errorf("exit code %d\ngot  %s\nwant %s", code, got, want)
	}
	if !strings.Contains(s.Roles[4].Body, "export TP_RAY_PINS='global_pool=train rollout_pool=rollout rollout_pool_reward=rollout'") || strings.Contains(s.Roles[4].Body, "sitecustomize") {
		t.Errorf("a node:\n%s", s.Roles[4].Body)
	}
}
