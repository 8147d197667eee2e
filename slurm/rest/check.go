package rest

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
)

const (
	maxComponents = 128     // MAX_HET_JOB_COMPONENTS
	maxScript     = 4 << 20 // slurm.conf(5) max_script_size, the default
	maxName       = 200     // slurm.Request.Name
)

// check does what the sbatch client does before it asks, for slurmrestd takes
// anything: a script without "#!" is queued and fails on the node.
func check(r *slurm.Request) error {
	switch n := len(r.Components); {
	case n == 0:
		return errors.New("the request has no component")
	case n > maxComponents:
		return fmt.Errorf("%d components: Slurm takes at most %d", n, maxComponents)
	case !strings.HasPrefix(r.Script, "#!"):
		return errors.New(`the batch script does not start with "#!"`)
	case strings.Contains(r.Script, "\r\n"):
		return errors.New("the batch script has DOS line ends (CRLF)")
	case len(r.Script) > maxScript:
		return fmt.Errorf("the batch script has %d bytes: Slurm takes at most %d", len(r.Script), maxScript)
	case len(r.Env) == 0:
		return errors.New("the environment is empty: Slurm refuses such a job")
	case r.WorkDir == "":
		return errors.New("the working directory is missing: the job would fail on the node")
	case !path.IsAbs(r.WorkDir):
		return fmt.Errorf("the working directory %q is not absolute", r.WorkDir)
	case len(r.Name) > maxName:
		return fmt.Errorf("the job name has %d bytes: at most %d", len(r.Name), maxName)
	}
	if err := plainText("the batch script", r.Script); err != nil {
		return err
	}
	for _, v := range r.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || !utf8.ValidString(v.Name) {
			return fmt.Errorf("bad name of an environment variable: %q", v.Name)
		}
		if err := plainText("environment variable "+v.Name, v.Value); err != nil {
			return err
		}
	}
	lines := map[string]string{
		"name": r.Name, "comment": r.Comment, "working directory": r.WorkDir, "output": r.Output,
		"dependency": r.Dependency, "signal": r.Signal.Name, "mail user": r.MailUser, "mail type": strings.Join(r.MailType, ","),
	}
	for what, s := range lines {
		if err := oneLine(what, s); err != nil {
			return err
		}
	}
	for i := range r.Components {
		if err := checkComponent(&r.Components[i], i); err != nil {
			return fmt.Errorf("component %d: %w", i, err)
		}
	}
	return nil
}

func checkComponent(c *slurm.Component, i int) error {
	switch {
	case c.Nodes < 1:
		return fmt.Errorf("%d nodes", c.Nodes)
	case c.CPUsPerTask < 0 || c.TasksPerNode < 0 || c.Memory < 0:
		return errors.New("a negative count")
	case c.TimeLimit < slurm.Unlimited:
		return fmt.Errorf("a time limit of %d minutes", int(c.TimeLimit))
	case i > 0 && c.Licenses != "":
		return errors.New("licences can only be asked for by component 0")
	}
	for what, s := range map[string]string{
		"partition": c.Partition, "account": c.Account, "QOS": c.QOS, "reservation": c.Reservation, "constraint": c.Constraint,
		"licences": c.Licenses, "node list": strings.Join(c.NodeList, ","), "excluded nodes": strings.Join(c.Exclude, ","),
	} {
		if err := oneLine(what, s); err != nil {
			return err
		}
	}
	for _, g := range c.GRES {
		if g.Name == "" || g.Count < 0 || strings.ContainsAny(g.Name+g.Type, ":,= \t\n\x00") {
			return fmt.Errorf("bad GRES %q", g)
		}
	}
	return nil
}

// plainText refuses what JSON or C strings would change on the way: a NUL ends
// a C string, and encoding/json replaces bytes that are not UTF-8.
func plainText(what, s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%s holds a NUL byte", what)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8, which JSON cannot carry", what)
	}
	return nil
}

func oneLine(what, s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s %q holds a control character", what, s)
	}
	return plainText(what, s)
}
