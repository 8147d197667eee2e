package plan

import (
	"path"
	"slices"

	"github.com/tuneplane/tp/gates"
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/slurm"
)

// software chooses what the roles run in, with everything that a container has
// to see of the node.
func software(in Input) (gates.Software, []string, error) {
	s := in.Spec
	w := gates.Software{Framework: s.Framework, Registered: in.Software.Names(), Allow: in.Software.Allow, AllowSet: in.Software.AllowSet, Place: in.Software.Origin}
	origin := "--image"
	for _, set := range in.Settings {
		if set.Key == "image" {
			origin = set.Origin
		}
	}
	r, found, err := in.Software.Choose(s.Framework, s.Image, origin)
	if err != nil {
		return w, nil, err
	}
	w.Missing = !found
	var warnings []string
	if r.Contained() {
		if r.Mounts, err = in.mounts(r); err != nil {
			return w, nil, err
		}
		if r.Image.File() && in.Stat != nil {
			w.Absent = in.Stat(r.Image.Path)
		}
		if text := r.Image.Unpinned(); text != "" {
			warnings = append(warnings, text)
		}
	} else if len(s.Mounts) > 0 {
		warnings = append(warnings, "mounts are for containers: this job runs on the node itself and sees "+s.Mounts[0].Source+" where it is")
	}
	w.Runtime = r
	return w, warnings, nil
}

// mounts are those of the site, of the runtime and of the job, then model and
// data by their paths where nothing shows them yet, then the run directory,
// last, so that none of the others covers it.
func (in Input) mounts(r spec.Runtime) ([]spec.Mount, error) {
	s := in.Spec
	list := slices.Concat(in.Software.Mounts, r.Mounts, s.Mounts)
	sees := func(p string) bool {
		return slices.ContainsFunc(list, func(m spec.Mount) bool { return m.Sees(p) })
	}
	if r.Container == spec.OCI {
		if len(s.Mounts) > 0 {
			return nil, fault.New(fault.Usage, "%s: Slurm's --container mounts nothing: what the bundle %s shows is in its config.json", s.Mounts[0].Origin, r.Image)
		}
		for _, p := range append(paths(s), in.RunDir) {
			if !sees(p) {
				return nil, fault.New(fault.Usage, "%s is not in the bundle %s: Slurm's --container mounts nothing, and the site file names no mount of the bundle's config.json that shows it", p, r.Image).
					WithHint("mounts = [%q] in the runtime, once config.json has it", path.Dir(p))
			}
		}
		return list, nil
	}
	for _, p := range paths(s) {
		if !sees(p) {
			list = append(list, spec.Mount{Source: p, Target: p, ReadOnly: true, Origin: "model or data"})
		}
	}
	return append(list, spec.Mount{Source: in.RunDir, Target: in.RunDir, Origin: "run directory"}), nil
}

// paths are model and data where they are paths of the cluster and no ids of a
// hub.
func paths(s *spec.Spec) []string {
	var out []string
	for _, p := range []string{s.Model, s.Data.Train, s.Data.Validation} {
		if path.IsAbs(p) && path.Clean(p) != "/" && !slices.Contains(out, path.Clean(p)) {
			out = append(out, path.Clean(p))
		}
	}
	return out
}

// forced are the variables that somebody set for this job: they win over the
// image's, which otherwise win over the node's.
func forced(s *spec.Spec, env []slurm.EnvVar) []string {
	var out []string
	for _, v := range env {
		if slices.ContainsFunc(s.Env, func(e spec.EnvVar) bool { return e.Name == v.Name }) {
			out = append(out, v.Name)
		}
	}
	return out
}
