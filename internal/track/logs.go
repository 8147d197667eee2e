package track

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Line is one line of a log.
type Line struct {
	Source string // "train", "rollout/1", "job"
	Text   string // without the newline, as written: neutralise before showing
}

// MaxLine bounds a line in bytes; what is longer comes in pieces, for a progress
// bar without newlines may write for days.
const MaxLine = 64 << 10

// Follower reads all logs of a run directory, also those that appear later,
// and starts again at the top of a file that was truncated or replaced.
type Follower struct {
	Dir   string                   // <run>/logs
	Only  func(source string) bool // nil: all
	files map[string]*tail
}

type tail struct {
	info   os.FileInfo
	offset int64
	part   []byte // an unfinished last line
}

// Poll hands over every line written since the last call, file by file. A last
// line without a newline is held back until final.
func (f *Follower) Poll(final bool, emit func(Line)) error {
	names, err := filepath.Glob(filepath.Join(globEscape(f.Dir), "*.log"))
	if err != nil {
		return err
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(order(a), order(b)) })
	if f.files == nil {
		f.files = map[string]*tail{}
	}
	for _, name := range names {
		source := Source(filepath.Base(name))
		if f.Only != nil && !f.Only(source) {
			continue
		}
		t := f.files[name]
		if t == nil {
			t = &tail{}
			f.files[name] = t
		}
		if err := t.read(name, source, final, emit); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Skip moves to n lines before the end of what is there now; 0 keeps all.
func (f *Follower) Skip(n int, emit func(Line)) error {
	var all []Line
	if err := f.Poll(false, func(l Line) {
		all = append(all, l)
		if n > 0 && len(all)/2 > n {
			all = append(all[:0], all[len(all)-n:]...)
		}
	}); err != nil {
		return err
	}
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	for _, l := range all {
		emit(l)
	}
	return nil
}

func (t *tail) read(name, source string, final bool, emit func(Line)) error {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if t.info != nil && (!os.SameFile(t.info, info) || info.Size() < t.offset) {
		t.offset, t.part = 0, nil
	}
	t.info = info
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(file, MaxLine)
	for {
		chunk, err := r.ReadSlice('\n')
		t.offset += int64(len(chunk))
		t.part = append(t.part, chunk...)
		whole := err == nil
		if whole {
			t.part = bytes.TrimSuffix(bytes.TrimSuffix(t.part, []byte("\n")), []byte("\r"))
		}
		for len(t.part) > MaxLine {
			n := MaxLine
			for n > MaxLine-utf8.UTFMax && !utf8.RuneStart(t.part[n]) {
				n-- // not in the middle of a letter
			}
			emit(Line{source, string(t.part[:n])})
			t.part = append(t.part[:0], t.part[n:]...)
		}
		if whole {
			emit(Line{source, string(t.part)})
			t.part = t.part[:0]
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			break
		}
	}
	if final && len(t.part) > 0 {
		emit(Line{source, string(t.part)})
		t.part = nil
	}
	return nil
}

// Follow polls until done says that the run has ended, then reads the rest.
func (f *Follower) Follow(ctx context.Context, every time.Duration, done func() bool, emit func(Line)) error {
	for {
		ended := done()
		if err := f.Poll(false, emit); err != nil {
			return err
		}
		if ended {
			return f.Poll(true, emit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// Source names a log file: "train.node0.log" is "train/0", "job-12.log" is
// "job", "train.node1.restart2.log" is "train/1+2".
func Source(base string) string {
	base = strings.TrimSuffix(base, ".log")
	if strings.HasPrefix(base, "job-") {
		return "job"
	}
	role, rest, ok := strings.Cut(base, ".node")
	if !ok {
		return base
	}
	node, again, _ := strings.Cut(rest, ".")
	source := role + "/" + node
	if again != "" {
		source += " (" + strings.ReplaceAll(again, ".", " ") + ")"
	}
	return source
}

// order puts the job's own log first, then roles by name.
func order(path string) string {
	if base := filepath.Base(path); strings.HasPrefix(base, "job-") {
		return " " + base
	}
	return filepath.Base(path)
}

func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
