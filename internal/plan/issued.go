package plan

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/internal/fault"
)

// Issued is a plan on disk, with what is needed to resolve it again.
type Issued struct {
	Plan *Plan `json:"plan"`
	// Lab is the lab's root and Options the flags, as the command that made the
	// plan had them; --plan resolves the same again and compares.
	Lab     string          `json:"lab"`
	Options json.RawMessage `json:"options"`
	Env     json.RawMessage `json:"env"` // the caller's allow-list at that time
}

// maxPlan bounds a plan document: a script of 4 MiB, which Slurm's
// max_script_size allows by default, and its copy in JSON fit.
const maxPlan = 32 << 20

// Book keeps issued plans, one file each, readable by the user alone.
type Book struct{ Dir string }

// Save keeps a plan until it expires and forgets those that have.
func (b Book) Save(i Issued, now time.Time) error {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	b.sweep(now)
	return durable.WriteFile(filepath.Join(b.Dir, i.Plan.Digest+".json"), data, 0o600)
}

// Load finds a plan by its digest or a prefix of at least 8 digits.
func (b Book) Load(prefix string) (Issued, error) {
	if len(prefix) < 8 || strings.Trim(prefix, "0123456789abcdef") != "" {
		return Issued{}, fault.New(fault.Usage, "--plan %q: expected the digest of a plan, 8 to 64 hex digits", prefix).WithHint("tp plan")
	}
	names, err := filepath.Glob(filepath.Join(b.Dir, prefix+"*.json"))
	if err != nil {
		return Issued{}, err
	}
	switch len(names) {
	case 0:
		return Issued{}, fault.New(fault.Changed, "no plan %s is kept here: it has expired, or it was made on another machine", prefix).WithHint("tp plan")
	case 1:
	default:
		return Issued{}, fault.New(fault.Usage, "--plan %s means %d plans; give more digits", prefix, len(names))
	}
	data, err := durable.Read(names[0], maxPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return Issued{}, fault.New(fault.Changed, "plan %s has just expired", prefix).WithHint("tp plan")
	}
	if err != nil {
		return Issued{}, err
	}
	var i Issued
	err = json.Unmarshal(data, &i)
	if err == nil && (i.Plan == nil || i.Plan.Digest+".json" != filepath.Base(names[0])) {
		err = errors.New("it is another plan than its name says")
	}
	if err != nil {
		return Issued{}, fault.New(fault.Changed, "%s cannot be read: %w", names[0], err).WithHint("tp plan")
	}
	return i, nil
}

// sweep removes plans whose file is older than a day: longer than any plan
// lives (plan_ttl is at most 24 h), so that a confirmed one can still be named.
func (b Book) sweep(now time.Time) {
	entries, _ := os.ReadDir(b.Dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(b.Dir, e.Name()))
		}
	}
}

// Changes names what differs between two resolutions of one plan, in the words
// of the preview.
func Changes(shown, again *Plan) []string {
	if shown.Digest == again.Digest {
		return nil
	}
	var out []string
	note := func(what string, a, b any) {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			out = append(out, what)
		}
	}
	s, g := shown.Fixed, again.Fixed
	note("the bundle: files of the experiment changed", s.Bundle, g.Bundle)
	note("the pools or their limits", s.Pools, g.Pools)
	note("the environment", s.Request.Env, g.Request.Env)
	note("parameters or settings", s.Spec, g.Spec)
	note("the fleet", s.Fleet+s.Cluster, g.Fleet+g.Cluster)
	note("the run directory", s.RunDir, g.RunDir)
	if len(out) == 0 {
		out = append(out, "the batch script, through another version of tp or of the site file")
	}
	return out
}
