package recipes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

const flat = "epochs: 10\nlr: 1e-3\nname: x\nflag: true\nnothing:\nlayers: [1, 2]\nopt:\n  beta: 0.9\n"

func TestComposeErrors(t *testing.T) {
	one := []string{"h200:8"}
	for _, c := range []struct {
		recipe string
		files  map[string]string
		o      Options
		want   string // text, or text and hint
	}{
		{"pytorch/ddp", nil, Options{Set: []string{"lrr=1"}}, `-s lrr: no such parameter; did you mean "lr"?`},
		{"pytorch/ddp", nil, Options{Set: []string{"opt.bta=1"}}, `-s opt.bta: no such parameter; did you mean "opt.beta"?`},
		{"pytorch/ddp", nil, Options{Set: []string{"opt=1"}}, `-s opt: holds several values; set one of them, such as opt.beta`},
		{"pytorch/ddp", nil, Options{Set: []string{"epochs=1.5"}}, `-s epochs: "1.5" is no whole number, but config.yaml:1 has one (10); write 10.0 there if fractions are meant`},
		{"pytorch/ddp", nil, Options{Set: []string{"epochs=08"}}, `-s epochs: "08" is no whole number; write 8; config.yaml:1 has the int 10`},
		{"pytorch/ddp", nil, Options{Set: []string{"flag=yes"}}, `-s flag: "yes" is neither true nor false; config.yaml:4 has the bool true`},
		{"pytorch/ddp", nil, Options{Set: []string{"lr=.5"}}, `-s lr: ".5" is no number; write 0.5; config.yaml:2 has the float 1e-3`},
		{"pytorch/ddp", nil, Options{Set: []string{"layers=3"}}, `-s layers: "3" is no JSON list like the one at config.yaml:6: [1,2]`},
		{"pytorch/ddp", nil, Options{Set: []string{"procs_per_node=0"}}, `-s procs_per_node: 0 is under 1`},
		{"pytorch/ddp", nil, Options{Set: []string{"lr"}}, `-s "lr": expected KEY=VALUE`},
		{"pytorch/ddp", nil, Options{Set: []string{"lr =1"}}, `-s "lr =1": the key is empty or has blanks around it`},
		{"pytorch/ddp", nil, Options{Set: []string{"lr=1", "lr=2"}}, `-s lr is given twice`},
		{"custom/custom", nil, Options{Set: []string{"lr=1"}}, `-s lr: custom/custom has no parameters; a script gets its values by --env NAME=VALUE`},
		{"pytorch/ddp", map[string]string{"job.toml": "[params]\nepohcs = 3\n"}, Options{}, `job.toml:2:1: params.epohcs: no such parameter; did you mean "epochs"?`},
		{"pytorch/ddp", map[string]string{"job.toml": "roles = ['reward']\n"}, Options{}, `job.toml:1:1: roles: pytorch/ddp has the roles train and takes no others`},
		{"pytorch/ddp", map[string]string{"config.yaml": "a: 1\nseed: 010\n"}, Options{}, `config.yaml:2:7: seed: 010 is an octal number to some YAML readers and a decimal to others`},
		{"pytorch/ddp", map[string]string{"config.yaml": "a: 1\na: 2\n"}, Options{}, `config.yaml:2:1: a: the key is there twice`},
		{"pytorch/ddp", map[string]string{"config.yaml": "- 1\n"}, Options{}, `config.yaml:1:1: expected keys with values`},
		{"custom/custom", nil, Options{Profiles: []string{"h200", "train=h100"}}, `--profile "h200": with several profiles each says which roles it is for`},
		{"custom/custom", nil, Options{Profiles: []string{"trian=h200"}}, "--profile \"trian=h200\": custom/custom has no role \"trian\"; it has train\nhint: did you mean \"train\"?"},
		{"custom/custom", nil, Options{Profiles: []string{"train=h200", "train=h100"}}, `--profile "train=h100": the role "train" has a pool already, "train=h200"`},
		{"custom/custom", nil, Options{Profiles: []string{"train,train=h200"}}, `the role "train" has a pool already`},
		{"custom/custom", map[string]string{"job.toml": "roles = ['reward']\n", "reward.sh": ""}, Options{Profiles: []string{"train=h200"}}, `the role "reward" has no pool`},
		{"custom/custom", map[string]string{"job.toml": "roles = ['reward']\n"}, Options{}, `experiments/x/reward.sh is missing: it is what custom/custom runs for the role "reward"`},
		{"custom/custom", map[string]string{"job.toml": "roles = ['a-b', 'a_b']\n"}, Options{}, `job.toml:1:1: roles: "a_b" and "a-b" are the same role, or have the same variable names`},
		{"custom/custom", map[string]string{"job.toml": "roles = ['../x']\n"}, Options{}, `job.toml:1:1: roles: "../x" is no role name`},
		{"custom/custom", map[string]string{"job.toml": "exclude = ['*.sh']\n"}, Options{}, `exclude "*.sh" leaves out experiments/x/train.sh`},
		{"custom/custom", map[string]string{"job.toml": "time = '1:30'\n"}, Options{}, `job.toml:1:1: time: "1:30": ambiguous: write 1h30m for hours and minutes, or 1m30s`},
		{"custom/custom", map[string]string{"job.toml": "[time]\nactor = '1h'\n"}, Options{}, `job.toml:2: time: custom/custom has no role "actor"; it has train`},
		{"custom/custom", nil, Options{Time: []string{"0"}}, `--time: "0": 0 would mean no limit to Slurm; write UNLIMITED if that is meant`},
		{"custom/custom", nil, Options{Time: []string{"actor=1h"}}, `--time "actor=1h": custom/custom has no role "actor"; it has train`},
		{"custom/custom", nil, Options{Time: []string{"1h", "2h"}}, `--time is given twice for the same role: "1h" and "2h"`},
		{"custom/custom", nil, Options{Memory: []string{"200"}}, `--mem: "200": the unit is missing: write 200M (what sbatch reads) or 200G`},
		{"custom/custom", nil, Options{CPUsPerNode: []string{"0"}}, `--cpus-per-node: "0" is no count of CPUs`},
		{"custom/custom", nil, Options{Partition: []string{""}}, `--partition: the value is empty`},
		{"custom/custom", nil, Options{Env: []string{"A-B=1"}}, `--env: "A-B" is no variable name`},
		{"custom/custom", nil, Options{Env: []string{"1X=1"}}, `--env: "1X" is no variable name`},
		{"custom/custom", nil, Options{Env: []string{"TP_X=1"}}, `--env: TP_X belongs to tp or to Slurm`},
		{"custom/custom", nil, Options{Env: []string{"SLURM_JOB_ID=1"}}, `--env: SLURM_JOB_ID belongs to tp or to Slurm`},
		{"custom/custom", nil, Options{Env: []string{"IFS=,"}}, `--env: IFS belongs to bash and cannot be set`},
		{"custom/custom", nil, Options{Env: []string{"NOT_SET_ANYWHERE"}}, `--env: NOT_SET_ANYWHERE has no value here`},
		{"custom/custom", nil, Options{Env: []string{"A=1", "A=2"}}, `--env: A is given twice`},
		{"custom/custom", nil, Options{Env: []string{"A=x\x00y"}}, `--env: the value of A has a NUL character`},
		{"custom/custom", map[string]string{"job.toml": "[env]\nTP_X = '1'\n"}, Options{}, `job.toml:2:1: env.TP_X: TP_X belongs to tp or to Slurm`},
		{"custom/custom", nil, Options{Name: "a\nb"}, `--name "a\nb": the name has the control character`},
	} {
		files := map[string]string{}
		if c.recipe == "pytorch/ddp" {
			files["config.yaml"] = flat
		}
		for name, text := range c.files {
			files[name] = text
		}
		l, e := newLab(t, c.recipe, "x", files)
		if len(c.o.Profiles) == 0 {
			c.o.Profiles = one
		}
		_, _, err := Compose(l, e, c.o)
		text := ""
		if err != nil {
			text = err.Error()
		}
		var f *fault.Error
		if errors.As(err, &f) && f.Hint != "" {
			text += "\nhint: " + f.Hint
		}
		if f == nil || f.Code != fault.Usage || !strings.Contains(text, c.want) {
			t.Errorf("%s %v %+v:\n got  %s\n want %s", c.recipe, c.files, c.o, text, c.want)
		}
	}
}

