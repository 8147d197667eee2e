package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tuneplane/tp/slurm"
)

// Node lists are expanded as each release's own scontrol does it: 400 random
// lists, in ten calls. And what Compress writes means the same to Slurm.
func TestHostListsAsScontrolReadsThem(t *testing.T) {
	each(t, func(w *world) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		for call := range 10 {
			var lists []string
			for range 40 {
				lists = append(lists, randomHosts(r, w.release != "22.05"))
			}
			all := strings.Join(lists, ",")
			ours, err := slurm.Expand(all)
			if err != nil {
				w.Fatalf("seed %d: %v", seed, err)
			}
			theirs := w.hostnames(all)
			for i, list := range lists {
				one, _ := slurm.Expand(list)
				if len(theirs) < len(one) || !slices.Equal(theirs[:len(one)], one) {
					w.Fatalf("seed %d, call %d, list %d: %q is %q to scontrol and %q to us", seed, call, i, list, theirs[:min(len(one), len(theirs))], one)
				}
				theirs = theirs[len(one):]
			}
			if len(theirs) > 0 {
				w.Fatalf("seed %d, call %d: scontrol has %q more", seed, call, theirs)
			}
			again := w.hostnames(slurm.Compress(ours))
			slices.Sort(ours)
			slices.Sort(again)
			if ours = slices.Compact(ours); !slices.Equal(again, ours) {
				w.Fatalf("seed %d, call %d: Compress(%q) is %d names to scontrol, wanted %d", seed, call, all, len(again), len(ours))
			}
		}
		// What neither takes for a list.
		for _, list := range []string{"n[3-1]", "n[]", "n[a]", "n[1-2,]", "n[,1]"} {
			if names, err := slurm.Expand(list); err == nil {
				w.Errorf("Expand(%q) = %q", list, names)
			}
			if names := w.hostnames(list); len(names) > 0 {
				w.Errorf("scontrol makes %q of %q", names, list)
			}
		}
	})
}

func (w *world) hostnames(list string) []string {
	w.Helper()
	return strings.Fields(w.slurm("scontrol", "show", "hostnames", list).out)
}

// randomHosts is a list of one or several names as Slurm prints them. 22.05
// takes no text after the last bracket.
func randomHosts(r *rand.Rand, tail bool) string {
	const letters = "abcXYZn-_."
	word := func(least int) string {
		var b strings.Builder
		for range least + r.IntN(4) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return strings.Trim(b.String(), "-.")
	}
	bracket := func() string {
		var parts []string
		for range 1 + r.IntN(3) {
			width, from := 1+r.IntN(4), r.IntN(120)
			switch to := from + r.IntN(6); r.IntN(3) {
			case 0:
				parts = append(parts, fmt.Sprintf("%0*d", width, from))
			case 1:
				parts = append(parts, fmt.Sprintf("%0*d-%0*d", width, from, width, to))
			default: // padding grows: 8-11, 098-101
				parts = append(parts, fmt.Sprintf("%0*d-%d", width, from, max(to, from)))
			}
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	name := "n" + word(0)
	switch r.IntN(7) {
	case 0: // a plain name, perhaps with a number
		if r.IntN(2) == 0 {
			name += fmt.Sprintf("%0*d", 1+r.IntN(4), r.IntN(100))
		}
	case 1, 2:
		name += bracket()
	case 3:
		name += bracket()
		if tail {
			name += "s" + word(0)
		}
	case 4:
		name += bracket() + "r" + bracket() + "x" + bracket()
	case 5:
		name += bracket() + "b" + word(0) + bracket()
	default:
		name += bracket() + "c" + bracket()
		if tail {
			name += "t" + word(0)
		}
	}
	if r.IntN(8) == 0 {
		return name + "," + randomHosts(r, tail)
	}
	return name
}
