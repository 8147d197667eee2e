package cli

import (
	"path/filepath"
	"testing"

	"github.com/tuneplane/tp/slurm/slurmtest"
)

// A table of sacctmgr cuts names ("dept-bioinf+"); what tp asks for does not,
// and nothing is made of a name that somebody cut.
func TestFactsAreReadWhole(t *testing.T) {
	tools := scontrol(t, `case "$*" in
*"show config"*) printf 'Configuration data as of 2026-11-30T18:40:46\nClusterName             = lab\nMinJobAge = 300 sec\n' ;;
*"show partitions"*) echo 'PartitionName=cpu Default=YES DefMemPerCPU=1000' ;;
*) exit 1 ;;
esac`)
	script := `#!/bin/sh
case "$*" in
*--parsable2*" user name=ann withassoc "*) printf 'lab|dept-bioinformatics and more||normal,high||dept-bioinformatics and more\nlab|dept-b+|gpu|normal|normal|dept-bioinformatics and more\nother|x||||x\n' ;;
*" qos "*) echo "sacctmgr: denied" >&2; exit 1 ;;
*" account "*) printf 'root\ndept-bioinformatics and more\n' ;;
esac
`
	slurmtest.Program(t, filepath.Join(tools.Dir, "sacctmgr"), script)
	f, err := tools.Facts(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Associations) != 2 || f.Associations[0].Account != "dept-bioinformatics and more" || !f.Associations[0].Default || len(f.Associations[0].QOS) != 2 {
		t.Errorf("associations %+v", f.Associations)
	}
	if a := f.Associations[1]; a.Account != "dept-b+" || a.Partition != "gpu" || a.DefaultQOS != "normal" || a.Default {
		t.Errorf("association %+v", a)
	}
	if f.QOS != nil || len(f.Accounts) != 2 || f.Partition("cpu").Get("DefMemPerCPU") != "1000" {
		t.Errorf("%+v", f)
	}
	if n, _ := f.Config.Number("MinJobAge"); n != 300 || f.Clock.IsZero() || f.Read.IsZero() {
		t.Errorf("config %v, clock %v", f.Config, f.Clock)
	}
}

// Accounting that is off, or denied, is not "no account".
func TestFactsWithoutAccounting(t *testing.T) {
	tools := scontrol(t, `echo "ClusterName = lab"`)
	f, err := tools.Facts(t.Context(), "ann")
	if err != nil || f.Associations != nil || f.Accounts != nil || !f.Clock.IsZero() {
		t.Errorf("%+v, %v", f, err)
	}
	tools = scontrol(t, `echo "slurm_load_ctl_conf error: Unable to contact slurm controller" >&2; exit 1`)
	if f, err := tools.Facts(t.Context(), "ann"); err == nil {
		t.Errorf("%+v", f)
	}
}
