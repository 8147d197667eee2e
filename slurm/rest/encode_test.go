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
		"no interpreter":          func(r *slurm.Request) { r.Script = "true\n" },
		"DOS line ends":           func(r *slurm.Request) { r.Script = "#!/bin/bash\r\ntrue\r\n" },
		"huge script":             func(r *slurm.Request) { r.Script += strings.Repeat("#\n", 3<<20) },
		"NUL in the script":       func(r *slurm.Request) { r.Script += "\x00" },
		"script not UTF-8":        func(r *slurm.Request) { r.Script += "\xff" },
		"no environment":          func(r *slurm.Request) { r.Env = nil },
		"bad variable":            func(r *slurm.Request) { r.Env[0].Name = "A=B" },
		"value not UTF-8":         func(r *slurm.Request) { r.Env[0].Value = "\xff" },
		"no directory":            func(r *slurm.Request) { r.WorkDir = "" },
		"relative directory":      func(r *slurm.Request) { r.WorkDir = "x" },
		"newline in the name":     func(r *slurm.Request) { r.Name = "a\n#SBATCH --time=1" },
		"escape in the comment":   func(r *slurm.Request) { r.Comment = "\x1b[2J" },
		"long name":               func(r *slurm.Request) { r.Name = strings.Repeat("x", 201) },
		"no component":            func(r *slurm.Request) { r.Components = nil },
		"129 components":          func(r *slurm.Request) { r.Components = make([]slurm.Component, 129) },
		"no nodes":                func(r *slurm.Request) { r.Components[1].Nodes = 0 },
		"licences on component 1": func(r *slurm.Request) { r.Components[1].Licenses = "matlab:1" },
		"newline in a partition":  func(r *slurm.Request) { r.Components[1].Partition = "a\nb" },
		"GRES with a comma":       func(r *slurm.Request) { r.Components[0].GRES[0].Type = "a,b" },
	} {
		server, c := recorded(t, "testdata/24.11/v0.0.42", nil)
		r := request()
		change(r)
		sub, err := c.Submit(t.Context(), r)
		if err == nil || sub.ID != 0 {
			t.Errorf("%s is taken", what)
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
