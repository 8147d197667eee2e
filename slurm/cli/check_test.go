package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

func TestRefusedBeforeSending(t *testing.T) {
	for what, change := range map[string]func(*slurm.Request){
		"no component":              func(r *slurm.Request) { r.Components = nil },
		"too many components":       func(r *slurm.Request) { r.Components = make([]slurm.Component, 129) },
		"no interpreter":            func(r *slurm.Request) { r.Script = "true\n" },
		"DOS line ends":             func(r *slurm.Request) { r.Script = "#!/bin/sh\r\ntrue\r\n" },
		"NUL in the script":         func(r *slurm.Request) { r.Script += "\x00" },
		"huge script":               func(r *slurm.Request) { r.Script += strings.Repeat("#\n", 3<<20) },
		"no environment":            func(r *slurm.Request) { r.Env = nil },
		"bad variable":              func(r *slurm.Request) { r.Env[0].Name = "A=B" },
		"long name of a variable":   func(r *slurm.Request) { r.Env[0].Name = strings.Repeat("A", 256) },
		"NUL in a variable":         func(r *slurm.Request) { r.Env[0].Value = "a\x00B=c" },
		"huge variable":             func(r *slurm.Request) { r.Env[0].Value = strings.Repeat("x", 128<<10) },
		"no directory":              func(r *slurm.Request) { r.WorkDir = "" },
		"relative directory":        func(r *slurm.Request) { r.WorkDir = "x" },
		"newline in the name":       func(r *slurm.Request) { r.Name = "a\n#SBATCH --time=1" },
		"escape in the comment":     func(r *slurm.Request) { r.Comment = "\x1b[2J" },
		"separator in the name":     func(r *slurm.Request) { r.Name = "a" + endOfJob },
		"newline in the constraint": func(r *slurm.Request) { r.Components[1].Constraint = "a\nb" },
		"long name":                 func(r *slurm.Request) { r.Name = strings.Repeat("x", 201) },
		"a file for a node list":    func(r *slurm.Request) { r.Components[0].NodeList = []string{"/etc/passwd"} },
		"a file of nodes to avoid":  func(r *slurm.Request) { r.Components[0].Exclude = []string{"./x"} },
		"no node":                   func(r *slurm.Request) { r.Components[1].Nodes = 0 },
		"memory twice":              func(r *slurm.Request) { r.Components[0].MemoryPerCPU = 5 },
		"unknown share":             func(r *slurm.Request) { r.Components[0].Share = "mine" },
		"bad GRES":                  func(r *slurm.Request) { r.Components[0].GRES[0].Type = "a,b:1" },
		"array of components":       func(r *slurm.Request) { r.Array = "0-9" },
		"script waits":              func(r *slurm.Request) { r.Script = "#!/bin/sh\n#SBATCH -W\n" },
		"script waits, abbreviated": func(r *slurm.Request) { r.Script = "#!/bin/sh\n\n# x\n#SBATCH --mem=5 --wai\n" },
		"script only tests":         func(r *slurm.Request) { r.Script = "#!/bin/sh\n#SBATCH --test-only\n" },
		"script goes elsewhere":     func(r *slurm.Request) { r.Script = "#!/bin/sh\n#SBATCH -Mother\n" },
		"three components":          func(r *slurm.Request) { r.Script = "#!/bin/sh\n#SBATCH hetjob\n#SBATCH  HETJOB\n" },
		"one component in the script": func(r *slurm.Request) {
			r.Components = append(r.Components, r.Components[1])
			r.Script = "#!/bin/sh\n#SBATCH hetjob\n"
		},
	} {
		c := fakes(t, "24.11.5", map[string]string{"sbatch": "echo 12"})
		r := request()
		change(r)
		if sub, err := c.Submit(t.Context(), r); err == nil || sub.ID != 0 {
			t.Errorf("%s: %+v", what, sub)
		}
		if _, err := c.Check(t.Context(), r); err == nil {
			t.Errorf("%s: Check says nothing", what)
		}
		if log := c.left(t, "log"); strings.Contains(log, "--parsable") {
			t.Errorf("%s: sbatch was asked: %s", what, log)
		}
	}
}

