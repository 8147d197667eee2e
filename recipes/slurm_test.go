package recipes

import (
	"strings"
	"testing"
)

func TestSlurmKeys(t *testing.T) {
	l, e := newLab(t, "custom/custom", "x", map[string]string{"job.toml": `
nice = 3
hold = true
begin = "20:00"
mail_type = ["end", "TIME_LIMIT_80"]
exclusive = true
licenses = "matlab:1"
mem = "100G"
[switches]
train = "1@30m"
`})
	nice := 7
	s, how, err := Compose(l, e, Options{Profiles: []string{"h200"}, Slurm: Slurm{
		Nice: &nice, MemPerGPU: []string{"2G"}, After: []string{"run-4f2a91", "12"}, Dependency: []string{"afterany:7,afternotok:8"}, MailUser: "ann",
	}})
	if err != nil {
		t.Fatal(err)
	}
	j := s.Job
	if j.Nice != 7 || !j.Hold || j.Begin != "20:00" || strings.Join(j.MailType, ",") != "END,TIME_LIMIT_80" || j.Exclusive[""] != "true" || j.Switches["train"] != "1@30m" ||
		j.Licenses != "matlab:1" || j.MailUser != "ann" || strings.Join(j.After, " ") != "afterok:run-4f2a91 afterok:12 afterany:7 afternotok:8" {
		t.Errorf("%+v", j)
	}
	if j.Memory != nil || j.MemPerGPU[""] != "2G" {
		t.Errorf("a flag's way of counting memory hides the file's: %v, %v", j.Memory, j.MemPerGPU)
	}
	origins := map[string]string{}
	for _, setting := range how.Settings {
		origins[setting.Key] = setting.Origin
	}
	for key, want := range map[string]string{
		"nice": "--nice", "hold": "job.toml:3", "begin": "job.toml:4", "mail_type": "job.toml:5", "exclusive": "job.toml:6", "licenses": "job.toml:7",
		"switches.train": "job.toml:10", "mem_per_gpu": "--mem-per-gpu", "mail_user": "--mail-user", "dependency": "--dependency, --after",
	} {
		if origins[key] != want {
			t.Errorf("%s comes from %q, want %q", key, origins[key], want)
		}
	}
}

func TestSlurmErrors(t *testing.T) {
	for want, o := range map[string]Slurm{
		`--begin: "now+60": the unit is missing`:          {Begin: "now+60"},
		`--licenses: "train=matlab": licences are`:        {Licenses: "train=matlab"},
		`--signal: "B:USR1@60": the signal goes`:          {Signal: "B:USR1@60"},
		`--mail-type: "SOON": expected NONE`:              {MailType: []string{"soon"}},
		`--mem-per-cpu: 0 is no size`:                     {MemPerCPU: []string{"0"}},
		`--time-min: "UNLIMITED"`:                         {TimeMin: []string{"UNLIMITED"}},
		`--nodelist: "/etc/passwd" is no list`:            {NodeList: []string{"/etc/passwd"}},
		`--exclusive: "nobody": expected exclusive`:       {Exclusive: []string{"nobody"}},
		`--switches: "0": expected a number`:              {Switches: []string{"train=0"}},
		`--segment: "x": expected a whole number`:         {Segment: []string{"x"}},
		`--prefer "reward=ib": custom/custom has no role`: {Prefer: []string{"reward=ib"}},
		`singleton waits for jobs of the same name`:       {Dependency: []string{"singleton"}},
		`alternatives (?) are not read`:                   {Dependency: []string{"afterok:1?afterok:2"}},
		`"7": expected TYPE:ID`:                           {Dependency: []string{"7"}},
		`"x" is no id of a job or run`:                    {After: []string{"x"}},
	} {
		l, e := newLab(t, "custom/custom", "x", nil)
		if _, _, err := Compose(l, e, Options{Profiles: []string{"h200"}, Slurm: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for text, want := range map[string]string{
		"nice = 99999999999\n":        "job.toml:1: nice",
		"priority = 0\n":              "job.toml:1: priority: 0: expected a whole number from 1",
		"hold = true\npriority = 5\n": "exclude each other",
		"switches = '1:30'\n":         "job.toml:1:1: switches",
	} {
		l, e := newLab(t, "custom/custom", "x", map[string]string{"job.toml": text})
		if _, _, err := Compose(l, e, Options{Profiles: []string{"h200"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
