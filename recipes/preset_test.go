package recipes

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tuneplane/tp/internal/lab"
)

// form is what a platform's form for fine-tuning asks for, by the key that each
// framework has for it, with the form's own default. What a framework lacks is
// said in words.
var form = map[string]map[string]string{
	"llamafactory": {
		"num_train_epochs": "2", "per_device_train_batch_size": "1", "learning_rate": "1.0e-5", "save_steps": "750", "cutoff_len": "2048",
		"gradient_accumulation_steps": "1", "disable_gradient_checkpointing": "false", "deepspeed": "ds_z3.json", "overwrite_output_dir": "false",
	},
	"trl": {
		"num_train_epochs": "2", "per_device_train_batch_size": "1", "learning_rate": "1.0e-5", "save_steps": "750", "max_length": "2048",
		"gradient_accumulation_steps": "1", "gradient_checkpointing": "true", "deepspeed": "ds_z3.json",
	},
}

// plainly are the words that say what a framework lacks, or how it resumes.
var plainly = []string{"Tensor and pipeline parallelism, vendor acceleration", "Resuming: ", "Stage: "}

// Every preset fills the whole form in, with keys that the framework has, and is
// a job as it is.
func TestPresets(t *testing.T) {
	found := 0
	for _, name := range Embedded().Names() {
		r, err := Embedded().Get(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Presets {
			found++
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				l, err := lab.Init(t.Context(), t.TempDir()+"/lab", lab.InitOptions{NoGit: true})
				if err != nil {
					t.Fatal(err)
				}
				for i, version := range r.Framework.Versions {
					e, err := NewExperiment(l, Embedded(), fmt.Sprint("e", i), New{Recipe: name, Preset: p.Name, Version: "test"})
					if err != nil {
						t.Fatal(err)
					}
					lock, err := NewLock(r, version)
					if err != nil {
						t.Fatal(err)
					}
					_, how, err := Compose(l, e, Options{Lock: lock, Profiles: []string{"h200:8"}, Model: "/m", TrainData: "/d"})
					if err != nil {
						t.Fatalf("%s: %v", version, err)
					}
					if len(how.Warnings) > 0 {
						t.Errorf("%s: %q", version, how.Warnings)
					}
				}
				dir := l.Root + "/experiments/e0/"
				text, err := os.ReadFile(dir + configName)
				if err != nil {
					t.Fatal(err)
				}
				for key, want := range form[r.Framework.Kind] {
					value := regexp.MustCompile(`(?m)^` + key + `: +(\S+)`).FindSubmatch(text)
					if value == nil || string(value[1]) != want {
						t.Errorf("%s is %q, wanted %s", key, value, want)
					}
				}
				for _, words := range plainly {
					if !strings.Contains(string(text), "# "+words) {
						t.Errorf("nothing is said about %q", words)
					}
				}
				tuned := regexp.MustCompile(`(?m)^(finetuning_type: lora|use_peft: true) `).Match(text)
				if tuned != (p.Name == "lora") || p.Doc == "" {
					t.Errorf("LoRA is %v in the preset %s (%s)", tuned, p.Name, p.Doc)
				}
				for stage, file := range map[string]string{"0": "ds_z0", "2": "ds_z2", "2 cpu": "ds_z2_offload", "3": "ds_z3", "3 cpu": "ds_z3_offload"} {
					var ds struct {
						Zero struct {
							Stage   int
							Offload struct{ Device string } `json:"offload_optimizer"`
						} `json:"zero_optimization"`
					}
					data, err := os.ReadFile(dir + file + ".json")
					if err != nil {
						t.Fatal(err)
					}
					if err := json.Unmarshal(data, &ds); err != nil {
						t.Fatal(err)
					}
					if got := strings.TrimSpace(fmt.Sprint(ds.Zero.Stage, " ", ds.Zero.Offload.Device)); got != stage {
						t.Errorf("%s is stage %s, wanted %s", file, got, stage)
					}
				}
				job, err := os.ReadFile(dir + "job.toml")
				if err != nil {
					t.Fatal(err)
				}
				if rows := regexp.MustCompile(`(?m)^#   "/[^":]+:/[^":]+(:ro)?",`).FindAll(job, -1); len(rows) != 4 {
					t.Errorf("%d rows of mounts in\n%s", len(rows), job)
				}
			})
		}
	}
	if found != 10 {
		t.Errorf("%d presets", found)
	}
}

func TestPresetRefusals(t *testing.T) {
	l, err := lab.Init(t.Context(), t.TempDir()+"/lab", lab.InitOptions{NoGit: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExperiment(l, Embedded(), "one", New{Recipe: "trl/sft", Preset: "lora"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    New
		want string
	}{
		{New{Recipe: "trl/sft", Preset: "lroa"}, `--preset "lroa": trl/sft has the presets full and lora`},
		{New{Recipe: "trl/sft", Preset: "../template"}, "has the presets full and lora"},
		{New{Recipe: "verl/grpo", Preset: "lora"}, "verl/grpo has no presets"},
		{New{Preset: "lora", From: e}, "only one of them"},
	} {
		if _, err := NewExperiment(l, Embedded(), "two", c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, wanted %q", c.o, err, c.want)
		}
	}
	if _, err := os.Stat(l.Root + "/experiments/two"); !os.IsNotExist(err) {
		t.Error("a refused experiment was made")
	}
}

// A lab's recipe may have presets as well.
func TestPresetOfALab(t *testing.T) {
	dir := ours(t)
	put(t, dir+"/mine/train/presets/small/config.yaml", "# Small: for one GPU.\nsize: 1\n")
	put(t, dir+"/mine/presets/notes.txt", "for all of them")
	c, err := Embedded().With(dir, "lab")
	if err != nil {
		t.Fatal(err)
	}
	r := c.has("mine/train")
	if len(r.Presets) != 1 || r.Presets[0] != (Preset{"small", "Small: for one GPU."}) || !strings.Contains(r.Describe(), "  small\n      Small: for one GPU.\n") {
		t.Errorf("%v\n%s", r.Presets, r.Describe())
	}
	all, err := r.templates("small")
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for i, file := range []string{"train.sh", "notes.txt", "config.yaml"} {
		if _, err := fs.Stat(all[i], file); err != nil {
			t.Error(err)
		}
	}
	put(t, dir+"/mine/train/presets/small/config.yaml", "# \x1b]0;x\a\n")
	if _, err := Embedded().With(dir, "lab"); err == nil || !strings.Contains(err.Error(), "control character") {
		t.Error(err)
	}
	if err := os.Symlink("/etc/passwd", dir+"/mine/presets/passwd"); err != nil {
		t.Fatal(err)
	}
	if _, err := Embedded().With(dir, "lab"); err == nil || !strings.Contains(err.Error(), "mine/presets/passwd is no regular file") {
		t.Error(err)
	}
}
