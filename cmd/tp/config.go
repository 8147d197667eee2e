package main

import (
	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/ui"
)

type configCmd struct {
	Show configShowCmd `cmd:"" default:"withargs" help:"Print every setting with its origin."`
}

type configShowCmd struct{ jobFlags }

// Run prints the settings of site and user file, and for an experiment those of
// the job.
func (c *configShowCmd) Run(a *app) error {
	conf, err := a.site()
	if err != nil {
		return err
	}
	var rows []plan.Setting
	if c.Experiment == "" {
		for _, v := range conf.Values() {
			rows = append(rows, plan.Setting{Key: v.Key, Value: v.Text, Origin: v.Origin})
		}
	} else if rows, err = c.job(a); err != nil {
		return err
	}
	if a.cli.JSON {
		return a.printJSON(rows)
	}
	// A key or a file that is cut off is of no use, so long lines are wrapped.
	table := [][]string{{"setting", "value", "from"}}
	for _, s := range rows {
		table = append(table, []string{s.Key, s.Value, s.Origin})
	}
	ui.Table(ui.Wrap(a.Out, a.Width, 0), "", table)
	return nil
}

// job are the settings of an experiment with their origins.
func (c *configShowCmd) job(a *app) ([]plan.Setting, error) {
	_, how, err := a.compose(c.jobFlags)
	if err != nil {
		return nil, err
	}
	return settings(how.Settings), nil
}
