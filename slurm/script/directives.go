package script

import (
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
)

// directives writes the #SBATCH lines of a request. They carry everything that
// the REST request carries, so that sbatch of the same file asks for the same job.
func directives(b *strings.Builder, r *slurm.Request) {
	each(r, func(_ int, _ slurm.Option, line string) { b.WriteString(line + "\n") })
}

// each calls with every directive in order: the component it is of, the option,
// and its line. Component -1 is what no request asks for.
func each(r *slurm.Request, yield func(component int, o slurm.Option, line string)) {
	for i, options := range r.Options() {
		if i > 0 {
			yield(-1, slurm.Option{Name: "hetjob"}, "#SBATCH hetjob")
		}
		for _, o := range options {
			line := "#SBATCH --" + o.Name
			if !o.Bare {
				line += "=" + shell.Directive(o.Value)
			}
			yield(i, o, line)
			if o.Name == "open-mode" {
				// Nothing of the submitting shell: the script exports its own environment.
				yield(-1, slurm.Option{Name: "export", Value: "NIL"}, "#SBATCH --export=NIL")
			}
		}
	}
}

func gres(list []slurm.GRES) string {
	parts := make([]string, len(list))
	for i, g := range list {
		parts[i] = g.String()
	}
	return strings.Join(parts, ",")
}

// Pattern escapes a path for a Slurm file name pattern, where % has a meaning
// (sbatch(1), filename pattern).
func Pattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
