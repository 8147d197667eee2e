package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/bundle"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/version"
	"github.com/tuneplane/tp/recipes"
)

// jobFlags say what is wanted; plan, submit and render share them, and an
// issued plan remembers them.
type jobFlags struct {
	Experiment string `arg:"" optional:"" help:"Experiment: a directory under experiments/."`

	Profile         []string `sep:"none" placeholder:"[ROLE,..=]SERIES[:N]" help:"A pool: h200, h200:8, h200:2x8, train=h200:8 (repeat)."`
	Set             []string `short:"s" sep:"none" placeholder:"KEY=VALUE" help:"A parameter by name or config path (repeat)."`
	Model           string   `placeholder:"PATH|ID" help:"Model: a directory on the cluster or a hub's id."`
	TrainData       string   `placeholder:"PATH|ID" help:"Training data: a file or directory on the cluster, or a hub's id."`
	ValidationData  string   `placeholder:"PATH|ID" help:"Validation data, likewise."`
	TrainSplit      string   `placeholder:"NAME" help:"Split of the training data."`
	ValidationSplit string   `placeholder:"NAME" help:"Split of the validation data."`

	Env         []string `sep:"none" placeholder:"NAME[=VALUE]" help:"A variable of the job; NAME alone takes your value (repeat)."`
	EnvFile     []string `sep:"none" placeholder:"FILE" help:"Lines NAME=VALUE (repeat)."`
	Name        string   `help:"Name shown instead of the experiment's."`
	Project     string   `short:"p" help:"Group of runs instead of the lab's name."`
	Image       string   `placeholder:"REFERENCE" help:"Container image: registry/repo:tag@sha256:…, or the path of a .sqsh, a .sif or an OCI bundle."`
	Mount       []string `sep:"none" placeholder:"SOURCE[:TARGET][:ro]" help:"A path of the node that the container sees (repeat)."`
	Time        []string `sep:"none" placeholder:"[ROLE=]TIME" help:"Time limit: 4h, 90m, 1-12:00:00."`
	CPUsPerNode []string `name:"cpus-per-node" sep:"none" placeholder:"[ROLE=]N" help:"CPUs on each node."`
	Mem         []string `sep:"none" placeholder:"[ROLE=]SIZE" help:"Memory on each node: 200G; 0 is the whole node."`
	Account     []string `sep:"none" placeholder:"[ROLE=]NAME" help:"Slurm account."`
	Partition   []string `sep:"none" placeholder:"[ROLE=]NAME" help:"Partition."`
	QOS         []string `name:"qos" sep:"none" placeholder:"[ROLE=]NAME" help:"Quality of service."`
	Reservation []string `sep:"none" placeholder:"[ROLE=]NAME" help:"Reservation."`
	Constraint  []string `sep:"none" placeholder:"[ROLE=]FEATURES" help:"Node features, as in sbatch --constraint."`
	Requeue     bool     `help:"Let Slurm start the job again after a node failure or preemption."`

	Slurm slurmFlags `embed:"" group:"slurm"`

	NoValidate    bool `help:"Take parameters outside their range or choices, with a warning."`
	AllowDirty    bool `help:"Ship changed files that are not committed."`
	UpgradeRecipe bool `help:"Rewrite a stale recipe.lock.json first."`
	Offline       bool `help:"Plan from the site file when the cluster cannot be asked."`
}

// options are the flags in the words of recipes.
func (f *jobFlags) options(conf *site.Config, fleet string) (recipes.Options, error) {
	o := recipes.Options{
		Set: f.Set, Profiles: f.Profile, Env: f.Env, EnvFiles: f.EnvFile, Name: f.Name, Project: f.Project, Image: f.Image, Mounts: f.Mount,
		Time: f.Time, CPUsPerNode: f.CPUsPerNode, Memory: f.Mem, Account: f.Account, Partition: f.Partition, QOS: f.QOS,
		Reservation: f.Reservation, Constraint: f.Constraint, NoValidate: f.NoValidate,
		Model: f.Model, TrainData: f.TrainData, ValidationData: f.ValidationData, TrainSplit: f.TrainSplit, ValidationSplit: f.ValidationSplit,
	}
	if f.Requeue {
		o.Requeue = &f.Requeue
	}
	o.Slurm = f.Slurm.options()
	defaults, err := layers(conf, fleet)
	o.Defaults = defaults
	return o, err
}

