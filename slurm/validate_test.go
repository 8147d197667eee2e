package slurm

import (
	"strings"
	"testing"
	"time"
)

func valid() *Request {
	return &Request{
		Name: "n", Script: "#!/bin/bash\ntrue\n", WorkDir: "/w", Env: []EnvVar{{Name: "PATH", Value: "/bin"}},
		Components: []Component{
			{Partition: "a", Nodes: 1, GRES: []GRES{{Name: "gpu", Count: 1}}}, {Partition: "b", Nodes: 2},
		},
	}
}

func TestValidate(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Request, *Component){
		"no component":          func(r *Request, _ *Component) { r.Components = nil },
		"at most 128":           func(r *Request, _ *Component) { r.Components = make([]Component, 129) },
		"no arrays":             func(r *Request, _ *Component) { r.Array = "0-3" },
		"#!":                    func(r *Request, _ *Component) { r.Script = "true\n" },
		"CRLF":                  func(r *Request, _ *Component) { r.Script = "#!/bin/bash\r\ntrue\r\n" },
		"4194304":               func(r *Request, _ *Component) { r.Script += strings.Repeat("#\n", 3<<20) },
		"NUL":                   func(r *Request, _ *Component) { r.Script += "\x00" },
		"UTF-8":                 func(r *Request, _ *Component) { r.Comment = "\xff" },
		"environment is empty":  func(r *Request, _ *Component) { r.Env = nil },
		`"A=B"`:                 func(r *Request, _ *Component) { r.Env[0].Name = "A=B" },
		"variable PATH":         func(r *Request, _ *Component) { r.Env[0].Value = "\x00" },
		"missing":               func(r *Request, _ *Component) { r.WorkDir = "" },
		"not absolute":          func(r *Request, _ *Component) { r.WorkDir = "x" },
		"bundle":                func(r *Request, _ *Component) { r.Container = "x" },
		"201 bytes":             func(r *Request, _ *Component) { r.Name = strings.Repeat("x", 201) },
		"name \"a\\n":           func(r *Request, _ *Component) { r.Name = "a\n#SBATCH --time=1" },
		"comment":               func(r *Request, _ *Component) { r.Comment = "\x1b[2J" },
		"error file":            func(r *Request, _ *Component) { r.Error = "a\rb" },
		"array":                 func(r *Request, _ *Component) { r.Components, r.Array = r.Components[:1], "1\n" },
		"wckey":                 func(r *Request, _ *Component) { r.WCKey = "\t" },
		"extra":                 func(r *Request, _ *Component) { r.Extra = "\x7f" },
		"dependency":            func(r *Request, _ *Component) { r.Dependency = "\n" },
		"mail user":             func(r *Request, _ *Component) { r.MailUser = "\n" },
		"priority 4294967294":   func(r *Request, _ *Component) { r.Priority = 4294967294 },
		"priority -1":           func(r *Request, _ *Component) { r.Priority = -1 },
		"holding is a priority": func(r *Request, _ *Component) { r.Priority, r.Hold = 1, true },
		"nice":                  func(r *Request, _ *Component) { r.Nice = 2147483646 },
		"signal USR1 0s":        func(r *Request, _ *Component) { r.Signal.Name = "USR1" },
		"signal USR1 20h":       func(r *Request, _ *Component) { r.Signal = Signal{Name: "USR1", Before: 20 * time.Hour} },
		`mail type "SOMETIMES"`: func(r *Request, _ *Component) { r.MailType = []string{"END", "SOMETIMES"} },
		"stands alone":          func(r *Request, _ *Component) { r.MailType = []string{"END", "NONE"} },
		"0 nodes":               func(_ *Request, c *Component) { c.Nodes = 0 },
		"negative":              func(_ *Request, c *Component) { c.MemoryPerCPU = -1 },
		"-2 MiB":                func(_ *Request, c *Component) { c.Memory = -2 },
		"-2 minutes":            func(_ *Request, c *Component) { c.TimeLimit = -2 },
		"is over":               func(_ *Request, c *Component) { c.TimeLimit, c.TimeMin = 10, 20 },
		"only be asked for by":  func(_ *Request, c *Component) { c.Licenses = "matlab:1" },
		"without a number":      func(_ *Request, c *Component) { c.SwitchWait = time.Minute },
		"GPU option":            func(_ *Request, c *Component) { c.GPUOption = "gpus" },
		"per node and per CPU":  func(_ *Request, c *Component) { c.Memory, c.MemoryPerCPU = WholeNode, 1 },
		"without a GPU":         func(_ *Request, c *Component) { c.MemoryPerGPU = 1 },
		`sharing "maybe"`:       func(_ *Request, c *Component) { c.Share = "maybe" },
		`partition "a\nb"`:      func(_ *Request, c *Component) { c.Partition = "a\nb" },
		"preferred":             func(_ *Request, c *Component) { c.Prefer = "\n" },
		"network":               func(_ *Request, c *Component) { c.Network = "\n" },
		"node list":             func(_ *Request, c *Component) { c.NodeList = []string{"\x00"} },
		"no node name":          func(_ *Request, c *Component) { c.Exclude = []string{"/etc/passwd"} },
		"bad GRES":              func(_ *Request, c *Component) { c.GRES = []GRES{{Name: "gpu", Type: "a,b", Count: 1}} },
	} {
		r := valid()
		change(r, &r.Components[1])
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}
