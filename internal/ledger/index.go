package ledger

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite": no cgo, 4.5 MB of binary
)

// index remembers replayed runs under the stamp of their event files. It is
// one file per host, so two hosts never lock one file on a network file
// system, and it never uses WAL, whose shared memory does not work there
// (sqlite.org/wal.html); with one short transaction per list there is nothing
// to gain from it on a local disk either. What it says is believed only after
// the stamp was compared, so losing it costs time and nothing else.
type index struct {
	db   *sql.DB
	path string
}

// schemaVersion is kept in PRAGMA user_version. Another number, older or
// newer, means that the tables are dropped and made anew.
const schemaVersion = 2

const schema = `
DROP TABLE IF EXISTS run;
CREATE TABLE run (
	dir     TEXT PRIMARY KEY,
	user    TEXT NOT NULL,
	created INTEGER NOT NULL, -- nanoseconds since 1970
	stamp   TEXT NOT NULL,
	final   INTEGER NOT NULL, -- 1 when nothing more is expected of it
	run     BLOB NOT NULL     -- Run as JSON
);
-- All that a list reads of every run, without its content: 3 MB of 27 for 20,000.
CREATE INDEX run_list ON run (user, created, dir, stamp, final);`

// busyTimeout is how long a list waits for another's write, milliseconds. A
// list writes for less than 100 ms; after this it goes on without the index.
const busyTimeout = 2000

func openIndex(path string) (*index, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := privateFile(path); err != nil {
		return nil, err
	}
	query := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout), "journal_mode(TRUNCATE)", "synchronous(NORMAL)",
	}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	x := &index{db: db, path: path}
	if err := x.migrate(); err != nil {
		db.Close()
		return nil, err
	}
	return x, nil
}

// privateFile makes the file before sqlite does, with mode 0600.
func privateFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (x *index) migrate() error {
	version, err := x.version(x.db)
	if err != nil || version == schemaVersion {
		return err
	}
	tx, err := x.db.Begin() // immediate: of two openers one migrates
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if version, err = x.version(tx); err != nil || version == schemaVersion {
		return err
	}
	if _, err := tx.Exec(schema + fmt.Sprintf("\nPRAGMA user_version = %d;", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

func (x *index) version(q interface {
	QueryRow(string, ...any) *sql.Row
}) (v int, err error) {
	err = q.QueryRow("PRAGMA user_version").Scan(&v)
	return v, err
}

// row is what a list must know of a remembered run before it is looked at.
type row struct {
	dir     string
	created time.Time
	stamp   string
	final   bool
}

// rows reads what is remembered, of one user or of all for "".
func (x *index) rows(user string) ([]row, error) {
	query, args := "SELECT dir, created, stamp, final FROM run INDEXED BY run_list", []any(nil)
	if user != "" {
		query, args = query+" WHERE user = ?", []any{user}
	}
	rs, err := x.db.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	var out []row
	for rs.Next() {
		var r row
		var ns int64
		if err := rs.Scan(&r.dir, &ns, &r.stamp, &r.final); err != nil {
			return nil, err
		}
		r.created = time.Unix(0, ns)
		out = append(out, r)
	}
	return out, rs.Err()
}

// runs are the contents of some rows by directory. One that is gone or makes
// no sense is not among them.
func (x *index) runs(dirs []string) (map[string]*Run, error) {
	args := make([]any, len(dirs))
	for i, d := range dirs {
		args[i] = d
	}
	rs, err := x.db.Query("SELECT dir, run FROM run WHERE dir IN (?"+strings.Repeat(", ?", len(dirs)-1)+")", args...)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	out := make(map[string]*Run, len(dirs))
	for rs.Next() {
		var dir string
		var data sql.RawBytes
		if err := rs.Scan(&dir, &data); err != nil {
			return nil, err
		}
		var run Run
		if json.Unmarshal(data, &run) == nil && string(run.ID) == filepath.Base(dir) {
			run.Dir = dir
			out[dir] = &run
		}
	}
	return out, rs.Err()
}

// entry is a run to be remembered.
type entry struct {
	run   *Run
	stamp string
}

// update remembers and forgets in one transaction.
func (x *index) update(put []entry, drop []string) error {
	if len(put) == 0 && len(drop) == 0 {
		return nil
	}
	tx, err := x.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	st, err := tx.Prepare("INSERT OR REPLACE INTO run (dir, user, created, stamp, final, run) VALUES (?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	for _, e := range put {
		data, err := json.Marshal(e.run)
		if err != nil {
			return err
		}
		if _, err := st.Exec(e.run.Dir, Slug(e.run.User), e.run.Created.UnixNano(), e.stamp, e.run.State.Final(), data); err != nil {
			return err
		}
	}
	for _, dir := range drop {
		if _, err := tx.Exec("DELETE FROM run WHERE dir = ?", dir); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (x *index) close() error { return x.db.Close() }

// withIndex runs f on the index, opening it first. A broken index is deleted
// and f runs once more on an empty one; f is told nil when there is none.
func (l *Ledger) withIndex(f func(*index) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range 2 {
		if l.index == nil && !l.tried && l.opt.StateDir != "" {
			var err error
			if l.index, err = openIndex(l.indexPath()); err != nil {
				removeIndex(l.indexPath())
				if l.index, err = openIndex(l.indexPath()); err != nil {
					l.index, l.tried = nil, true
				}
			}
		}
		if l.index == nil {
			break
		}
		if err := f(l.index); err == nil || isBusy(err) {
			return
		}
		l.index.close()
		l.index = nil
		removeIndex(l.indexPath())
	}
}

func (l *Ledger) indexPath() string {
	return filepath.Join(l.opt.StateDir, "index-"+Slug(l.opt.Host)+".db")
}

func removeIndex(path string) {
	os.Remove(path)
	os.Remove(path + "-journal")
}

// isBusy tells a locked index, which is well, from a broken one. SQLITE_BUSY is
// 5 and SQLITE_LOCKED 6, in the low byte of the extended code.
func isBusy(err error) bool {
	var e interface{ Code() int }
	return errors.As(err, &e) && (e.Code()&0xff == 5 || e.Code()&0xff == 6)
}
