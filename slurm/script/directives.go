package script

import (
	"fmt"
	"strings"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
)

// directives writes the #SBATCH lines of a request. They carry everything that
// the REST request carries, so that sbatch of the same file asks for the same job.
func directives(b *strings.Builder, r *slurm.Request) {
	for i, options := range r.Options() {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		for _, o := range options {
			if o.Bare {
				fmt.Fprintf(b, "#SBATCH --%s\n", o.Name)
			} else {
				fmt.Fprintf(b, "#SBATCH --%s=%s\n", o.Name, shell.Directive(o.Value))
			}
			if o.Name == "open-mode" {
				// Nothing of the submitting shell: the script exports its own environment.
				b.WriteString("#SBATCH --export=NIL\n")
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
