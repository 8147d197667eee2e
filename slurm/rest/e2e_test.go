package rest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/rest"
	"github.com/tuneplane/tp/slurm/slurmtest"
)

// TestConformance runs the suite against real servers. TP_E2E_SLURMRESTD is a
// list, one server a line:
//
//	URL USER WORKDIR [TOKEN-COMMAND …]
//
// An absolute path in place of URL is a slurmrestd to be started as a private
// child, which needs USER to run the test. WORKDIR exists on the nodes; the command prints a token as scontrol does and
// is needed for http:// only.
func TestConformance(t *testing.T) {
	servers := os.Getenv("TP_E2E_SLURMRESTD")
	if servers == "" {
		t.Skip("TP_E2E_SLURMRESTD names no servers; contrib/devcluster makes some")
	}
	for line := range strings.SplitSeq(servers, "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		for _, d := range dialectsOf(t, f) {
			t.Run(strings.ReplaceAll(f[0], "/", "_")+"@"+d, func(t *testing.T) {
				lab := slurmtest.Lab(f[1], f[2])
				lab.Bare = os.Getenv("TP_E2E_TOOLS") == ""
				slurmtest.Conform(t, func(t *testing.T) slurm.Client { return open(t, f, d) }, lab)
			})
		}
	}
}

func open(t *testing.T, f []string, dialect string) *rest.Client {
	t.Helper()
	o := rest.Options{URL: f[0], User: f[1], Dialect: dialect}
	if strings.HasPrefix(f[0], "/") {
		o.URL, o.Binary = "", f[0]
	}
	if len(f) > 3 {
		o.Token = func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, f[3], f[4:]...).Output()
			if err != nil {
				return "", err
			}
			return cli.ParseToken(out)
		}
	}
	if dir := os.Getenv("TP_E2E_TOOLS"); dir != "" {
		o.Mine = cli.Tools{Dir: dir}.Mine
	}
	c, err := rest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// dialectsOf lists what the server serves: every one of them is tested.
func dialectsOf(t *testing.T, f []string) []string {
	t.Helper()
	switch only := os.Getenv("TP_E2E_DIALECT"); only {
	case "":
	case "newest": // as a client finds it
		c := open(t, f, "")
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatalf("%s: %v", f[0], err)
		}
		return []string{c.Dialect()}
	default:
		return []string{only}
	}
	var out []string
	for _, d := range []string{"v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"} {
		c := open(t, f, d)
		if _, err := c.Info(t.Context()); err != nil {
			t.Fatalf("%s: %v", f[0], err)
		}
		if c.Dialect() == d { // else it found another one
			out = append(out, d)
		}
	}
	return out
}
