package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// why runs tp_why for two components with what scontrol shows and what the
// job's log says.
func why(t *testing.T, show, log string) string {
	t.Helper()
	_, text, _ := strings.Cut(frame, "\ntp_why() {")
	text, _, found := strings.Cut(text, "\ntp_stop() {")
	if !found {
		t.Fatal("frame.sh has no tp_why before tp_stop")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scontrol"), "#!/bin/bash\ncat \"$FAKE/show\"\n")
	write(t, filepath.Join(dir, "sinfo"), "#!/bin/bash\necho \"$3\"\n")
	for name, text := range map[string]string{"show": show, "log": log} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "-c", `set -euo pipefail
sleep() { :; }
SLURM_JOB_ID=7 TP_RESTART=0 tp_log=$FAKE/log tp_log_start=0 tp_pools=(train reward,critic)
tp_why() {`+text+`
tp_why 0 1
echo "$tp_state|${tp_reason%% after *}"`)
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "FAKE=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestWhySlurmEndsAJob(t *testing.T) {
	record := func(lead, second string) string {
		return "JobId=7 HetJobId=7 HetJobOffset=0 JobName=x JobState=" + lead + " Dependency=(null) Restarts=0 NodeList=n1 \n" +
			"JobId=8 HetJobId=7 HetJobOffset=1 JobName=x JobState=" + second + " Dependency=(null) Restarts=0 NodeList=n2 \n"
	}
	for _, c := range []struct{ name, show, log, want string }{
		{"nothing", record("RUNNING Reason=None", "RUNNING Reason=None"), "", "|"},
		{"nobody answers", "", "", "|"},
		{"a signal is no end", record("SIGNALING Reason=None", "SIGNALING Reason=None"), "", "|"},
		{"suspended is no end", record("SUSPENDED Reason=None", "SUSPENDED Reason=None"), "", "|"},
		{"cancelled", record("CANCELLED Reason=None", "CANCELLED Reason=None"), "", "CANCELLED|cancelled"},
		{"time limit on 22.05", record("COMPLETING Reason=None", "COMPLETING Reason=None"), "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026 DUE TO TIME LIMIT ***", "TIMEOUT|time limit reached"},
		{"a pool's time limit", record("RUNNING Reason=None", "TIMEOUT Reason=TimeLimit"), "", "TIMEOUT|pool reward,critic reached its own time limit"},
		{"a pool's time limit while it completes", record("RUNNING Reason=None", "COMPLETING Reason=TimeLimit"), "", "TIMEOUT|pool reward,critic reached its own time limit"},
		{"a pool's time limit by its step", record("RUNNING Reason=None", "COMPLETING Reason=None"), "slurmstepd-n2: error: *** STEP 8.0 ON n2 CANCELLED AT 2026 DUE TO TIME LIMIT ***", "TIMEOUT|pool reward,critic reached its own time limit"},
		{"a step that was asked to stop in a pool that goes on", record("RUNNING Reason=None", "RUNNING Reason=None"), "slurmstepd-n2: error: *** STEP 8.0 ON n2 CANCELLED AT 2026 ***", "|"},
		{"a pool cancelled alone", record("RUNNING Reason=None", "CANCELLED Reason=None"), "", "CANCELLED|pool reward,critic was cancelled"},
		{"a pool preempted alone", record("RUNNING Reason=None", "PREEMPTED Reason=None"), "", "PREEMPTED|pool reward,critic was preempted"},
		{"a pool's node", record("RUNNING Reason=None", "NODE_FAIL Reason=None"), "", "FAILED|pool reward,critic lost node n2"},
		{"the job's nodes", record("NODE_FAIL Reason=None", "NODE_FAIL Reason=None"), "", "FAILED|node n1,n2 failed"},
		{"a node on 22.05", record("COMPLETING Reason=None", "NODE_FAIL Reason=None"), "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", "FAILED|node n1,n2 failed"},
		{"requeued", strings.ReplaceAll(record("COMPLETING Reason=None", "COMPLETING Reason=None"), "Restarts=0", "Restarts=1"), "", "PREEMPTED|requeued"},
		{"requeued for a node", strings.ReplaceAll(record("NODE_FAIL Reason=None", "NODE_FAIL Reason=None"), "Restarts=0", "Restarts=1"), "", "PREEMPTED|node n1,n2 failed"},
		{"within its grace time", strings.ReplaceAll(record("RUNNING Reason=None", "RUNNING Reason=None"), "Restarts=0", "Restarts=0 PreemptTime=2026-11-30T20:00:00"), "", "PREEMPTED|preempted, within its grace time,"},
		{"the whole job before the pool", record("CANCELLED Reason=None", "TIMEOUT Reason=TimeLimit"), "", "CANCELLED|cancelled"},
	} {
		if got := why(t, c.show, c.log); got != c.want {
			t.Errorf("%s: %q, wanted %q", c.name, got, c.want)
		}
	}
}
