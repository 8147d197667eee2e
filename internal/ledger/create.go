package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/durable"
)

// Dirs are made in every run directory.
var Dirs = []string{"claims", "ends", "logs", "out"}

// Dir is the directory of a run, which may not exist yet; with an empty id
// that of the experiment.
func Dir(root, user, experiment string, id ID) string {
	return filepath.Join(userDir(root, user), Slug(experiment), string(id))
}

// Create makes a run directory with these files (relative slash paths) and its
// created event, all of it or nothing: directories 0700, files 0600. An empty
// h.ID is drawn; a given one that exists already is durable.ErrExist, so that
// of several processes that agreed on an id by [Ledger.Once] one creates it.
// User and Created are filled in when empty.
func (l *Ledger) Create(h Header, files map[string][]byte) (*Run, error) {
	if h.User == "" {
		h.User = l.opt.User
	}
	if h.Created.IsZero() {
		h.Created = l.opt.Now().UTC()
	}
	if _, err := l.ensureUserDir(l.opt.Roots[0]); err != nil {
		return nil, err
	}
	parent := Dir(l.opt.Roots[0], l.opt.User, h.Experiment, "")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	if h.ID != "" {
		if !h.ID.Valid() {
			return nil, fmt.Errorf("ledger: %q is no run id", h.ID)
		}
		return l.create(h, parent, files)
	}
	for range 4 { // a collision is a matter of one in 10^10; four are a broken random source
		h.ID = NewID()
		r, err := l.create(h, parent, files)
		if !errors.Is(err, durable.ErrExist) {
			return r, err
		}
	}
	return nil, fmt.Errorf("ledger: no free run id in %s", parent)
}

func (l *Ledger) create(h Header, parent string, files map[string][]byte) (_ *Run, err error) {
	data, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	first := Event{Type: Created, Seq: 1, Data: data}
	l.sign(&first)
	line, err := json.Marshal(first)
	if err != nil {
		return nil, err
	}
	tmp, err := durable.TempDir(parent)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	if err := fill(tmp, files, append(line, '\n')); err != nil {
		return nil, err
	}
	h.Dir = filepath.Join(parent, string(h.ID))
	if err := durable.PublishDir(tmp, h.Dir); err != nil {
		return nil, err
	}
	r := Replay([]Event{first})
	r.Dir = h.Dir
	return &r, nil
}

// fill writes a new directory; PublishDir will sync it.
func fill(dir string, files map[string][]byte, events []byte) error {
	for _, d := range Dirs {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for name, data := range files {
		local := filepath.FromSlash(name)
		if !filepath.IsLocal(local) || strings.HasPrefix(name, "events.") {
			return fmt.Errorf("ledger: %q may not be a file of a run", name)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(local)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, local), data, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, mainEvents), events, 0o600)
}

// Once binds a key to a run id for ever and returns the id that won: id itself
// for the first caller, on any host, and that caller's id for every other. The
// winner may have died before it created the run; whoever finds no run of that
// id may create it under exactly this id. Keys are stored as their SHA-256.
func (l *Ledger) Once(key string, id ID) (winner ID, err error) {
	if !id.Valid() {
		return "", fmt.Errorf("ledger: %q is no run id", id)
	}
	sum := sha256.Sum256([]byte(key))
	name := filepath.Join(".once", hex.EncodeToString(sum[:]))
	for _, root := range l.opt.Roots[1:] { // bound before the run root moved
		if w, err := readOnce(filepath.Join(userDir(root, l.opt.User), name)); !errors.Is(err, fs.ErrNotExist) {
			return w, err
		}
	}
	user, err := l.ensureUserDir(l.opt.Roots[0])
	if err != nil {
		return "", err
	}
	path := filepath.Join(user, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	err = durable.Create(path, []byte(string(id)+"\n"), 0o600)
	if errors.Is(err, durable.ErrExist) {
		return readOnce(path)
	}
	return id, err
}

// readOnce waits up to a second for content: without hard links the file can
// be seen before it is written.
func readOnce(path string) (ID, error) {
	for i := 0; ; i++ {
		data, err := durable.Read(path, 64)
		if err != nil {
			return "", err
		}
		id := ID(strings.TrimSpace(string(data)))
		if id.Valid() {
			return id, nil
		}
		if i == 20 {
			return "", fmt.Errorf("%s holds no run id; remove it after checking that no job of it exists", path)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
