// Command testreport turns the event stream of go test -json into what a
// person and a table want: the output of what failed, why something was
// skipped, and the counts per Slurm release.
//
//	go test -json ./... | testreport -suite unit -table results.tsv
//
// A test belongs to the release that an element of its name gives
// (TestSubmit/24.11/het), else to none ("-"). Only leaves count: a test with
// subtests speaks for itself only when it failed and none of them did.
// The exit code is 0 whatever the tests did: the table has it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"
)

// event is one line of test2json's output (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// result is one test or, with an empty name, one package.
type result struct {
	pkg, test, action string
	output            strings.Builder
	elapsed           float64
}

// counts of one row of the table.
type counts struct{ passed, failed, skipped int }

func main() {
	suite := flag.String("suite", "unit", "name of this run in the table")
	table := flag.String("table", "", "file to append the rows to: suite, release, passed, failed, skipped")
	flag.Parse()
	results, err := read(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	rows := report(os.Stdout, results)
	if *table == "" {
		return
	}
	if err := appendRows(*table, *suite, rows); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

// read collects the events; lines that are none (go's own messages) and the
// compiler's output go straight to talk, so that a run can be followed.
func read(in io.Reader, talk io.Writer) ([]*result, error) {
	var all []*result
	byName := map[string]*result{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				talk.Write(line)
			} else if e.Action == "build-output" {
				io.WriteString(talk, e.Output)
			} else if e.Package != "" {
				key := e.Package + " " + e.Test
				r := byName[key]
				if r == nil {
					r = &result{pkg: e.Package, test: e.Test}
					byName[key] = r
					all = append(all, r)
				}
				r.add(e, talk)
			}
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

func (r *result) add(e event, talk io.Writer) {
	switch e.Action {
	case "output":
		r.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		r.action, r.elapsed = e.Action, e.Elapsed
		if r.test == "" && e.Action != "skip" {
			took := time.Duration(e.Elapsed * float64(time.Second)).Round(100 * time.Millisecond)
			fmt.Fprintf(talk, "%-4s %s  %s\n", e.Action, r.pkg, took)
		}
	}
}

// report prints what failed and what was skipped and why, and returns the counts by release.
func report(out io.Writer, results []*result) map[string]*counts {
	hasSubtests, failedBelow := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		if r.test == "" {
			continue
		}
		for name := r.pkg + " " + r.test; ; {
			i := strings.LastIndexByte(name, '/')
			if i < len(r.pkg) { // the package's own slashes do not count
				break
			}
			name = name[:i]
			hasSubtests[name] = true
			if r.failed() {
				failedBelow[name] = true
			}
		}
		if r.failed() {
			failedBelow[r.pkg+" "] = true
		}
	}
	rows := map[string]*counts{}
	for _, r := range results {
		key := r.pkg + " " + r.test
		row := rows[r.release()]
		if row == nil {
			row = &counts{}
			rows[r.release()] = row
		}
		switch {
		case r.failed() && !failedBelow[key]:
			row.failed++
			fmt.Fprintf(out, "\nFAIL %s %s\n%s", r.pkg, r.test, indent(r.output.String()))
		case r.test == "" || hasSubtests[key]:
		case r.action == "pass":
			row.passed++
		case r.action == "skip":
			row.skipped++
			fmt.Fprintf(out, "skip %s %s: %s\n", r.pkg, r.test, r.reason())
		}
	}
	return rows
}

// failed is true as well for a test that began and never ended: its binary panicked or was killed.
func (r *result) failed() bool { return r.action == "fail" || r.action == "" }

var releaseElement = regexp.MustCompile(`/(\d\d\.\d\d)(?:[/.#_-]|$)`)

func (r *result) release() string {
	if m := releaseElement.FindStringSubmatch(r.test); m != nil {
		return m[1]
	}
	return "-"
}

var logLine = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// reason is what the test said to t.Skip: its last log line.
func (r *result) reason() string {
	all := logLine.FindAllStringSubmatch(r.output.String(), -1)
	if len(all) == 0 {
		return "no reason given"
	}
	return all[len(all)-1][1]
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}

func appendRows(path, suite string, rows map[string]*counts) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	releases := make([]string, 0, len(rows))
	for release := range rows {
		releases = append(releases, release)
	}
	sort.Strings(releases)
	for _, release := range releases {
		c := rows[release]
		if *c != (counts{}) {
			fmt.Fprintf(f, "%s\t%s\t%d\t%d\t%d\t\n", suite, release, c.passed, c.failed, c.skipped)
		}
	}
	return f.Close()
}
