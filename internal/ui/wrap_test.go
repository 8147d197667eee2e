package ui

import (
	"fmt"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		width, hang int
		in, want    string
	}{
		{0, 0, "a long line that nobody wraps", "a long line that nobody wraps"},
		{20, 0, "it fits", "it fits"},
		{20, 0, "  fleet   lab, Slurm 24.11", "  fleet   lab, Slurm\n          24.11"},
		{20, 0, "    no label at all here", "    no label at all\n      here"},
		{20, 6, "ok    two words are here", "ok    two words are\n      here"},
		{12, 0, "a/path/that/is/longer than it", "a/path/that/is/longer\n  than it"},
		{14, 2, "训练 训练 训练 训练", "训练 训练 训练\n  训练"},
	} {
		var b strings.Builder
		w := Wrap(&b, c.width, c.hang)
		half := len(c.in) / 2 // lines come in pieces
		fmt.Fprint(w, c.in[:half])
		fmt.Fprintln(w, c.in[half:])
		if b.String() != c.want+"\n" {
			t.Errorf("%q: %q, want %q", c.in, b.String(), c.want)
		}
	}
}
