package recipes

import (
	"io/fs"
	"path"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// Preset is a configuration that a new experiment can start with in place of
// the template's: presets/<name>/ of the recipe's directory, whose files replace
// those of the template. Files of presets/ beside the methods of a framework go
// along with each.
type Preset struct {
	Name string `json:"name"`
	Doc  string `json:"doc,omitempty"` // first line of its config.yaml, a comment
}

func readPresets(tree fs.FS, dir string) (own, shared fs.FS, all []Preset, err error) {
	entries, err := fs.ReadDir(tree, dir+"/presets")
	if err != nil {
		return nil, nil, nil, nil // most recipes have none
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		text, _ := fs.ReadFile(tree, path.Join(dir, "presets", e.Name(), configName))
		line, _, _ := strings.Cut(string(text), "\n")
		doc, ok := strings.CutPrefix(line, "# ")
		if !ok {
			doc = ""
		}
		if bad := control(e.Name() + doc); bad != "" {
			return nil, nil, nil, fault.New(fault.Usage, "%s/presets: %q has a control character", dir, bad)
		}
		all = append(all, Preset{e.Name(), doc})
	}
	if own, err = fs.Sub(tree, dir+"/presets"); err != nil {
		return nil, nil, nil, err
	}
	if info, err := fs.Stat(tree, path.Dir(dir)+"/presets"); err == nil && info.IsDir() {
		if shared, err = fs.Sub(tree, path.Dir(dir)+"/presets"); err != nil {
			return nil, nil, nil, err
		}
	}
	return own, shared, all, nil
}

// templates are the files of a new experiment, later ones over earlier ones.
func (r *Recipe) templates(preset string) ([]fs.FS, error) {
	if preset == "" {
		return []fs.FS{r.Template}, nil
	}
	var names []string
	for _, p := range r.Presets {
		if p.Name != preset {
			names = append(names, p.Name)
			continue
		}
		own, err := fs.Sub(r.presets, preset)
		if err != nil {
			return nil, err
		}
		if r.shared == nil {
			return []fs.FS{r.Template, own}, nil
		}
		return []fs.FS{r.Template, r.shared, own}, nil
	}
	if len(names) == 0 {
		return nil, fault.New(fault.Usage, "--preset %q: %s has no presets", preset, r.Name).WithHint("leave --preset out, and see tp methods %s", r.Name)
	}
	err := fault.New(fault.Usage, "--preset %q: %s has the presets %s", preset, r.Name, joined(names))
	if near := fault.Nearest(preset, names); near != "" {
		return nil, err.WithHint("did you mean %q?", near)
	}
	return nil, err.WithHint("tp methods %s describes them", r.Name)
}
