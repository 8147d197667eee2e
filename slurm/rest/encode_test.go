package rest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

// The bodies of every dialect, as sent. Real servers took the same fields in
// the conformance suite.
func TestEncodedRequests(t *testing.T) {
	for _, dir := range corpus(t) {
		server, c := recorded(t, dir, nil)
		sub, err := c.Submit(t.Context(), request())
		if err != nil || sub.ID == 0 {
			t.Fatalf("%s: %+v, %v", dir, sub, err)
		}
		log := server.Log()
		last := log[len(log)-1]
		var body bytes.Buffer
		if err := json.Indent(&body, last.Body, "", " "); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(body.String(), "null") {
			t.Errorf("%s: a null is sent, which Slurm reads as 0", dir)
		}
		golden := filepath.Join(dir, "submit.golden")
		got := last.Line + "\n" + body.String()
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != got {
			t.Errorf("%s differs (%v); run with -update and look at the difference", golden, err)
		}
		if lost := strings.Join(sub.Warnings, "\n"); strings.Contains(lost, "Signal: ") != (last.Line == "POST /slurm/v0.0.38/job/submit") {
			t.Errorf("%s: warnings %q", dir, lost)
		}
	}
}

func TestOnePoolIsAPlainJob(t *testing.T) {
	for _, dir := range corpus(t) {
		server, c := recorded(t, dir, nil)
		r := request()
		r.Components = r.Components[:1]
		if _, err := c.Submit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		log := server.Log()
		var body map[string]json.RawMessage
		if err := json.Unmarshal(log[len(log)-1].Body, &body); err != nil || body["job"] == nil || body["jobs"] != nil || body["script"] == nil {
			t.Errorf("%s: %v, %v", dir, body, err)
		}
	}
}

// What the sbatch client would refuse must be refused here: slurmrestd takes it.
func TestRefusedBeforeSending(t *testing.T) {
	for what, change := range map[string]func(*slurm.Request){
		"a script without an interpreter": func(r *slurm.Request) { r.Script = "true\n" },
		"a script that is not UTF-8":      func(r *slurm.Request) { r.Script += "\xff" },
		"a value that is not UTF-8":       func(r *slurm.Request) { r.Env[0].Value = "\xff" },
	} {
		server, c := recorded(t, "testdata/24.11/v0.0.42", nil)
		r := request()
		change(r)
		if sub, err := c.Submit(t.Context(), r); err == nil || sub.ID != 0 {
			t.Errorf("%s is taken: %+v", what, sub)
		}
		for _, got := range server.Log() {
			if strings.HasPrefix(got.Line, "POST") {
				t.Errorf("%s is sent", what)
			}
		}
	}
}

func TestCheckSendsNothing(t *testing.T) {
	server, c := recorded(t, "testdata/22.05/v0.0.38", nil)
	warnings, err := c.Check(t.Context(), request())
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "Slurm 22.05") {
		t.Errorf("%q, %v", warnings, err)
	}
	for _, got := range server.Log() {
		if strings.HasPrefix(got.Line, "POST") {
			t.Errorf("sent %s", got.Line)
		}
	}
}
