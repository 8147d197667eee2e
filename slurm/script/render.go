package script

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

//go:embed frame.sh
var frame string

//go:embed pools.sh
var poolsFrame string

// Render writes the batch script. The text depends on p alone. An error names
// the value that a script cannot carry.
func Render(p Program) (string, error) {
	if err := p.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# %s\n# sbatch runs this file as it is; tp submits the same text.\n", p.Title)
	directives(&b, p.Request)

	b.WriteString("\n# ---- environment: an allow-list, nothing of the submitting shell -----------------\n")
	p.forget(&b)
	for _, v := range p.Request.Env {
		export(&b, v)
	}
	b.WriteString("umask 077\n")
	if len(p.Prolog) > 0 {
		b.WriteString("\n# ---- prolog of site and recipe, outside strict mode ------------------------------\n")
		for _, line := range p.Prolog {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\nset -euo pipefail\n")
	for _, v := range p.vars() {
		export(&b, v)
	}
	p.components(&b)
	b.WriteString("\n" + frame + "\n" + poolsFrame)

	b.WriteString("\n# ---- stage-in: the bundle, verified ------------------------------------------------\n")
	b.WriteString(strings.TrimRight(p.StageIn, "\n") + "\n")
	fmt.Fprintf(&b, "export TP_EXP_DIR=$TP_CODE_DIR/%s\n", shell.Quote(p.ExpDir))

	b.WriteString("\n# ---- what each role runs, once per node of its pool --------------------------------\n")
	for i, s := range p.Steps {
		if s.Body == "" {
			continue
		}
		fmt.Fprintf(&b, "tp_role_%d() { # %s\n", i, s.Role)
		for _, program := range s.Needs {
			fmt.Fprintf(&b, "command -v %s >/dev/null || { echo \"tp: %s is not on the PATH of ${SLURMD_NODENAME:-$HOSTNAME}\" >&2; exit 127; }\n", shell.Quote(program), program)
		}
		fmt.Fprintf(&b, "export TP_POOL=%s TP_NNODES=%d TP_GPUS_PER_NODE=%d\n", shell.Quote(s.Pool), s.Nodes, s.GPUsPerNode)
		b.WriteString(strings.TrimRight(s.Body, "\n") + "\n}\n")
		if box := s.box(fmt.Sprintf("tp_role_%d", i)); box != "" {
			fmt.Fprintf(&b, "tp_box_%d() { # the container of %s\n%s}\n", i, s.Role, box)
		}
	}
	p.places(&b)
	p.steps(&b)
	return b.String(), nil
}

// ofJob are the variables that slurmd gives to a batch script, as patterns of
// bash (sbatch(1), output environment variables).
const ofJob = "SLURM_JOB_* | SLURM_JOBID | SLURM_RESTART_COUNT | SLURM_CLUSTER_NAME | SLURM_CONF | SLURM_SUBMIT_* | \\\n  " +
	"SLURM_NNODES | SLURM_NODELIST | SLURM_NTASKS | SLURM_NPROCS | SLURM_TASKS_PER_NODE | SLURM_CPUS_ON_NODE | SLURM_CPUS_PER_TASK | \\\n  " +
	"SLURM_MEM_PER_NODE | SLURM_GPUS_ON_NODE | SLURM_NODEID | SLURM_PROCID | SLURM_LOCALID | SLURM_GTIDS | SLURM_TASK_PID | SLURM_TOPOLOGY_*"

// forget drops what sbatch --export=NIL lets through: every SLURM_ variable of
// the submitting shell. srun takes them as options (SLURM_CPU_BIND), or cannot
// start a step at all (SLURM_JWT); and a shell inside another allocation has
// all of that one's: what slurmd sets for some jobs only is dropped where this
// job is none of them.
func (p *Program) forget(b *strings.Builder) {
	b.WriteString("# --export=NIL still brings every SLURM_ variable, which srun would take as an option.\n")
	b.WriteString("for tp_var in \"${!SLURM_@}\"; do\n  case $tp_var in\n")
	if len(p.Request.Components) > 1 {
		b.WriteString("  SLURM_HET_SIZE | *_HET_GROUP_*) ;;\n")
	} else {
		b.WriteString("  *_HET_GROUP_*) unset \"$tp_var\" ;;\n")
	}
	if p.Request.Array != "" {
		b.WriteString("  SLURM_ARRAY_*) ;;\n")
	}
	c := p.Request.Components[0]
	var others []string
	if len(c.GRES) == 0 {
		others = append(others, "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE")
	}
	if c.Reservation == "" {
		others = append(others, "SLURM_JOB_RESERVATION")
	}
	if c.Licenses == "" {
		others = append(others, "SLURM_JOB_LICENSES")
	}
	if len(others) > 0 {
		fmt.Fprintf(b, "  %s) unset \"$tp_var\" ;;\n", strings.Join(others, " | "))
	}
	b.WriteString("  " + ofJob + ") ;;\n  *) unset \"$tp_var\" ;;\n  esac\ndone\n")
}

func export(b *strings.Builder, v slurm.EnvVar) {
	fmt.Fprintf(b, "export %s=%s\n", v.Name, shell.Quote(v.Value))
}

// vars are the TP_ variables that do not depend on the allocation.
func (p *Program) vars() []slurm.EnvVar {
	var roles []string
	for _, s := range p.Steps {
		roles = append(roles, s.Role)
	}
	limit := p.Request.Components[0].TimeLimit
	seconds := 0
	if limit > 0 {
		seconds = int(limit) * 60
	}
	vars := []slurm.EnvVar{
		{Name: "TP_RUN_ID", Value: p.RunID},
		{Name: "TP_RUN_DIR", Value: p.RunDir},
		{Name: "TP_ATTEMPT", Value: fmt.Sprint(p.Attempt)},
		{Name: "TP_ROLES", Value: strings.Join(roles, ",")},
		{Name: "TP_DRIVER", Value: p.Steps[0].Role},
		{Name: "TP_TIME_LIMIT", Value: fmt.Sprint(seconds)},
	}
	return append(vars, p.Vars...)
}

// components says which pools and roles each component has, for when Slurm ends
// one of them alone.
func (p *Program) components(b *strings.Builder) {
	names := make([]string, len(p.Request.Components))
	for _, s := range p.pools() {
		if names[s.Component] != "" {
			names[s.Component] += ","
		}
		names[s.Component] += s.Pool
	}
	b.WriteString("tp_pools=(")
	for i, n := range names {
		if i > 0 {
			b.WriteString(" ")
		}
		if quoted := shell.Quote(n); quoted != n || !strings.Contains(n, ",") {
			b.WriteString(quoted)
		} else { // a bare comma looks like a slip
			b.WriteString("'" + n + "'")
		}
	}
	b.WriteString(")\ndeclare -A tp_component=(")
	for i, s := range p.Steps {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprintf(b, "[%s]=%d", s.Role, s.Component)
	}
	b.WriteString(")\n")
}

// places starts a step on every pool's nodes, with the placement of its roles'
// steps so that ranks agree, and names where each pool and role runs.
func (p *Program) places(b *strings.Builder) {
	b.WriteString("\n# ---- where the pools and roles run -------------------------------------------------\n")
	fmt.Fprintf(b, "tp_interface=%s tp_family=%s tp_ports=%s\n", shell.Quote(p.Network.Interface), shell.Quote(p.Network.Family), shell.Quote(p.Network.Ports))
	pools := p.pools()
	for _, s := range pools {
		blocks := 1 // the pool's own, and one for each of its roles
		for _, o := range p.Steps {
			if o.Pool == s.Pool {
				blocks++
			}
		}
		fmt.Fprintf(b, "tp_pool %s %d %d srun %s --gres=none\n", s.Pool, s.Nodes, blocks, p.place(Step{Component: s.Component, NodeOffset: s.NodeOffset, Nodes: s.Nodes}, "tp-pool", 1))
	}
	b.WriteString("tp_meet_all\n")
	for _, s := range pools {
		fmt.Fprintf(b, "tp_place POOL %s %s %d\n", s.Pool, s.Pool, s.GPUsPerNode)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(b, "tp_place ROLE %s %s %d\n", s.Role, s.Pool, s.GPUsPerNode)
	}
}

// pools are the first steps of each pool.
func (p *Program) pools() []Step {
	var out []Step
	for _, s := range p.Steps {
		if !slices.ContainsFunc(out, func(o Step) bool { return o.Pool == s.Pool }) {
			out = append(out, s)
		}
	}
	return out
}

// place are the options of srun that put a step onto its nodes: one task each,
// or those of MPI, beside whatever runs there.
func (p *Program) place(s Step, name string, cpus int) string {
	where := ""
	if len(p.Request.Components) > 1 {
		where = fmt.Sprintf("--het-group=%d ", s.Component)
	}
	nodes, tasks, mpi := s.runs(), max(1, s.Tasks), "none"
	if first := s.NodeOffset + s.From; first > 0 || nodes < p.Request.Components[s.Component].Nodes {
		where += fmt.Sprintf("--relative=%d ", first)
	}
	if s.MPI != "" {
		mpi = s.MPI
	}
	return fmt.Sprintf("%s--job-name=%s --overlap --mpi=%s --kill-on-bad-exit=1 --nodes=%d --ntasks=%d --ntasks-per-node=%d --cpus-per-task=%d",
		where, name, mpi, nodes, nodes*tasks, tasks, max(1, cpus/tasks))
}

// steps starts the roles, services first so that the driver finds them, and waits.
func (p *Program) steps(b *strings.Builder) {
	b.WriteString("\n# ---- start the roles, wait for the driver or the first failure ---------------------\n")
	var checked []string
	for _, s := range p.Steps {
		if s.MPI != "" && !slices.Contains(checked, s.MPI) {
			checked = append(checked, s.MPI)
			fmt.Fprintf(b, "tp_mpi %s\n", s.MPI)
		}
	}
	p.containerChecks(b)
	for i := len(p.Steps) - 1; i >= 0; i-- {
		s := p.Steps[i]
		if s.Body == "" {
			continue
		}
		gpus, from := "", ""
		if g := gres(s.GRES); g != "" {
			gpus = "--gres=" + shell.Quote(g) + " "
		}
		if s.From > 0 {
			from = fmt.Sprintf(" %d", s.From)
		}
		run, functions := fmt.Sprintf("tp_role_%d", i), fmt.Sprintf("tp_role_%d", i)
		if s.Runtime.Container == spec.Apptainer {
			run = fmt.Sprintf("tp_box_%d", i)
			functions += " " + run
		}
		inside, _ := s.inside() // checked
		if inside != "" {
			inside = "\\\n  " + inside
		}
		fmt.Fprintf(b, "tp_start %s srun %s %s%s\\\n  bash -c \"$(declare -f tp_role %s); tp_role %s %s%s\"\n",
			s.Role, p.place(s, s.Role, s.CPUs), gpus, inside, functions, run, s.Role, from)
	}
	b.WriteString("tp_rc=0\ntp_wait || tp_rc=$?\nexit \"$tp_rc\"\n")
}
