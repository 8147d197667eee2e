package main

import (
	"io"
	"strings"
	"testing"
)

// The stream as go 1.26 writes it: a subtest per release, one of them failed,
// one skipped, a test cut off by a panic, and a package that did not compile.
const stream = `not json
{"Action":"build-output","ImportPath":"p/c","Output":"c.go:1: syntax error\n"}
{"Action":"run","Package":"p/a","Test":"TestX"}
{"Action":"run","Package":"p/a","Test":"TestX/22.05"}
{"Action":"pass","Package":"p/a","Test":"TestX/22.05"}
{"Action":"output","Package":"p/a","Test":"TestX/26.05","Output":"    a_test.go:3: wanted 1\n"}
{"Action":"fail","Package":"p/a","Test":"TestX/26.05"}
{"Action":"output","Package":"p/a","Test":"TestX/24.11","Output":"    a_test.go:9: needs 24.11\n"}
{"Action":"skip","Package":"p/a","Test":"TestX/24.11"}
{"Action":"fail","Package":"p/a","Test":"TestX"}
{"Action":"fail","Package":"p/a"}
{"Action":"run","Package":"p/b","Test":"TestCut"}
{"Action":"fail","Package":"p/b"}
{"Action":"output","Package":"p/c","Output":"FAIL p/c [build failed]\n"}
{"Action":"fail","Package":"p/c"}
{"Action":"skip","Package":"p/d"}
`

func TestCountsPerRelease(t *testing.T) {
	var talk, out strings.Builder
	results, err := read(strings.NewReader(stream), &talk)
	if err != nil {
		t.Fatal(err)
	}
	rows := report(&out, results)
	want := map[string]counts{
		"22.05": {passed: 1}, "24.11": {skipped: 1}, "26.05": {failed: 1},
		"-": {failed: 2}, // TestCut, and the package that did not compile
	}
	for release, w := range want {
		if got := rows[release]; got == nil || *got != w {
			t.Errorf("%s: wanted %+v, found %+v", release, w, got)
		}
	}
	for _, line := range []string{"FAIL p/a TestX/26.05\n", "skip p/a TestX/24.11: needs 24.11\n", "FAIL p/c"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in:\n%s", line, out.String())
		}
	}
	if !strings.Contains(talk.String(), "syntax error") || !strings.Contains(talk.String(), "not json") {
		t.Errorf("the compiler's word is missing in:\n%s", talk.String())
	}
}

func TestEmptyStream(t *testing.T) {
	results, err := read(strings.NewReader(""), io.Discard)
	if err != nil || len(report(io.Discard, results)) != 0 {
		t.Fatalf("wanted nothing, found %v, %v", results, err)
	}
}
