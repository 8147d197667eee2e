package track

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logs is a log directory and what was read of it.
type logs struct {
	t *testing.T
	Follower
	got []string
}

func newLogs(t *testing.T) *logs { return &logs{t: t, Follower: Follower{Dir: t.TempDir()}} }

func (l *logs) write(name, text string, flags int) {
	l.t.Helper()
	f, err := os.OpenFile(filepath.Join(l.Dir, name), flags|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *logs) append(name, text string) { l.t.Helper(); l.write(name, text, os.O_APPEND) }

func (l *logs) emit(line Line) { l.got = append(l.got, line.Source+": "+line.Text) }

// poll reads and compares what is new.
func (l *logs) poll(final bool, want ...string) {
	l.t.Helper()
	l.got = nil
	if err := l.Poll(final, l.emit); err != nil {
		l.t.Fatal(err)
	}
	if !slices.Equal(l.got, want) {
		l.t.Errorf("read %q, want %q", l.got, want)
	}
}

func TestFollowerReadsWhatIsNew(t *testing.T) {
	l := newLogs(t)
	l.poll(false)
	l.append("train.node0.log", "one\ntwo\n")
	l.append("job-12.log", "start\n")
	l.poll(false, "job: start", "train/0: one", "train/0: two")
	l.poll(false)
	l.append("train.node0.log", "three\r\n\nfour\n")
	l.poll(false, "train/0: three", "train/0: ", "train/0: four")
}

func TestPartialLinesAreHeldBack(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "half")
	l.poll(false)
	l.append("train.node0.log", " and half\nrest")
	l.poll(false, "train/0: half and half")
	l.poll(false)
	l.poll(true, "train/0: rest")
	l.poll(true)
}

func TestLateFiles(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "a\n")
	l.poll(false, "train/0: a")
	l.append("train.node1.log", "b\n")
	l.append("train.node0.restart1.log", "again\n")
	l.append("notes.txt", "no log\n")
	l.poll(false, "train/0 (restart1): again", "train/1: b")
}

func TestTruncatedAndReplacedFiles(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "one\ntwo\nhalf")
	l.poll(false, "train/0: one", "train/0: two")
	l.write("train.node0.log", "new\n", os.O_TRUNC)
	l.poll(false, "train/0: new")

	// Rotation: another file of the same name, even one that is longer.
	if err := os.Rename(filepath.Join(l.Dir, "train.node0.log"), filepath.Join(l.Dir, "train.node0.log.1")); err != nil {
		t.Fatal(err)
	}
	l.append("train.node0.log", "a longer first line\nnext\n")
	l.poll(false, "train/0: a longer first line", "train/0: next")

	if err := os.Remove(filepath.Join(l.Dir, "train.node0.log")); err != nil {
		t.Fatal(err)
	}
	l.poll(false)
}

func TestEndlessLinesAreCut(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", strings.Repeat("x", MaxLine)+strings.Repeat("y", MaxLine)+"\nnext\n")
	l.got = nil
	if err := l.Poll(false, l.emit); err != nil {
		t.Fatal(err)
	}
	if len(l.got) < 2 || l.got[len(l.got)-1] != "train/0: next" {
		t.Fatalf("%d lines, the last %.40q", len(l.got), l.got[len(l.got)-1])
	}
	for _, line := range l.got {
		if len(line) > MaxLine+len("train/0: ") {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	// A progress bar without newlines is shown in pieces, not kept for ever.
	l.append("train.node0.log", strings.Repeat("=", 5*MaxLine))
	l.got = nil
	if err := l.Poll(false, l.emit); err != nil {
		t.Fatal(err)
	}
	if len(l.got) < 2 {
		t.Errorf("%d pieces of an endless line", len(l.got))
	}
}

// Nothing of a long line may be lost or come twice.
func TestPiecesOfALongLineAreWhole(t *testing.T) {
	l := newLogs(t)
	text := strings.Repeat("0123456789", MaxLine/4) // 2.5 × MaxLine
	l.append("train.node0.log", text+"\n")
	l.got = nil
	if err := l.Poll(true, l.emit); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, line := range l.got {
		all.WriteString(strings.TrimPrefix(line, "train/0: "))
	}
	if all.String() != text {
		t.Errorf("%d bytes came of %d", all.Len(), len(text))
	}
}

func TestSkip(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "1\n2\n3\n4\n5\nhalf")
	if err := l.Skip(2, l.emit); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.got, []string{"train/0: 4", "train/0: 5"}) {
		t.Errorf("read %q", l.got)
	}
	l.append("train.node0.log", "\n")
	l.poll(false, "train/0: half")

	all := newLogs(t)
	all.append("train.node0.log", "1\n2\n")
	if err := all.Skip(0, all.emit); err != nil || len(all.got) != 2 {
		t.Errorf("0 keeps all: %q, %v", all.got, err)
	}
}

func TestSkipOfMoreLinesThanAnIntCanDouble(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "one\ntwo\n")
	if err := l.Skip(math.MaxInt, l.emit); err != nil || len(l.got) != 2 {
		t.Errorf("read %q, %v", l.got, err)
	}
}

func TestPipesAndDevicesAmongTheLogsAreNotRead(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "one\n")
	if err := syscall.Mkfifo(filepath.Join(l.Dir, "pipe.node0.log"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(l.Dir, "zero.node0.log")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l.Dir, "dir.node0.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.poll(true, "train/0: one")
}

func TestOnly(t *testing.T) {
	l := newLogs(t)
	l.Only = func(source string) bool { return source == "reward/0" }
	l.append("train.node0.log", "a\n")
	l.append("reward.node0.log", "b\n")
	l.poll(false, "reward/0: b")
}

func TestDirectoriesWithPatternLetters(t *testing.T) {
	l := newLogs(t)
	l.Dir = filepath.Join(l.Dir, `a[b]*?\`)
	if err := os.Mkdir(l.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.append("train.node0.log", "a\n")
	l.poll(false, "train/0: a")
}

func TestFollowEndsWithTheRun(t *testing.T) {
	l := newLogs(t)
	l.append("train.node0.log", "one\n")
	rounds := 0
	err := l.Follow(t.Context(), time.Nanosecond, func() bool {
		rounds++
		if rounds == 2 {
			l.append("train.node0.log", "last words")
		}
		return rounds == 2
	}, l.emit)
	if err != nil || !slices.Equal(l.got, []string{"train/0: one", "train/0: last words"}) {
		t.Errorf("read %q, %v", l.got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Follow(ctx, time.Hour, func() bool { return false }, l.emit); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSource(t *testing.T) {
	for base, want := range map[string]string{
		"train.node0.log": "train/0", "job-12.log": "job", "job-12-restart1.log": "job", "train.node1.restart2.log": "train/1 (restart2)",
		"other.log": "other", "a.b.node3.log": "a.b/3",
	} {
		if got := Source(base); got != want {
			t.Errorf("Source(%q) = %q, want %q", base, got, want)
		}
	}
}
