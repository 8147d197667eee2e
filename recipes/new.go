package recipes

import (
	"io/fs"

	"github.com/tuneplane/tp/internal/lab"
)

// NewExperiment makes experiments/<name> from a recipe's template, or as a
// fork of another experiment when from is not nil. A fork of ours gets a fresh
// lock for the same recipe; a foreign lock is copied as it is. Version is that
// of this program.
func NewExperiment(l *lab.Lab, c *Catalog, name, recipe string, from *lab.Experiment, version string) (*lab.Experiment, error) {
	var template fs.FS
	framework := ""
	if from != nil {
		locked, err := ReadLock(from)
		if err != nil {
			return nil, err
		}
		if locked.Tool != lockTool {
			return l.New(name, lab.NewOptions{From: from})
		}
		recipe, framework = locked.Recipe.Name, locked.Framework.Version
	}
	r, err := c.Get(recipe)
	if err != nil {
		return nil, err
	}
	lock, err := NewLock(r, framework)
	if err != nil {
		return nil, err
	}
	if from == nil {
		template = r.Template
	}
	return l.New(name, lab.NewOptions{From: from, Template: template, Files: map[string][]byte{lab.LockName: lock.Encode(version)}})
}