func TestNoProfile(t *testing.T) {
	l, e := newLab(t, "custom/custom", "x", nil)
	if _, _, err := Compose(l, e, Options{}); err == nil || !strings.Contains(err.Error(), "no profile") {
		t.Errorf("got %v", err)
	}
}

func layerOf(t *testing.T, name, text string) *lab.JobFile {
	t.Helper()
	j, err := lab.ParseJob(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestPrecedenceAndOrigins(t *testing.T) {
	l, e := newLab(t, "pytorch/ddp", "x", map[string]string{
		"config.yaml": flat,
		"job.toml":    "description = 'd'\nprofile = ['h200:8']\nrequeue = true\n[time]\ntrain = '8h'\n[env]\nA = 'job'\nB = 'job'\n[params]\nlr = 2e-5\nopt.beta = 0.5\n",
		"tp.toml":     "name = 'proj'\n[defaults]\ntime = '1h'\naccount = 'lab'\nenv.C = 'lab'\nparams.lr = 7\nparams.elsewhere = 1\n",
	})
	o := Options{
		Set: []string{"epochs=3"}, Env: []string{"A=flag", "HOME"}, Memory: []string{"train=200G"},
		LookupEnv: func(name string) (string, bool) { return "/home/me", name == "HOME" },
		Defaults:  []*lab.JobFile{layerOf(t, "user.toml", "account = 'me'\nqos = 'q'\nimage = 'i'\n"), layerOf(t, "site.toml", "qos = 'site'\nenv.C = 'site'\nenv.D = 8\n")},
	}
	s, c, err := Compose(l, e, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{"profile", "h200:8", "job.toml:2"}, {"project", "proj", "tp.toml"}, {"description", "d", "job.toml:1"}, {"image", "i", "user.toml:3"},
		{"requeue", "true", "job.toml:3"}, {"time", "1h", "tp.toml:3"}, {"time.train", "8h", "job.toml:5"}, {"mem.train", "200G", "--mem"},
		{"account", "lab", "tp.toml:4"}, {"qos", "q", "user.toml:2"},
		{"env.A", "flag", "--env"}, {"env.B", "job", "job.toml:8"}, {"env.C", "lab", "tp.toml:5"}, {"env.D", "8", "site.toml:3"}, {"env.HOME", "/home/me", "caller, by --env"},
		{"params.epochs", "3", "-s"}, {"params.lr", "2e-5", "job.toml:10"}, {"params.name", "x", "config.yaml:3"}, {"params.flag", "true", "config.yaml:4"},
		{"params.nothing", "", "config.yaml:5"}, {"params.layers", "[1,2]", "config.yaml:6"}, {"params.opt.beta", "0.5", "job.toml:11"},
	}
	if !slices.Equal(c.Settings, want) {
		t.Errorf("settings\n got  %q\n want %q", c.Settings, want)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "tp.toml:7: params.elsewhere is no parameter") {
		t.Errorf("warnings %q", c.Warnings)
	}
	if s.Job.Time.For("train") != "8h" || !strings.Contains(s.Roles[0].Body, `{"epochs": 3, "lr": 2e-5, "opt.beta": 0.5}`) {
		t.Errorf("%+v\n%s", s.Job, s.Roles[0].Body)
	}
	o.Time = []string{"30m"}
	if s, _, err = Compose(l, e, o); err != nil || s.Job.Time.For("train") != "30m" {
		t.Errorf("--time 30m gave train %q, %v", s.Job.Time.For("train"), err)
	}
}

// Values of variables reach the spec as they are, whatever is in them.
func TestEnvValuesAreKept(t *testing.T) {
	odd := []string{"l1\nl2", `a"b'c,$HOME ` + "`id`", " leading", "實驗🙂", "", "a=b=c", "#x"}
	l, e := newLab(t, "custom/custom", "x", map[string]string{"vars": "# comment\n\nlower_case=a b \"c\" 'd'\nE=\n"})
	o := Options{EnvFiles: []string{e.Path("vars")}}
	for i, v := range odd {
		o.Env = append(o.Env, "V"+string(rune('a'+i))+"="+v)
	}
	s, _ := compose(t, l, e, o)
	want := []spec.EnvVar{{Name: "E", Value: "", Origin: e.Path("vars") + ":4"}}
	for i, v := range odd {
		want = append(want, spec.EnvVar{Name: "V" + string(rune('a'+i)), Value: v, Origin: "--env"})
	}
	want = append(want, spec.EnvVar{Name: "lower_case", Value: `a b "c" 'd'`, Origin: e.Path("vars") + ":3"})
	if !slices.Equal(s.Env, want) {
		t.Errorf("got  %q\nwant %q", s.Env, want)
	}
}

func TestSecretsAreWarnedAbout(t *testing.T) {
	l, e := newLab(t, "custom/custom", "x", nil)
	_, c := compose(t, l, e, Options{Env: []string{"HF_TOKEN=x", "TOKENIZERS_PARALLELISM=false"}})
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "HF_TOKEN looks like a secret") {
		t.Errorf("%q", c.Warnings)
	}
}

func FuzzParseSet(f *testing.F) {
	f.Add("lr=1e-5")
	f.Add("=")
	f.Add("a.b=x=y\n")
	f.Fuzz(func(t *testing.T, text string) {
		key, value, err := ParseSet(text)
		if err == nil && key+"="+value != text {
			t.Fatalf("%q became %q and %q", text, key, value)
		}
	})
}
