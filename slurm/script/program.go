// Package script writes a job as one readable batch script: directives,
// environment, claim, stage-in, pool addresses, one background srun per role,
// and a wait in which the first role that fails ends the run.
//
//	text, err := script.Render(script.Program{Request: req, RunID: id, ...})
//
// The same text is run by plain sbatch and sent through slurmrestd.
package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// Program is everything a batch script needs to be written.
type Program struct {
	Request *slurm.Request // its Script is ignored, its Env is exported
	Title   string         // one line of comment
	RunID   string
	RunDir  string // shared run directory, absolute
	Attempt int    // counts new submissions of one run, from 1
	// Vars are TP_ variables known before the job starts, exported as they are.
	Vars []slurm.EnvVar
	// ExpDir is the experiment's directory relative to the unpacked bundle.
	ExpDir string
	// Prolog lines of site and recipe run outside strict mode.
	Prolog []string
	// StageIn is bash that brings the bundle to $TP_RUN_DIR/code.
	StageIn string
	Network Network
	Steps   []Step // the driver first
}

// Network says which addresses and ports pools use. The zero value takes
// Slurm's NodeAddr, or the node's own address where that does not resolve, IPv4
// rather than IPv6, and ports outside the nodes' ephemeral range.
type Network struct {
	Interface string // whose addresses are used, on every node
	Family    string // "ipv4" or "ipv6" is preferred; "" for ipv4, but Slurm's word before the node's
	Ports     string // "20000-29999": the only ones to use
}

// Step is one role on its pool.
type Step struct {
	Role        string // ^[a-z][a-z0-9_-]*$
	Pool        string
	Driver      bool // its exit ends the run
	Component   int
	NodeOffset  int // first node within the component
	Nodes       int
	CPUs        int // per node
	GRES        []slurm.GRES
	GPUsPerNode int
	Body        string // "" for a role that has a place and no step of its own
	Needs       []string
	// From and Count are the part of the pool's nodes that run the step; Count 0
	// is all from From on.
	From, Count int
	// Tasks per node; 0 is one. MPI is the plugin that tells them their ranks,
	// "" for none.
	Tasks int
	MPI   string
	// Runtime is what the step runs in; the zero value is the node itself.
	Runtime spec.Runtime
	// Force are variables of the job that win over the image's own.
	Force []string
}

// runs is how many nodes run the step.
func (s Step) runs() int {
	if s.Count > 0 {
		return s.Count
	}
	return s.Nodes - s.From
}

var mpiName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (s Step) check() error {
	switch {
	case s.From < 0 || s.Count < 0 || s.From+s.Count > s.Nodes || s.runs() < 1:
		return fmt.Errorf("role %q runs on %d nodes from %d on, of %d", s.Role, s.Count, s.From, s.Nodes)
	case s.Tasks < 0 || s.Tasks > 1 && s.MPI == "":
		return fmt.Errorf("role %q: %d tasks per node, and none without MPI", s.Role, s.Tasks)
	case s.Tasks > 1 && s.Tasks > s.CPUs:
		return fmt.Errorf("role %q: %d tasks on the %d CPUs of each node: ask for more with --cpus-per-node", s.Role, s.Tasks, s.CPUs)
	case s.MPI != "" && !mpiName.MatchString(s.MPI):
		return fmt.Errorf("role %q: MPI plugin %q: expected a name such as pmix", s.Role, s.MPI)
	case s.Driver && s.Body == "":
		return fmt.Errorf("the driver %q has nothing to run", s.Role)
	}
	_, err := s.inside()
	return err
}

var roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// check refuses what the script could not carry.
func (p *Program) check() error {
	if len(p.Steps) == 0 {
		return fmt.Errorf("no role to run")
	}
	if !p.Steps[0].Driver {
		return fmt.Errorf("the first role must be the driver")
	}
	if !strings.HasPrefix(p.RunDir, "/") {
		return fmt.Errorf("run directory %q is not absolute", p.RunDir)
	}
	if strings.ContainsAny(p.RunDir, "\\\n") {
		// A backslash switches off Slurm's file name patterns for the whole path.
		return fmt.Errorf("run directory %q has a backslash or newline, which Slurm's file name patterns cannot carry", p.RunDir)
	}
	for what, text := range map[string]string{"job name": p.Request.Name, "comment": p.Request.Comment, "title": p.Title, "run directory": p.RunDir, "experiment": p.ExpDir} {
		if err := shell.Check(what, text); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	shape := map[string]Step{}
	if err := p.Network.check(); err != nil {
		return err
	}
	for _, s := range p.Steps {
		if !roleName.MatchString(s.Role) {
			return fmt.Errorf("role %q: expected a lower-case name such as train or reward-model, at most 32 letters", s.Role)
		}
		if v := VarName(s.Role); seen[v] {
			return fmt.Errorf("role %q: two roles become the variable TP_ROLE_%s", s.Role, v)
		} else {
			seen[v] = true
		}
		if s.Component < 0 || s.Component >= len(p.Request.Components) {
			return fmt.Errorf("role %q is on component %d of %d", s.Role, s.Component, len(p.Request.Components))
		}
		if err := s.check(); err != nil {
			return err
		}
		if !roleName.MatchString(s.Pool) {
			return fmt.Errorf("pool %q: expected the name of one of its roles", s.Pool)
		}
		if first, ok := shape[s.Pool]; ok && (first.Component != s.Component || first.NodeOffset != s.NodeOffset || first.Nodes != s.Nodes) {
			return fmt.Errorf("roles %s and %s are on pool %s but not on the same nodes", first.Role, s.Role, s.Pool)
		}
		shape[s.Pool] = s
	}
	return nil
}

var (
	portRange     = regexp.MustCompile(`^([0-9]{1,5})-([0-9]{1,5})$`)
	interfaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`) // IFNAMSIZ
)

func (n Network) check() error {
	if n.Family != "" && n.Family != "ipv4" && n.Family != "ipv6" {
		return fmt.Errorf("network family %q: expected ipv4 or ipv6", n.Family)
	}
	if n.Interface != "" && !interfaceName.MatchString(n.Interface) {
		return fmt.Errorf("network interface %q: expected a name such as eth0 or ib0", n.Interface)
	}
	if n.Ports == "" {
		return nil
	}
	m := portRange.FindStringSubmatch(n.Ports)
	if m == nil {
		return fmt.Errorf("network ports %q: expected a range such as 20000-29999", n.Ports)
	}
	low, _ := strconv.Atoi(m[1])
	high, _ := strconv.Atoi(m[2])
	if low < 1024 || high > 65535 || high-low < 63 {
		return fmt.Errorf("network ports %q: expected at least 64 ports from 1024 to 65535", n.Ports)
	}
	return nil
}

// VarName is a role's name inside an environment variable: upper case, with _
// for everything that is no letter or digit.
func VarName(role string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, role)
}
