package cli

import (
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/shell"
	"github.com/tuneplane/tp/slurm"
)

// sbatch gave the QOS of the last component to all of them.
func TestOptionsOfOneComponentReachNoOther(t *testing.T) {
	request := func(change func(*slurm.Request)) *slurm.Request {
		r := &slurm.Request{Name: "n", Script: "#!/bin/sh\n", Components: []slurm.Component{
			{Partition: "a", Nodes: 1, TimeLimit: 5}, {Partition: "b", Nodes: 1, TimeLimit: 7},
		}}
		change(r)
		return r
	}
	lines := func(r *slurm.Request) string {
		text := "#!/bin/sh\n#SBATCH --export=NIL\n"
		for i, list := range r.Options() {
			if i > 0 {
				text += "#SBATCH hetjob\n"
			}
			for _, o := range list {
				if text += "#SBATCH --" + o.Name; !o.Bare {
					text += "=" + shell.Directive(o.Value)
				}
				text += "\n"
			}
		}
		return text
	}
	for what, c := range map[string]struct {
		change   func(*slurm.Request)
		inScript bool
		words    string
	}{
		"all alike":             {change: func(*slurm.Request) {}},
		"one component":         {change: func(r *slurm.Request) { r.Components = r.Components[:1]; r.Components[0].QOS = "high" }},
		"QOS of the last":       {change: func(r *slurm.Request) { r.Components[1].QOS = "high" }, words: "--qos"},
		"QOS of the first":      {change: func(r *slurm.Request) { r.Components[0].QOS = "high" }, words: "QOS"},
		"the script says it":    {change: func(r *slurm.Request) { r.Components[1].QOS = "high"; r.Script = lines(r) }, inScript: true},
		"the script says other": {change: func(r *slurm.Request) { r.Script = lines(r); r.Components[1].QOS = "high" }, words: "--qos"},
		"handed down":           {change: func(r *slurm.Request) { r.Components[0].Account = "x"; r.Script = lines(r) }, words: "Account"},
		"own constraint":        {change: func(r *slurm.Request) { r.Components[1].Constraint = "ib" }},
	} {
		r := request(c.change)
		got, err := apart(r, r.Options())
		if got != c.inScript || (err != nil) != (c.words != "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}
