package gates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// shownNames bounds a list of names in a verdict.
const shownNames = 10

// namedNodes looks for the nodes that a pool names. Slurm 22.05 to 26.05 refuse
// an unknown one in either list, and one outside of the partition in the first;
// to exclude those is nothing to object to.
func (s Subject) namedNodes(p spec.Pool) []Verdict {
	snap := s.Snapshot
	if len(snap.Nodes) == 0 {
		return nil
	}
	var all []string
	in := map[string]bool{}
	for _, n := range snap.Nodes {
		all = append(all, n.Name)
		in[n.Name] = slices.Contains(n.Partitions, p.Partition)
	}
	var out []Verdict
	for _, l := range []struct{ flag, text string }{{"--nodelist", p.Asked.NodeList}, {"--exclude-nodes", p.Asked.ExcludeNodes}} {
		if strings.Contains(l.text, "/") { // a file of names, which sbatch reads
			continue
		}
		names, err := slurm.Expand(l.text)
		if err != nil {
			out = append(out, Verdict{Code: "admission.nodes", Asked: l.flag + " " + l.text, Found: err.Error(), Remedy: l.flag + " NAME-[1-2],OTHER"})
			continue
		}
		var unknown, outside []string
		for _, name := range names {
			inside, known := in[name]
			switch {
			case !known:
				unknown = append(unknown, name)
			case !inside && l.flag == "--nodelist" && len(snap.NodesIn(p.Partition)) > 0:
				outside = append(outside, name)
			}
		}
		if len(unknown) > 0 {
			v := Verdict{Code: "admission.nodes", Asked: l.flag + " " + l.text, Found: "the cluster has no node " + few(unknown), Remedy: "sinfo -N, or tp fleet show --json"}
			if near := fault.Nearest(unknown[0], all); near != "" {
				v.Found += fmt.Sprintf("; did you mean %s?", near)
				v.Remedy = s.option(l.flag, p, near)
			}
			out = append(out, v)
		}
		if len(outside) > 0 {
			var has []string
			for _, n := range snap.NodesIn(p.Partition) {
				has = append(has, n.Name)
			}
			out = append(out, Verdict{Code: "admission.nodes", Asked: l.flag + " " + l.text,
				Found:  fmt.Sprintf("partition %s has no node %s; its nodes are %s", p.Partition, few(outside), slurm.Compress(has)),
				Remedy: "another --nodelist, or " + s.option("--partition", p, "NAME")})
		}
	}
	return out
}

func few(names []string) string {
	if len(names) > shownNames {
		return strings.Join(names[:shownNames], ", ") + fmt.Sprintf(" and %d more", len(names)-shownNames)
	}
	return strings.Join(names, ", ")
}

// licenses looks for the licences that the job names, in the form
// name[@server][:count], with commas between.
func licenses(s Subject) []Verdict {
	if s.Spec == nil || s.Spec.Job.Slurm.Licenses == "" || s.Snapshot.Info.Local {
		return nil
	}
	asked := s.Spec.Job.Slurm.Licenses
	var have map[string]int
	if s.Licenses != nil {
		have = s.Licenses()
	}
	if have == nil {
		return []Verdict{{Code: "admission.licenses", Level: Unknown, Asked: "licences " + asked, Found: "which the cluster has cannot be asked here"}}
	}
	var names []string
	for name := range have {
		names = append(names, name)
	}
	var out []Verdict
	either := strings.Contains(asked, "|") // one of them is enough, and Slurm says so of none
	for item := range strings.FieldsFuncSeq(asked, func(r rune) bool { return strings.ContainsRune(",;|", r) }) {
		name, text, _ := strings.Cut(strings.TrimSpace(item), ":")
		count, err := strconv.Atoi(text)
		if err != nil {
			count = 1 // the count may be left out; what is no number sbatch refuses
		}
		total, known := have[name]
		switch v := (Verdict{Code: "admission.licenses", Asked: "licence " + item}); {
		case either:
		case !known && len(names) == 0:
			v.Found, v.Remedy = "the cluster has no licences", "leave --licenses out"
			out = append(out, v)
		case !known:
			v.Found, v.Remedy = meant("the cluster has", name, names), "scontrol show licenses"
			if near := fault.Nearest(strings.ToLower(name), sorted(names)); near != "" {
				v.Remedy = fmt.Sprintf("--licenses %s", strings.Replace(item, name, near, 1))
			}
			out = append(out, v)
		case count > total:
			v.Found, v.Remedy = fmt.Sprintf("the cluster has %d of it in all", total), fmt.Sprintf("--licenses %s:%d", name, total)
			out = append(out, v)
		}
	}
	return out
}
