package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
)

// Upgrade is what would become of an experiment's lock.
type Upgrade struct {
	Experiment *lab.Experiment `json:"-"`
	Rel        string          `json:"experiment"`
	State      LockState       `json:"state"`
	Reasons    []string        `json:"reasons,omitempty"`
	Recipe     string          `json:"recipe,omitempty"`
	Changes    []string        `json:"changes,omitempty"` // lines of the lock that differ, old ones with -, new ones with +

	old, new []byte // old is nil where there was no file
}

// UpgradeOptions of PlanUpgrade.
type UpgradeOptions struct {
	Recipe           string // also where the lock is foreign, malformed or missing; empty: the locked one
	FrameworkVersion string // empty: the locked one
	Version          string // of this program
}

// Needed says whether Apply would write.
func (u *Upgrade) Needed() bool { return len(u.new) > 0 && !bytes.Equal(u.old, u.new) }

// PlanUpgrade finds what an experiment's lock should be, and holds the
// experiment against it before anything is written. A foreign lock stays as it
// is unless a recipe is named.
func (c *Catalog) PlanUpgrade(l *lab.Lab, e *lab.Experiment, o UpgradeOptions) (*Upgrade, error) {
	u := &Upgrade{Experiment: e, Rel: e.Rel}
	data, err := lab.ReadFile(e.Path(lab.LockName))
	if err == nil {
		u.old = data
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	old, err := ReadLock(e)
	if err != nil {
		u.State, u.Reasons = Malformed, []string{err.Error()}
		if o.Recipe == "" {
			return u, err
		}
		old = &Lock{}
	} else {
		u.State, u.Reasons = c.Check(old)
		u.Recipe = old.Recipe.Name
	}
	fresh, err := c.upgraded(e, old, u.State, o)
	if err != nil || fresh == nil {
		return u, err
	}
	u.Recipe = fresh.Recipe.Name
	if _, _, err := Compose(l, e, Options{Catalog: c, Lock: fresh, Draft: true, Profiles: []string{"any"}}); err != nil {
		return u, fault.New(fault.Usage, "%s does not fit %s %s: %w", e.Rel, fresh.Recipe.Name, fresh.Recipe.Version, err).
			WithHint("change it, then tp recipe upgrade %s again", e.Name)
	}
	u.new = fresh.Encode(o.Version)
	u.Changes = changed(u.old, u.new)
	return u, nil
}

// upgraded is the new lock; nil where the old one stays.
func (c *Catalog) upgraded(e *lab.Experiment, old *Lock, state LockState, o UpgradeOptions) (*Lock, error) {
	name, version := o.Recipe, o.FrameworkVersion
	if name == "" {
		if state == Current && (version == "" || version == old.Framework.Version) || state == Foreign {
			return nil, nil
		}
		name = old.Recipe.Name
	}
	r, err := c.Get(name)
	if err != nil {
		return nil, err
	}
	if version == "" && old.Framework.Kind == r.Framework.Kind && old.Tool == lockTool {
		version = old.Framework.Version
	}
	lock, err := NewLock(r, version)
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" {
		return nil, f.WithHint("tp recipe upgrade %s --framework-version %s", e.Name, r.Framework.Default)
	}
	return lock, err
}

// changed lists the lines that differ, which in a lock of sorted keys says
// enough.
func changed(old, new []byte) []string {
	count := map[string]int{}
	for _, line := range strings.Split(string(new), "\n") {
		count[line]++
	}
	var out []string
	for _, line := range strings.Split(string(old), "\n") {
		if count[line]--; count[line] < 0 && line != "" {
			out = append(out, "- "+strings.TrimSpace(line))
		}
	}
	for _, line := range strings.Split(string(new), "\n") {
		if count[line] > 0 {
			count[line]--
			out = append(out, "+ "+strings.TrimSpace(line))
		}
	}
	return out
}

// Apply writes the locks of all upgrades, or none: what was written before one
// fails is put back.
func Apply(all []*Upgrade) error {
	for i, u := range all {
		if !u.Needed() {
			continue
		}
		err := lab.WriteFile(u.Experiment.Path(lab.LockName), u.new)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s/%s: %w", u.Rel, lab.LockName, err)
		for _, done := range all[:i] {
			if done.Needed() {
				err = errors.Join(err, done.restore())
			}
		}
		return err
	}
	return nil
}

func (u *Upgrade) restore() error {
	path := u.Experiment.Path(lab.LockName)
	if u.old == nil {
		return os.Remove(path)
	}
	return lab.WriteFile(path, u.old)
}
