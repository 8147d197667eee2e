package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/plan"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/internal/version"
	"github.com/tuneplane/tp/slurm/connect"
)

type doctorCmd struct{}

// Run checks tools, files, object store and clusters, at the same time. What it
// makes to see whether that works it removes; nothing else is changed.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	list := []site.Finding{found(site.Good, "tp", "", "%s", version.Version)}
	conf, err := a.site()
	if err != nil {
		return a.findings(append(append(list, tools(ctx)...), found(site.Bad, "site file", "tp site check", "%v", err)))
	}
	// What several goroutines read is filled in before.
	_, _ = a.user()
	runRoot := a.checkRunRoot()
	var lives []live
	var programs, store, slurms []site.Finding
	var group errgroup.Group
	group.Go(func() error { lives = a.lives(ctx, conf, true); return nil })
	group.Go(func() error { programs = tools(ctx); return nil })
	group.Go(func() error { slurms = a.slurmTools(ctx, conf); return nil })
	group.Go(func() error { store = []site.Finding{a.checkStore(ctx)}; return nil })
	_ = group.Wait()

	list = append(list, programs...)
	for _, l := range lives {
		if l.err == nil && l.Snap.Info.Local {
			list = append(list, unpackers()...) // jobs unpack their code here
			break
		}
	}
	list = append(list, siteFile(conf)...)
	list = append(list, runRoot...)
	list = append(list, a.checkPlaces(conf)...)
	list = append(list, store...)
	list = append(list, slurms...)
	var answered []site.Live
	seen := map[string]bool{}
	for _, l := range lives {
		list = append(list, l.way()...)
		if l.err == nil && !l.Snap.Info.Local {
			answered = append(answered, l.Live)
			if !seen[l.cl.info.Cluster] { // once, however many ways lead there
				list = append(list, l.examine()...)
			}
			seen[l.cl.info.Cluster] = true
		}
	}
	return a.findings(append(list, troubles(conf.Check(answered))...))
}

// checkStore writes, finds and removes a small object.
func (a *app) checkStore(ctx context.Context) site.Finding {
	const topic, fix = "object store", "[objects] in the site file"
	st, err := a.objects()
	if err != nil {
		return found(site.Bad, topic, fix, "%v", err)
	}
	name := "probe-" + plan.NewRunID()
	if err := st.Put(ctx, name, []byte("tp doctor\n")); err != nil {
		return found(site.Bad, topic, fix, "%s: %v", st, err)
	}
	has, err := st.Has(ctx, []string{name})
	if derr := st.Delete(ctx, name); err == nil {
		err = derr
	}
	if err != nil || !has[0] {
		return found(site.Bad, topic, fix, "%s: an object could be written but not found and removed: %v", st, err)
	}
	return found(site.Good, topic, "", "%s: written, found, removed", st)
}

// way says how a fleet is reached, and what each other way would do.
func (l live) way() []site.Finding {
	list := []site.Finding{l.reached()}
	topic := list[0].Topic
	var none *connect.Error
	if errors.As(l.err, &none) && len(l.ways) > 0 { // each reason has a line of its own below
		list[0].What, _, _ = strings.Cut(list[0].What, "\n")
	}
	for _, w := range l.ways {
		if w.Err != nil {
			list = append(list, found(site.Note, topic, "", "not by %s", w))
		} else if l.cl == nil || w.What != l.cl.choice.Transport {
			list = append(list, found(site.Good, topic, "", "way %s: %s works", w.Way, w.What))
		}
	}
	if l.cl != nil {
		for _, w := range l.cl.choice.Warnings {
			list = append(list, found(site.Warn, topic, "", "%s", w))
		}
	}
	return list
}

// examine says what follows from how a cluster is set up.
func (l live) examine() []site.Finding {
	info := l.cl.info
	list := []site.Finding{found(site.Good, "cluster", "", "%s, Slurm %s, %d nodes, %d partitions", info.Cluster, info.Release, len(l.Snap.Nodes), len(l.Snap.Partitions))}
	if info.Account {
		list = append(list, found(site.Good, "accounting", "", "answers"))
	} else {
		list = append(list, found(site.Warn, "accounting", "", "does not answer: states of forgotten jobs come from their end markers, limits are unknown"))
	}
	list = append(list, l.rights()...)
	list = append(list, l.clock()...)
	if name := l.defaultPartition(); name != "" {
		list = append(list, found(site.Good, "partition", "", "%s is the default", name))
	} else {
		list = append(list, found(site.Note, "partition", "", "no default is known: every pool names its own"))
	}
	if l.why != "" {
		list = append(list, found(site.Note, "slurm.conf", "", "is not known: %s", l.why))
	}
	return append(list, site.Remarks(l.Facts)...)
}

// rights are the accounts and QOS that the user may ask for.
func (l live) rights() []site.Finding {
	const topic = "accounts"
	switch {
	case l.Facts.Associations == nil:
		return []site.Finding{found(site.Note, topic, "", "yours are not known; what you type is passed on as it is")}
	case len(l.Facts.Associations) == 0:
		return []site.Finding{found(site.Warn, topic, "ask the administrator for an association", "accounting knows you on no account of this cluster")}
	}
	var list []site.Finding
	for _, r := range l.Facts.Associations {
		text := "--account " + r.Account
		if strings.ContainsAny(r.Account, " '\"") {
			text = fmt.Sprintf("--account %q", r.Account)
		}
		if r.Default {
			text += " (your default)"
		}
		if r.Partition != "" {
			text += " in partition " + r.Partition
		}
		if len(r.QOS) > 0 {
			text += ", QOS " + strings.Join(slices.Sorted(slices.Values(r.QOS)), ", ")
		}
		if r.DefaultQOS != "" {
			text += "; default QOS " + r.DefaultQOS
		}
		list = append(list, found(site.Good, topic, "", "%s", text))
	}
	return list
}

// clock compares this host's with the controller's. Beyond munge's five minutes
// nothing is believed any more.
func (l live) clock() []site.Finding {
	if l.Facts.Clock.IsZero() {
		return nil
	}
	host, _ := os.Hostname()
	skew := l.Facts.Clock.Sub(l.Facts.Read).Abs()
	switch {
	case skew.Seconds() > 60:
		return []site.Finding{found(site.Bad, "clock", "chronyc tracking on "+host, "the controller's differs from this host's by %v: tokens and munge fail", skew.Round(1e9))}
	case skew.Seconds() > 5:
		return []site.Finding{found(site.Warn, "clock", "chronyc tracking on "+host, "the controller's differs from this host's by %v", skew.Round(1e9))}
	}
	return []site.Finding{found(site.Good, "clock", "", "the controller's and this host's agree")}
}

func (l live) defaultPartition() string {
	for _, p := range l.Snap.Partitions {
		if p.Default {
			return p.Name
		}
	}
	for _, p := range l.Facts.Partitions {
		if p.Get("Default") == "YES" {
			return p.Get("PartitionName")
		}
	}
	return ""
}
