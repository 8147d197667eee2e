package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// says waits until tp job why has these words for a run.
func (w *world) says(id, words string) {
	w.Helper()
	re, out := regexp.MustCompile(words), ""
	defer func() {
		if w.Failed() {
			w.Logf("tp job why says %s", out)
		}
	}()
	w.waitFor(time.Minute, "tp job why to say "+words, func() bool {
		r := w.tp("job", "why", id)
		out = r.out + r.err
		return r.code == 0 && re.MatchString(r.out)
	})
}

// TestWhyNamesWhatARunWaitsFor: the job, the time and the command to type, and
// after the end of what it waited for why Slurm has cancelled it.
func TestWhyNamesWhatARunWaitsFor(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": `until [ -e "$TP_OUT_DIR/over" ]; do sleep 0.2; done; exit 3`})
		w.commit()
		submit := func(args ...string) submission {
			return w.submit(append([]string{"one", "--profile", "cpu:1", "--cpus-per-node", "1", "--mem", "50M"}, args...)...)
		}
		first := submit()
		w.appears(first.RunDir, "logs/train.node0.log")
		held := submit("--hold")
		w.says(held.RunID, `QUEUED: you hold it: scontrol release `+held.job()+`\n`)
		later := submit("--begin", "now+2h")
		w.says(later.job(), later.RunID+` QUEUED \(scheduleWindow\): it begins at 20[0-9-]+ [0-9:]+ at the earliest`)
		after := submit("--dependency", "afterok:"+first.RunID)
		w.says(after.RunID, `QUEUED: it waits for job `+first.job()+` to succeed`)
		w.must("touch", first.RunDir+"/out/over")
		w.wait(first.RunDir, "FAILED")
		w.says(after.RunID, `CANCELLED: a job it depends on failed: it will never start \(it waited for job `+first.job()+` to succeed\)`)
		// The newest run is the same to all, and nobody is asked without a terminal.
		for _, command := range []string{"why", "status"} {
			if r := w.tp("job", command); r.code != 0 || !strings.Contains(r.out, after.RunID) {
				w.Errorf("tp job %s: exit code %d\n%s%s", command, r.code, r.out, r.err)
			}
		}
		if r := w.tp("job", "cancel"); r.code != 2 || !strings.Contains(r.err, later.RunID) {
			w.Errorf("tp job cancel without an id: exit code %d\n%s%s", r.code, r.out, r.err)
		}
		for _, s := range []submission{held, later} {
			if r := w.tp("job", "cancel", s.job()); r.code != 0 || !strings.Contains(r.out, s.RunID+" "+s.job()+" CANCELLED") {
				w.Errorf("tp job cancel %s: exit code %d\n%s%s", s.job(), r.code, r.out, r.err)
			}
		}
	})
}
