package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/fault"
)

// Everybody as Filter.User means the runs of all users that may be read.
const Everybody = "*"

// Filter picks runs; its zero value picks all of the ledger's user.
type Filter struct {
	User       string // "" for the ledger's own, Everybody for all
	Experiment string // exactly
	Project    string
	Fleet      string
	Parent     string
	States     []State
	Active     bool      // only those that are not final
	Since      time.Time // created at or after
	Limit      int       // newest so many; 0 for all
}

func (f Filter) match(r *Run) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(f.Experiment, r.Experiment) && is(f.Project, r.Project) && is(f.Fleet, r.Fleet) && is(f.Parent, r.Parent) &&
		(len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
		(!f.Active || !r.State.Final()) && !r.Created.Before(f.Since)
}

// List returns matching runs, newest first. The names come from the
// directories, the content from the index where it is still true; a run that
// cannot be read is listed as UNKNOWN with the error as its reason.
func (l *Ledger) List(f Filter) ([]*Run, error) {
	dirs, err := l.dirs(f.User)
	if err != nil {
		return nil, err
	}
	remembered := l.remembered(f.User)
	var put []entry
	fetch := func(dir string) *Run {
		r, stamp, err := load(dir)
		if err != nil {
			return broken(dir, err)
		}
		put = append(put, entry{r, stamp})
		return r
	}

	// Unknown runs must be read before the order is known; of the others the
	// creation time, which never changes, is known without a look.
	var all []candidate
	for _, dir := range dirs {
		if row, ok := remembered[dir]; ok {
			all = append(all, candidate{row.created, nil, row})
			delete(remembered, dir)
		} else {
			r := fetch(dir)
			all = append(all, candidate{r.Created, r, row})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.created.Compare(a.created) })
	var out []*Run
	for len(all) > 0 && (f.Limit == 0 || len(out) < f.Limit) {
		size := atOnce
		if f.Limit > 0 {
			size = min(size, f.Limit-len(out))
		}
		some := all[:min(len(all), size)]
		all = all[len(some):]
		if last := some[len(some)-1].created; last.Before(f.Since) && !last.IsZero() {
			all = nil // the rest is older still
		}
		some = slices.DeleteFunc(some, func(c candidate) bool {
			return c.created.Before(f.Since) && !c.created.IsZero()
		})
		l.look(some, f)
		for _, c := range some {
			if c.run == nil && !(f.Active && c.row.final) {
				c.run = fetch(c.row.dir)
			}
			if c.run != nil && f.match(c.run) {
				out = append(out, c.run)
			}
		}
	}
	gone := make([]string, 0, len(remembered))
	for dir := range remembered {
		gone = append(gone, dir)
	}
	l.withIndex(func(x *index) error { return x.update(put, gone) })
	return out, nil
}

// Newest is the youngest matching run.
func (l *Ledger) Newest(f Filter) (*Run, error) {
	f.Limit = 1
	runs, err := l.List(f)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fault.New(fault.Usage, "no run yet in %s", strings.Join(l.opt.Roots, ", ")).WithHint("tp submit")
	}
	return runs[0], nil
}

// Find is the run whose id begins with prefix; "run-" may be left out. It
// reads directory names and one run, not the index.
func (l *Ledger) Find(prefix string) (*Run, error) {
	want := IDPrefix + strings.ToLower(strings.TrimPrefix(strings.TrimSpace(prefix), IDPrefix))
	if want == IDPrefix || strings.Trim(want[len(IDPrefix):], "0123456789abcdef") != "" {
		return nil, fault.New(fault.Usage, "%q is no run id; expected run- and up to 12 hex digits, or the id of a job", prefix).WithHint("tp job ls")
	}
	dirs, err := l.beginning(want)
	if err != nil {
		return nil, err
	}
	switch len(dirs) {
	case 0:
		return nil, fault.New(fault.Usage, "no run %s of %s in %s", want, l.opt.User, strings.Join(l.opt.Roots, ", ")).WithHint("tp job ls")
	case 1:
		return l.Load(dirs[0])
	}
	var lines strings.Builder
	for i, d := range dirs {
		if i == 10 {
			lines.WriteString("\n  …")
			break
		}
		lines.WriteString("\n  " + filepath.Base(d) + "  " + filepath.Base(filepath.Dir(d)))
	}
	return nil, fault.New(fault.Usage, "%q fits %d runs:%s", prefix, len(dirs), lines.String()).WithHint("give more digits of the id")
}

