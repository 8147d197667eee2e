package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

// tree is a lab that a seed gives: the same bytes everywhere.
type tree struct {
	files int   // in all
	bytes int64 // in all
	large int   // files of 3 to 10 MB, half random bytes and half text: notebooks, small weights
	seed  uint64
}

// The two trees of the bars in docs/design.md: a usual lab, and a monorepo.
// Small is for tests.
var (
	usual    = tree{files: 2_000, bytes: 43 << 20, seed: 1}
	monorepo = tree{files: 20_000, bytes: 942 << 20, large: 100, seed: 2}
	small    = tree{files: 300, bytes: 16 << 20, large: 2, seed: 3}
)

func (t tree) String() string { return fmt.Sprintf("%d files, %d MiB", t.files, t.bytes>>20) }

// write makes the tree below root; it may be there already as far as it goes.
func (t tree) write(ctx context.Context, root string) error {
	rnd := rand.New(rand.NewPCG(t.seed, 0))
	text := newWriter(rnd)
	sizes := t.sizes(rnd)
	for i, size := range sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		var body []byte
		if i < t.large {
			body = append(random(rnd, size/2), text.bytes(size-size/2)...)
		} else {
			body = text.bytes(size)
		}
		if err := writeFile(root, t.name(i), body); err != nil {
			return err
		}
	}
	return nil
}

// name puts about twenty files into a directory, three levels deep.
func (t tree) name(i int) string {
	if i < t.large {
		return fmt.Sprintf("assets/%02d/blob_%04d.bin", i%10, i)
	}
	d := i / 20
	return fmt.Sprintf("src/pkg_%02d/mod_%03d/file_%05d.py", d%31, d, i)
}

// sizes gives the large files their size first and scales the small ones, which
// are log-normal as source files are, to fill up the sum.
func (t tree) sizes(rnd *rand.Rand) []int {
	sizes := make([]int, t.files)
	left := float64(t.bytes)
	weights, sum := make([]float64, t.files), 0.0
	for i := range sizes {
		if i < t.large {
			sizes[i] = 3_000_000 + rnd.IntN(7_000_000)
			left -= float64(sizes[i])
			continue
		}
		weights[i] = math.Exp(min(rnd.NormFloat64(), 3))
		sum += weights[i]
	}
	for i := t.large; i < t.files; i++ {
		sizes[i] = int(left * weights[i] / sum)
	}
	return sizes
}

// edit appends a line to n small files, far from each other.
func (t tree) edit(root string, n, round int) error {
	small := t.files - t.large
	for i := range n {
		name := filepath.Join(root, t.name(t.large+(i*small/n+round*7)%small))
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "# edit %d\n", round)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root, name string, body []byte) error {
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o644)
}

// commit makes root a git repository with everything in it.
func commit(ctx context.Context, root string) error {
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "bench"}} {
		argv := append([]string{"-C", root, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"}, args...)
		if out, err := exec.CommandContext(ctx, "git", argv...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, oneLine(string(out)))
		}
	}
	return nil
}

func random(rnd *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		v := rnd.Uint64()
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	return b[:n]
}

// writer writes text that compresses like code, to between a fourth and a fifth:
// words of a vocabulary, the first ones much more often, in indented lines, of
// which every third was there before.
type writer struct {
	rnd    *rand.Rand
	words  [][]byte
	recent [128][]byte
}

func newWriter(rnd *rand.Rand) *writer {
	w := &writer{rnd: rnd}
	for _, word := range []string{"self", "def", "return", "if", "for", "in", "import", "None", "=", "(", ")", ":", "loss", "model", "batch", "torch"} {
		w.words = append(w.words, []byte(word))
	}
	for len(w.words) < 6000 {
		word := make([]byte, 3+rnd.IntN(10))
		for i := range word {
			word[i] = "etaoinsrhldcumfpgwybvk_xjqz"[min(rnd.IntN(27), rnd.IntN(27))]
		}
		w.words = append(w.words, word)
	}
	return w
}

func (w *writer) bytes(n int) []byte {
	var b bytes.Buffer
	b.Grow(n + 256)
	for b.Len() < n {
		b.Write(w.next())
	}
	return b.Bytes()[:n]
}

func (w *writer) next() []byte {
	slot := &w.recent[w.rnd.IntN(len(w.recent))]
	if w.rnd.IntN(3) == 0 && len(*slot) > 0 {
		return *slot
	}
	line := (*slot)[:0]
	for range w.rnd.IntN(4) {
		line = append(line, "    "...)
	}
	for range 2 + w.rnd.IntN(8) {
		u := w.rnd.Float64()
		line = append(append(line, w.words[int(u*u*u*u*float64(len(w.words)))]...), ' ')
	}
	*slot = append(line, '\n')
	return *slot
}
