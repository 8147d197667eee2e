package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func states(runs []*Run) (s string) {
	for _, r := range runs {
		s += fmt.Sprintf("%s:%s ", r.Experiment, r.State)
	}
	return s
}

func list(t testing.TB, l *Ledger, f Filter) string {
	t.Helper()
	runs, err := l.List(f)
	if err != nil {
		t.Fatal(err)
	}
	return states(runs)
}

func TestList(t *testing.T) {
	root := t.TempDir()
	l := open(t, root)
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, e := range []string{"a", "b", "c"} {
		r := create(t, l, Header{Experiment: e, Project: "p" + e, Created: day.AddDate(0, 0, i)})
		add(t, l, r, Event{Type: Intent, Attempt: 1}, Event{Type: Submitted, JobID: 1})
		if e == "b" {
			add(t, l, r, Event{Type: Changed, State: Failed})
		}
	}
	for range 2 { // from the directories, then from the index
		for want, f := range map[string]Filter{
			"c:SUBMITTED b:FAILED a:SUBMITTED ": {},
			"c:SUBMITTED ":                      {Limit: 1},
			"b:FAILED ":                         {States: []State{Failed}},
			"c:SUBMITTED a:SUBMITTED ":          {Active: true},
			"a:SUBMITTED ":                      {Project: "pa"},
			"c:SUBMITTED b:FAILED ":             {Since: day.AddDate(0, 0, 1)},
			"":                                  {User: "nobody"},
		} {
			if got := list(t, l, f); got != want {
				t.Errorf("%+v: %q, want %q", f, got, want)
			}
		}
	}
	if got := list(t, l, Filter{User: Everybody, Experiment: "a"}); got != "a:SUBMITTED " {
		t.Errorf("everybody: %q", got)
	}

	newest, err := l.Newest(Filter{})
	if err != nil || newest.Experiment != "c" {
		t.Fatalf("newest %v, %v", newest, err)
	}
	add(t, l, newest, Event{Type: Changed, State: Running})
	if got := list(t, l, Filter{Limit: 1}); got != "c:RUNNING " {
		t.Errorf("the index is stale: %q", got)
	}
	os.RemoveAll(newest.Dir)
	os.WriteFile(filepath.Join(root, "u", "a", "run-ffffffffffff"), nil, 0o600) // no directory
	os.Mkdir(filepath.Join(root, "u", "a", "run-eeeeeeeeeeee"), 0o700)          // reserved only
	if got := list(t, l, Filter{}); got != "b:FAILED a:SUBMITTED a:UNKNOWN " {
		t.Errorf("after a run was deleted and one is broken: %q", got)
	}
}

func TestOwnRunsThatMayNotBeReadAreNoEmptyList(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	root := t.TempDir()
	l := open(t, root)
	create(t, l, Header{Experiment: "a"})
	dir := filepath.Join(root, "u")
	os.Chmod(dir, 0)
	defer os.Chmod(dir, 0o700)
	if runs, err := l.List(Filter{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("list: %v, %v", runs, err)
	}
	if _, err := l.Find("run-0"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("find: %v", err)
	}
	if runs, err := l.List(Filter{User: Everybody}); len(runs) > 0 || err != nil {
		t.Errorf("everybody: %v, %v", runs, err)
	}
}

func TestIndexLost(t *testing.T) {
	root := t.TempDir()
	l := open(t, root)
	create(t, l, Header{Experiment: "a"})
	if _, err := os.Stat(l.indexPath()); err == nil {
		t.Error("Create has opened the index")
	}
	const want = "a:CREATED "
	check := func(what string) {
		t.Helper()
		for range 2 {
			if got := list(t, l, Filter{}); got != want {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
	check("new")
	if info, err := os.Stat(l.indexPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("index: %v, %v", info, err)
	}
	if n, err := l.Reindex(); n != 1 || err != nil {
		t.Errorf("Reindex: %d, %v", n, err)
	}
	os.Remove(l.indexPath())
	check("deleted while open")
	l.Close()
	check("reopened")
	for what, junk := range map[string]string{"text": "this is no database, and longer than a header of 100 bytes: " + fmt.Sprint(make([]int, 100)), "empty": "", "header only": "SQLite format 3\x00"} {
		l.Close()
		os.WriteFile(l.indexPath(), []byte(junk), 0o600)
		check(what)
	}
	// Broken in the middle while it is open: every page but the first.
	data, _ := os.ReadFile(l.indexPath())
	for i := 4096; i < len(data); i++ {
		data[i] = 0xff
	}
	l.Close()
	os.WriteFile(l.indexPath(), data, 0o600)
	check("pages destroyed")

	x, err := openIndex(l.indexPath())
	if err != nil {
		t.Fatal(err)
	}
	x.db.Exec("UPDATE run SET run = 'nonsense'")
	check("rows without sense")
	x.db.Exec("PRAGMA user_version = 99")
	x.close()
	l.Close()
	check("a schema of tomorrow")
	l.Close()
	os.Remove(l.indexPath())
	os.Mkdir(l.indexPath(), 0o700)
	os.WriteFile(filepath.Join(l.indexPath(), "x"), nil, 0o600)
	check("a directory in its place")
}

func BenchmarkList2000(b *testing.B) {
	root := b.TempDir()
	l := open(b, root)
	for i := range 2000 {
		h := Header{ID: ID(fmt.Sprintf("run-%012x", i)), User: "u", Experiment: fmt.Sprintf("e%d", i%20), Created: time.Unix(int64(i), 0)}
		dir := filepath.Join(root, "u", Slug(h.Experiment))
		os.MkdirAll(dir, 0o700)
		if i == 0 {
			create(b, l, h)
			continue
		}
		// Published without syncing: the benchmark is about reading.
		src, _ := os.ReadFile(filepath.Join(root, "u", "e0", "run-000000000000", mainEvents))
		src = []byte(replaceID(string(src), h))
		dir = filepath.Join(dir, string(h.ID))
		os.Mkdir(dir, 0o700)
		os.WriteFile(filepath.Join(dir, mainEvents), src, 0o600)
	}
	run := func(f Filter, prepare func()) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				prepare()
				b.StartTimer()
				runs, err := l.List(f)
				if err != nil || (f.Limit == 0 && len(runs) != 2000) {
					b.Fatal(len(runs), err)
				}
			}
		}
	}
	b.Run("without index", run(Filter{}, func() { l.Close(); removeIndex(l.indexPath()) }))
	b.Run("indexed", run(Filter{}, func() {}))
	b.Run("newest 20 reopened", run(Filter{Limit: 20}, func() { l.Close() }))
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Find("run-0000000007cf"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkIndexOpen is what a process pays for the index: opening and one
// changed run.
func BenchmarkIndexOpen(b *testing.B) {
	root := b.TempDir()
	l := open(b, root)
	r := create(b, l, Header{Experiment: "e"})
	for b.Loop() {
		x, err := openIndex(l.indexPath())
		if err != nil {
			b.Fatal(err)
		}
		if err := x.update([]entry{{r, "stamp"}}, nil); err != nil {
			b.Fatal(err)
		}
		x.close()
	}
}

func BenchmarkCreate(b *testing.B) {
	l := open(b, b.TempDir())
	for b.Loop() {
		create(b, l, Header{Experiment: "e"})
	}
}

func replaceID(events string, h Header) string {
	return strings.NewReplacer("run-000000000000", string(h.ID), "1970-01-01T00:00:00Z", h.Created.UTC().Format(time.RFC3339)).Replace(events)
}