// Begin are the ids of the user's runs that begin with these digits.
func (l *Ledger) Begin(digits string) ([]ID, error) {
	dirs, err := l.beginning(IDPrefix + digits)
	var ids []ID
	for _, d := range dirs {
		ids = append(ids, ID(filepath.Base(d)))
	}
	return ids, err
}

func (l *Ledger) beginning(prefix string) ([]string, error) {
	dirs, err := l.dirs("")
	return slices.DeleteFunc(dirs, func(d string) bool { return !strings.HasPrefix(filepath.Base(d), prefix) }), err
}

// Reindex throws the index away and reads every run of the user; it returns
// how many there are.
func (l *Ledger) Reindex() (int, error) {
	l.Close()
	if l.opt.StateDir != "" {
		removeIndex(l.indexPath())
	}
	runs, err := l.List(Filter{})
	return len(runs), err
}

// remembered is the index by directory; empty without one.
func (l *Ledger) remembered(user string) map[string]row {
	switch user {
	case "":
		user = Slug(l.opt.User)
	case Everybody:
		user = ""
	default:
		user = Slug(user)
	}
	out := map[string]row{}
	l.withIndex(func(x *index) error {
		rows, err := x.rows(user)
		for _, r := range rows {
			out[r.dir] = r
		}
		return err
	})
	return out
}

// candidate is a run that may be listed.
type candidate struct {
	created time.Time
	run     *Run // nil: in the index, not looked at yet
	row     row  // its final is true only while that is known to hold
}

// atOnce is how many rows of the index are read with their content at a time.
const atOnce = 256

// look fills in the runs that the index still tells rightly. Those that are
// final are left out where only active ones are wanted.
func (l *Ledger) look(some []candidate, f Filter) {
	var dirs []string
	for i, c := range some {
		if c.run != nil {
			continue
		}
		if !fresh(c.row.dir, c.row.stamp) {
			some[i].row.final = false
		} else if !f.Active || !c.row.final {
			dirs = append(dirs, c.row.dir)
		}
	}
	if len(dirs) == 0 {
		return
	}
	l.withIndex(func(x *index) error {
		runs, err := x.runs(dirs)
		for i, c := range some {
			if c.run == nil {
				some[i].run = runs[c.row.dir]
			}
		}
		return err
	})
}

// dirs lists the run directories of a user below all roots.
func (l *Ledger) dirs(user string) ([]string, error) {
	var out []string
	for _, root := range l.opt.Roots {
		users := []string{user}
		switch user {
		case "":
			users[0] = Slug(l.opt.User)
		case Everybody:
			var err error
			if users, err = names(root); err != nil {
				return nil, err
			}
		default:
			users[0] = Slug(user)
		}
		for _, u := range users {
			list := names
			if user == "" {
				list = ownNames
			}
			exps, err := list(filepath.Join(root, u))
			if err != nil {
				return nil, err
			}
			for _, e := range exps {
				dir := filepath.Join(root, u, e)
				runs, err := list(dir)
				if err != nil {
					return nil, err
				}
				for _, r := range runs {
					if ID(r).Valid() {
						out = append(out, filepath.Join(dir, r))
					}
				}
			}
		}
	}
	return out, nil
}

// names is ownNames for directories of others: one that may not be read has none.
func names(dir string) ([]string, error) {
	list, err := ownNames(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return list, err
}

// ownNames lists the visible directories in dir. A missing one has none; other
// errors, such as a stale NFS handle, must not look like an empty ledger.
func ownNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Type()&^fs.ModeDir&^fs.ModeSymlink == 0 && e.Type() != 0 {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
