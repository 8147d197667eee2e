package e2e

import (
	"strings"
	"testing"
)

// TestRefusals has everything that a user may get wrong, with the exit code and
// what the message must say. Nothing may have been packed or queued.
func TestRefusals(t *testing.T) {
	cases := []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"tow", "--profile", "h200"}, 2, []string{`no experiment "tow"`, `"two"`}},
		{[]string{"two", "--profile", "h20:8"}, 3, []string{`series "h20"`, "did you mean h200", "tp fleet show"}},
		{[]string{"two", "--profile", "h200:eight"}, 2, []string{"h200:eight"}},
		{[]string{"two", "--profile", "trian=h200:8", "--profile", "rollout=h100:4"}, 2, []string{`no role "trian"`, `did you mean "train"`}},
		{[]string{"two", "--profile", "train=h200:8"}, 2, []string{`the role "rollout" has no pool`}},
		{[]string{"two", "--profile", "h200:8", "--profile", "h100:8"}, 2, []string{"with several profiles each says which roles"}},
		{[]string{"two", "--profile", "train=h200:8", "--profile", "train,rollout=h100:8"}, 2, []string{`the role "train" has a pool already`}},
		{[]string{"two"}, 2, []string{"--profile"}},
		{[]string{"two", "--profile", "h200:2x9"}, 3, []string{"a node of h200 has 8 devices, not 9", "h200:2x8"}},
		{[]string{"two", "--profile", "h200:12"}, 3, []string{"12 is no multiple of 8", "8 or 16"}},
		{[]string{"two", "--profile", "h200:32"}, 3, []string{"capacity.neverFits", "4 nodes", "only 2"}},
		{[]string{"two", "--profile", "train=h200:16", "--profile", "rollout=h200:4"}, 3, []string{"capacity.neverFits"}},
		{[]string{"two", "--profile", "h200", "--mem", "2T"}, 3, []string{"capacity.neverFits", "2048G", "1000000M"}},
		{[]string{"two", "--profile", "h200", "--cpus-per-node", "65"}, 3, []string{"capacity.neverFits", "65"}},
		{[]string{"two", "--profile", "h200", "--constraint", "h100"}, 3, []string{"capacity.neverFits"}},
		{[]string{"two", "--profile", "h200", "--time", "8-00:00:00"}, 3, []string{"capacity.neverFits", "8-00:00:00", "7-00:00:00"}},
		{[]string{"two", "--profile", "h100", "--partition", "short", "--time", "31m"}, 3, []string{"0-00:30:00"}},
		{[]string{"two", "--profile", "h200", "--time", "1:30"}, 2, []string{"ambiguous", "1h30m"}},
		{[]string{"two", "--profile", "h200", "--time", "0"}, 2, []string{"UNLIMITED"}},
		{[]string{"two", "--profile", "h200", "--mem", "100"}, 2, []string{"100M", "100G"}},
		{[]string{"two", "--profile", "h200", "--partition", "h20"}, 3, []string{"partition h20", "--partition", "h200"}},
		{[]string{"two", "--profile", "h200", "--partition", "restricted", "--account", "research"}, 3, []string{"restricted"}},
		{[]string{"ddp", "--profile", "h200", "-s", "lrr=1"}, 2, []string{"lrr", `did you mean "lr"`}},
		{[]string{"ddp", "--profile", "h200", "-s", "epochs=many"}, 2, []string{"epochs", "many"}},
		{[]string{"ddp", "--profile", "h200", "-s", "procs_per_node=0"}, 2, []string{"procs_per_node", "1"}},
		{[]string{"ddp", "--profile", "h200", "-s", "procs_per_node=2000"}, 2, []string{"procs_per_node", "1024"}},
		{[]string{"two", "--profile", "h200", "--plan", "0123456789ab"}, 4, []string{"tp plan"}},
		{[]string{"two", "--profile", "h200", "--qso", "high"}, 2, []string{"--qos"}},
	}
	each(t, func(w *world) {
		w.experiment("two", map[string]string{"train": "true", "rollout": "true"})
		w.write("experiments/ddp/recipe.lock.json", w.read("../lab/experiments/cnn-ddp/recipe.lock.json"))
		w.write("experiments/ddp/config.yaml", "epochs: 6\nlr: 0.002\n")
		w.write("experiments/ddp/train.py", "")
		w.write("experiments/ddp/job.toml", "time = \"10m\"\n")
		w.commit()
		for _, c := range cases {
			r := w.tp(append([]string{"submit", "--yes"}, c.args...)...)
			if r.code != c.code {
				w.Errorf("%q: exit code %d, wanted %d\n%s%s", c.args, r.code, c.code, r.out, r.err)
			}
			// The message is what follows the preview.
			_, message, _ := strings.Cut("\n"+r.err, "\ntp: ")
			for _, part := range c.says {
				if !strings.Contains(message, part) {
					w.Errorf("%q: the message does not say %q:\n%s", c.args, part, message)
				}
			}
		}
		if r := w.tp("plan", "two", "--profile", "h200:32"); r.code != 3 || strings.Contains(r.out, "tp submit --plan") {
			w.Errorf("a blocked plan proposes to submit it, or exit code %d is not 3:\n%s", r.code, r.out)
		}
		if r := w.tp("submit", "two", "--profile", "h200"); r.code != 2 || !strings.Contains(r.err, "--yes") {
			w.Errorf("without a terminal and --yes: exit code %d\n%s", r.code, r.err)
		}
		w.write("experiments/two/train.sh", "#!/bin/bash\ntrue # changed\n")
		if r := w.tp("submit", "two", "--profile", "h200", "--yes"); r.code != 2 || !strings.Contains(r.err, "experiments/two/train.sh") || !strings.Contains(r.err, "--allow-dirty") {
			w.Errorf("with a changed file: exit code %d\n%s", r.code, r.err)
		}
		w.nothingHappened()
	})
}

// TestClusterRefusal is about what only the controller knows: the run is on
// record as failed, with Slurm's own words. What accounting and the snapshot
// know is refused before.
func TestClusterRefusal(t *testing.T) {
	each(t, func(w *world) {
		w.experiment("one", map[string]string{"train": "true"})
		w.commit()
		for _, c := range []struct {
			option, value string
			code          int
			says          string
		}{
			{"--qos", "deny4", 5, "the cluster refused the job"},
			// What accounting grants is known before.
			{"--qos", "secret", 3, "admission.qos"}, {"--qos", "nrmal", 3, "did you mean normal?"}, {"--account", "vip", 3, "your accounts are research, science"},
			{"--nodelist", "h200-9", 3, "no node h200-9"}, {"--nodelist", "h100-1", 3, "partition h200 has no node h100-1"}, {"--exclude-nodes", "nosuch", 3, "no node nosuch"},
			{"--licenses", "mtlab", 3, "did you mean matlab?"}, {"--licenses", "matlab:99", 3, "has 4 of it in all"},
		} {
			r := w.tp("submit", "--yes", "one", "--profile", "h200:8", c.option, c.value)
			if r.code != c.code || !strings.Contains(r.err, c.says) {
				w.Errorf("%s %s: exit code %d, wanted %d\n%s", c.option, c.value, r.code, c.code, r.err)
			}
		}
		if jobs := w.jobs("all"); len(jobs) > 0 {
			w.Errorf("jobs were queued: %v", jobs)
		}
	})
}
