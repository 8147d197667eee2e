package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// asking is two pools with options of Slurm.
func asking(job spec.Slurm) Input {
	in := input("train=h200:8", "rollout=h100:4")
	in.Spec.Job.Slurm = job
	return in
}

func TestOptionsReachTheirComponent(t *testing.T) {
	in := asking(spec.Slurm{
		MemPerGPU: spec.PerRole{"rollout": "2G"}, MemPerCPU: spec.PerRole{"train": "100M"}, TimeMin: spec.PerRole{"": "30m"},
		Prefer: spec.PerRole{"rollout": "ib"}, NodeList: spec.PerRole{"rollout": "h100-[1-2]"}, Exclusive: spec.PerRole{"": "true", "rollout": "user"},
		Switches: spec.PerRole{"": "2@30m"}, Begin: "now+2h", Hold: true, Nice: 5, Licenses: "matlab:1", Signal: "USR1@5m", Comment: "mine",
		MailType: []string{"END"}, WCKey: "w",
	})
	in.Asked = in.Now.Add(-time.Hour) // when the plan was shown
	in.Dependency = "afterok:7"
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Fixed.Request
	train, rollout := r.Components[0], r.Components[1]
	if train.MemoryPerCPU != 100 || train.Memory != 0 || rollout.MemoryPerGPU != 2048 || rollout.Memory != 0 || p.Fixed.Pools[1].MemoryMiB != 8192 {
		t.Errorf("memory: %+v, %+v", train, rollout)
	}
	if train.Share != slurm.Exclusive || rollout.Share != slurm.ExclusiveUser || train.Prefer != "" || rollout.Prefer != "ib" || len(rollout.NodeList) != 1 {
		t.Errorf("by role: %+v, %+v", train, rollout)
	}
	if train.TimeMin != 30 || rollout.Switches != 2 || rollout.SwitchWait != 30*time.Minute || train.Licenses != "matlab:1" || rollout.Licenses != "" {
		t.Errorf("%+v, %+v", train, rollout)
	}
	if !r.Begin.Equal(in.Now.Add(time.Hour)) || !r.Hold || r.Nice != 5 || r.Signal.String() != "USR1@300" || r.Comment != "tp:"+in.RunID+" mine" || r.Dependency != "afterok:7" || r.WCKey != "w" {
		t.Errorf("the job: %+v", r)
	}
}

func TestRefusedOptions(t *testing.T) {
	for want, job := range map[string]spec.Slurm{
		"--mem-per-cpu and --mem-per-gpu exclude": {MemPerCPU: spec.PerRole{"": "1G"}, MemPerGPU: spec.PerRole{"": "1G"}},
		"more than its time limit":                {TimeMin: spec.PerRole{"": "2h"}},
		"could never end in time":                 {Deadline: "now+1h"},
		"1 hour after the earliest start":         {Begin: "now+1h", Deadline: "now+2h"},
		"control character":                       {Comment: "a\nb"},
		"ago":                                     {Begin: "2001-01-01T00:00"},
		`mail type "X"`:                           {MailType: []string{"X"}},
		"holding is a priority of 0":              {Hold: true, Priority: 5},
	} {
		if _, err := Resolve(asking(job)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", job, err, want)
		}
	}
	in := input("cpu:1")
	in.Spec.Job.MemPerGPU = spec.PerRole{"": "1G"}
	if _, err := Resolve(in); err == nil || !strings.Contains(err.Error(), "no GPUs") {
		t.Errorf("memory for GPUs that are not there: %v", err)
	}
	// A least time limit makes the deadline possible.
	if _, err := Resolve(asking(spec.Slurm{Deadline: "now+1h", TimeMin: spec.PerRole{"": "30m"}})); err != nil {
		t.Error(err)
	}
}

func TestWhatSbatchHandsDownIsSaid(t *testing.T) {
	in := input("train=h200:8", "rollout=h100:4")
	in.Spec.Job.QOS = spec.PerRole{"train": "high"}
	p, err := Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(p.Observed.Warnings, "\n"); !strings.Contains(text, "pool rollout is given no qos") || !strings.Contains(text, "--qos rollout=VALUE") {
		t.Errorf("warnings %q", text)
	}
}
