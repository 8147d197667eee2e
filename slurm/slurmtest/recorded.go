package slurmtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Recorded is a slurmrestd that answers from files: raw HTTP answers of real
// servers (status line, headers, blank line, body), one dialect a folder.
//
//	server := httptest.NewServer(&slurmtest.Recorded{Dir: "testdata/24.11/v0.0.42"})
type Recorded struct {
	Dir string
	// Answers maps "GET /slurm/<dialect>/nodes" to a file without ".resp", in
	// addition to the usual ones.
	Answers map[string]string

	mu  sync.Mutex
	log []Request
}

// Request is one request as the server got it.
type Request struct {
	Line   string // "POST /slurm/v0.0.42/job/submit"
	Header http.Header
	Body   []byte
}

// usual answers; {d} stands for the dialect.
var usual = map[string]string{
	"GET /slurm/{d}/ping":         "ping",
	"GET /slurm/{d}/nodes":        "nodes",
	"GET /slurm/{d}/partitions":   "partitions",
	"GET /slurm/{d}/reservations": "reservations",
	"GET /slurmdb/{d}/clusters":   "db-clusters",
	"POST /slurm/{d}/job/submit":  "submit-het",
}

func (s *Recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.RequestURI()
	s.mu.Lock()
	s.log = append(s.log, Request{Line: line, Header: r.Header.Clone(), Body: body})
	s.mu.Unlock()
	pattern := strings.ReplaceAll(line, "/"+filepath.Base(s.Dir)+"/", "/{d}/")
	name := s.Answers[pattern]
	if name == "" {
		name = usual[pattern]
	}
	if name == "" {
		name = "nosuch-version"
	}
	s.play(w, name)
}

func (s *Recorded) play(w http.ResponseWriter, name string) {
	raw, err := os.ReadFile(filepath.Join(s.Dir, name+".resp"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	head, body, _ := bytes.Cut(raw, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	for _, l := range lines[1:] {
		if key, value, ok := strings.Cut(l, ":"); ok {
			w.Header().Set(key, strings.TrimSpace(value))
		}
	}
	status := http.StatusOK
	_, _ = fmt.Sscanf(lines[0], "HTTP/1.1 %d", &status)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Log is what was asked so far, in order.
func (s *Recorded) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}
