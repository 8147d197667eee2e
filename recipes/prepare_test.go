package recipes

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What data/prep's program makes of lines, and that it leaves none out in silence.
func TestPrepare(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	prepare := func(text string, args ...string) (string, error) {
		put(t, dir+"/in.jsonl", text)
		words := append([]string{"catalog/data/prep/template/prepare.py", "--train-data", dir + "/in.jsonl", "--output-dir", dir + "/out"}, args...)
		out, err := exec.Command("python3", words...).CombinedOutput()
		return string(out), err
	}
	two := "\ufeff{\"question\": \"1+1 實\", \"answer\": \"so #### 2\"}\r\n\n{\"question\": \"2+2\", \"answer\": \"so #### 4\"}\n"
	for form, want := range map[string]string{
		"verl": `{"data_source": "gsm", "prompt": [{"role": "user", "content": "1+1 實 Think."}], "ability": "prepared", "reward_model": {"style": "rule", "ground_truth": "2"}, ` +
			`"extra_info": {"split": "train", "index": 0, "question": "1+1 實", "answer": "so #### 2"}}`,
		"prompt":   `{"prompt": [{"role": "user", "content": "1+1 實 Think."}], "answer": "2"}`,
		"messages": `{"messages": [{"role": "user", "content": "1+1 實 Think."}, {"role": "assistant", "content": "so #### 2"}]}`,
	} {
		out, err := prepare(two, "--form", form, "--answer-after", "####", "--instruction", "Think.", "--data-source", "gsm", "--validation-data", dir+"/in.jsonl")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, split := range []string{"train", "validation"} {
			data, err := os.ReadFile(dir + "/out/data/" + split + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(data), "\n")
			if len(lines) != 3 || lines[0] != strings.Replace(want, `"split": "train"`, `"split": "`+split+`"`, 1) {
				t.Errorf("%s %s has %d lines, the first\n%s\nwanted\n%s", form, split, len(lines)-1, lines[0], want)
			}
		}
	}
	// A part of the lines is kept for validation, each line once, the same ones every time.
	var many strings.Builder
	for i := range 100 {
		json.NewEncoder(&many).Encode(map[string]any{"question": strings.Repeat("q", i+1), "answer": i})
	}
	var before []byte
	for range 2 {
		if out, err := prepare(many.String(), "--validation-part", "0.1"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		train, _ := os.ReadFile(dir + "/out/data/train.jsonl")
		validation, _ := os.ReadFile(dir + "/out/data/validation.jsonl")
		if bytes.Count(train, []byte("\n")) != 90 || bytes.Count(validation, []byte("\n")) != 10 || before != nil && !bytes.Equal(before, validation) {
			t.Errorf("%d lines to train on, %d to validate", bytes.Count(train, []byte("\n")), bytes.Count(validation, []byte("\n")))
		}
		for i := range 100 {
			row := `"question": "` + strings.Repeat("q", i+1) + `"`
			if n := bytes.Count(train, []byte(row)) + bytes.Count(validation, []byte(row)); n != 1 {
				t.Errorf("line %d is there %d times", i, n)
			}
		}
		before = validation
	}
	for text, want := range map[string]string{
		"{\"question\": \"a\", \"answer\": \"#### b\"}\n{": "in.jsonl:2: expected an object with question and answer",
		"[1]\n":                                "in.jsonl:1: expected an object",
		"{\"question\": \"a\"}\n":              "in.jsonl:1: expected an object",
		"{\"question\": 1, \"answer\": 2}":     "in.jsonl:1: question is no text",
		"{\"question\": \"a\", \"answer\": 2}": "in.jsonl:1: answer has no ####",
		"\n":                                   "has no lines",
	} {
		if out, err := prepare(text, "--answer-after", "####"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s, wanted %q", text, err, out, want)
		}
	}
}

// A pool of CPUs may have two nodes without saying so; the job ends before it
// starts anything twice.
func TestOneNodeInTheJob(t *testing.T) {
	l, e := newLab(t, "data/prep", "x", nil)
	s, _ := compose(t, l, e, Options{Profiles: []string{"cpu:2"}, TrainData: "/d"})
	cmd := exec.Command("bash", "-euc", s.Roles[0].Body)
	cmd.Env = []string{"TP_NNODES=2", "PATH=/nowhere"}
	out, _ := cmd.CombinedOutput()
	if want := "tp: data/prep runs on one node, and its pool has 2\n"; string(out) != want || cmd.ProcessState.ExitCode() != 64 {
		t.Errorf("exit code %d: %q, wanted %q", cmd.ProcessState.ExitCode(), out, want)
	}
}