// layers are the defaults of user file and site file and those of the fleet,
// the stronger first.
func layers(conf *site.Config, fleet string) ([]*lab.JobFile, error) {
	if f, err := conf.Fleet(fleet); err == nil { // whoever connects reports an unknown one
		fleet = f.Name
	}
	var out []*lab.JobFile
	for _, l := range slices.Backward(conf.DefaultsOn(fleet)) {
		j, err := lab.NewJobFile(l.File, l.Prefix, l.Keys)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

func settings(list []recipes.Setting) []plan.Setting {
	out := make([]plan.Setting, len(list))
	for i, s := range list {
		out[i] = plan.Setting{Key: s.Key, Value: s.Value, Origin: s.Origin}
	}
	return out
}

// passed are the variables that every job gets from its submitter: who and
// where they are, and nothing that a shell has set up for itself.
var passed = []string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "SLURM_CONF"}

// callerEnv is the allow-list with this process's values. cron has none of
// some: they come from the user's entry in the password file.
func (a *app) callerEnv(conf *site.Config) []spec.EnvVar {
	me, _ := a.user()
	home, _ := os.UserHomeDir()
	fallback := map[string]string{"HOME": home, "USER": me, "LOGNAME": me, "PATH": usualPath}
	var out []spec.EnvVar
	for i, name := range append(append([]string{}, passed...), conf.Environment.Pass...) {
		value, ok := os.LookupEnv(name)
		if !ok {
			value, ok = fallback[name]
		}
		origin := "caller"
		if i >= len(passed) {
			origin = conf.Origin("environment.pass")
		}
		if ok {
			out = append(out, spec.EnvVar{Name: name, Value: value, Origin: origin})
		}
	}
	if conf.Environment.GetUserEnv {
		out = append(out, spec.EnvVar{Name: "SLURM_GET_USER_ENV", Value: "1", Origin: conf.Origin("environment.get_user_env")})
	}
	return out
}

// provenance adds to git's facts who made the plan, where and when.
func (a *app) provenance(p *spec.Provenance) {
	p.User, _ = a.user()
	p.Host, _ = os.Hostname()
	p.Version = version.Version
	p.Command = append([]string{"tp"}, redacted(a.args)...)
	p.Time = a.now().UTC().Truncate(time.Second)
}

// redacted is argv without the values of --env: they may be secrets that
// nobody should have passed so.
func redacted(args []string) []string {
	out := make([]string, len(args))
	env := false
	for i, arg := range args {
		out[i] = arg
		if env || strings.HasPrefix(arg, "--env=") {
			before, _, ok := strings.Cut(strings.TrimPrefix(arg, "--env="), "=")
			if ok {
				out[i] = before + "=…"
				if !env {
					out[i] = "--env=" + out[i]
				}
			}
		}
		env = arg == "--env"
	}
	return out
}

// notes are what a user should know of the selection.
func notes(sel *bundle.Selection, man *bundle.Manifest) []string {
	out := slices.Clone(man.Warnings)
	if !sel.Git {
		out = append(out, "the lab is outside of git: every file is packed but the usual leftovers, and the run cannot be traced to a commit")
	}
	if n := len(sel.Deleted); n > 0 {
		out = append(out, fmt.Sprintf("%d tracked files are gone from the working tree and not packed: %s", n, strings.Join(sel.Deleted[:min(n, 5)], ", ")))
	}
	if n := len(sel.Skipped); n > 0 {
		var list []string
		for _, skip := range sel.Skipped[:min(n, 5)] {
			list = append(list, fmt.Sprintf("%s (%s)", skip.Path, skip.Why))
		}
		if n > 5 {
			list = append(list, fmt.Sprintf("and %d more", n-5))
		}
		out = append(out, "left out: "+strings.Join(list, ", "))
	}
	if n := len(sel.Nested); n > 0 {
		out = append(out, fmt.Sprintf("repositories inside are packed with their own git listing: %s", strings.Join(sel.Nested[:min(n, 5)], ", ")))
	}
	return out
}

func dirty(p spec.Provenance) error {
	if p.Commit == "" {
		return fault.New(fault.Usage, "the repository has no commit yet, so the run could not be traced to one").
			WithHint("git add -A && git commit -m 'First commit', or --allow-dirty")
	}
	shown := p.Changed[:min(len(p.Changed), 20)]
	what := "1 file differs"
	if n := len(p.Changed); n > 1 {
		what = fmt.Sprintf("%d files differ", n)
	}
	return fault.New(fault.Usage, "%s from commit %.12s, so the run could not be traced to it: %s", what, p.Commit, strings.Join(shown, ", ")).
		WithHint("git commit -a, or --allow-dirty: the working copy is shipped and its patch hash recorded")
}

// packed refuses when a file that a role starts would not be in the bundle.
func packed(roles []spec.Role, man *bundle.Manifest) error {
	have := map[string]bool{}
	for _, f := range man.Files {
		have[f.Path] = true
	}
	for _, r := range roles {
		for _, name := range r.Files {
			if !have[name] {
				return fault.New(fault.Usage, "role %s starts %s, which is not packed: git ignores it, or an exclude pattern leaves it out", r.Name, name).
					WithHint("git check-ignore -v %s", name)
			}
		}
	}
	return nil
}

func roleNames(roles []spec.Role) string {
	var names []string
	for _, r := range roles {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}
