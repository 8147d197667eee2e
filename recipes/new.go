package recipes

import (
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
)

// New says what a new experiment starts from.
type New struct {
	Recipe  string
	Preset  string          // of the recipe; "" is its template as it is
	From    *lab.Experiment // a fork of this one instead
	Version string          // of this program
}

// NewExperiment makes experiments/<name> from a recipe's template, or as a
// fork of another experiment. A fork of ours gets a fresh lock for the same
// recipe; a foreign lock is copied as it is.
func NewExperiment(l *lab.Lab, c *Catalog, name string, o New) (*lab.Experiment, error) {
	framework := ""
	if o.From != nil {
		if o.Preset != "" {
			return nil, fault.New(fault.Usage, "--preset fills a recipe's template, and --from copies an experiment; only one of them").
				WithHint("tp new %s --method NAME --preset %s", name, o.Preset)
		}
		locked, err := ReadLock(o.From)
		if err != nil {
			return nil, err
		}
		if locked.Tool != lockTool {
			return l.New(name, lab.NewOptions{From: o.From})
		}
		o.Recipe, framework = locked.Recipe.Name, locked.Framework.Version
	}
	r, err := c.Get(o.Recipe)
	if err != nil {
		return nil, err
	}
	lock, err := NewLock(r, framework)
	if err != nil {
		return nil, err
	}
	more := lab.NewOptions{From: o.From, Files: map[string][]byte{lab.LockName: lock.Encode(o.Version)}}
	if o.From == nil {
		if more.Templates, err = r.templates(o.Preset); err != nil {
			return nil, err
		}
	}
	return l.New(name, more)
}