func TestOptionsOfAReleaseThatLacksThem(t *testing.T) {
	for _, x := range []struct {
		version string
		change  func(*slurm.Request)
		err     string // in the error
		warning string // in the warnings
	}{
		{version: "22.05.8", change: func(r *slurm.Request) { r.Components[1].Segment = 1 }, err: "Segment: sbatch of Slurm 22.05.8 has no --segment; Slurm 24.05 is the first that can"},
		{version: "23.11.4", change: func(r *slurm.Request) { r.Components[0].Share = slurm.ExclusiveTopo }, err: "Share: sbatch of Slurm 23.11.4 has no --exclusive=topo; Slurm 24.05 is the first"},
		{version: "22.05.8", change: func(r *slurm.Request) { r.Extra = "x" }, err: "Extra: sbatch of Slurm 22.05.8 takes --extra for --extra-node-info; Slurm 23.02 is the first that can"},
		{version: "23.02.0", change: func(r *slurm.Request) { r.Extra = "x" }},
		{version: "24.05.0", change: func(r *slurm.Request) {
			r.Components[1].Segment, r.Components[0].Share, r.Components[1].Share = 1, slurm.ExclusiveTopo, slurm.ExclusiveTopo
		}},
		{version: "27.11.1", change: func(r *slurm.Request) { r.Extra = "x" }},
		{version: "22.05.8", change: func(r *slurm.Request) { r.Env = append(r.Env, slurm.EnvVar{Name: "DISPLAY", Value: ":0"}) }, warning: "DISPLAY"},
		{version: "22.05.8", change: func(r *slurm.Request) {
			r.Script = "#!/bin/sh\n#SBATCH --qos=high # --time=1\n#SBATCH hetjob\n#SBATCH -c 4 -t'5'\ntrue\n#SBATCH --wait\n"
		}, warning: "--qos"},
	} {
		c := fakes(t, x.version, map[string]string{"sbatch": `cat >/dev/null; echo 12`})
		r := request()
		x.change(r)
		warnings, err := c.Check(t.Context(), r)
		sub, submitErr := c.Submit(t.Context(), r)
		if x.err != "" {
			if err == nil || submitErr == nil || !strings.Contains(err.Error(), x.err) || !strings.Contains(submitErr.Error(), x.err) {
				t.Errorf("%s: %v, %v", x.version, err, submitErr)
			}
			continue
		}
		said := strings.Join(warnings, "\n")
		if err != nil || submitErr != nil || sub.ID != 12 || strings.Join(sub.Warnings, "\n") != said {
			t.Errorf("%s: %q, %v, %+v, %v", x.version, said, err, sub, submitErr)
		}
		if x.warning == "" && said != "" || !strings.Contains(said, x.warning) {
			t.Errorf("%s: warnings %q", x.version, said)
		}
	}
}

// What slurm/script writes into the header is what sbatch is told anyway.
func TestOwnDirectivesNeedNoWarning(t *testing.T) {
	r := request()
	r.Extra, r.Components[0].NodeList, r.Comment = "a # b --wait", []string{"h200-[1-2]"}, `"x" --wait "y \" -W`
	var b strings.Builder
	b.WriteString("#!/bin/bash\n#SBATCH --export=NIL\n")
	for i, list := range r.Options() {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		for _, o := range list {
			line := "#SBATCH --" + o.Name
			if !o.Bare {
				line += `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(o.Value) + `"`
			}
			b.WriteString(line + "\n")
		}
	}
	r.Script = b.String() + "true --wait\n"
	c := fakes(t, "26.05.5", nil)
	if warnings, err := c.Check(context.Background(), r); err != nil || len(warnings) != 0 {
		t.Errorf("%q, %v\n%s", warnings, err, r.Script)
	}
}

func TestVersions(t *testing.T) {
	for out, want := range map[string]string{
		"slurm 24.11.5\n": "24.11.5", "slurm-wlm 22.05.8\n": "22.05.8", "Welcome!\nslurm 25.05.0-0rc1\n": "25.05.0-0rc1", "": "", "sbatch 1.0\n": "", "slurm x.y\n": "", "OpenPBS 22.05": "",
	} {
		if got := parseVersion(out); got != want {
			t.Errorf("%q is %q", out, got)
		}
	}
}
