package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// TestConformance runs the suite with the commands of this host.
// TP_E2E_SLURM is "USER WORKDIR"; WORKDIR exists on the nodes.
func TestConformance(t *testing.T) {
	f := strings.Fields(os.Getenv("TP_E2E_SLURM"))
	if len(f) != 2 {
		t.Skip("TP_E2E_SLURM names no user and directory; contrib/devcluster makes clusters")
	}
	client := New(Options{})
	version, err := client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run(release(version).String(), func(t *testing.T) {
		open := func(tools Tools) func(*testing.T) slurm.Client {
			return func(*testing.T) slurm.Client { return New(Options{Tools: tools}) }
		}
		slurmtest.Conform(t, open(Tools{}), slurmtest.Lab(f[0], f[1]))
	})
}
