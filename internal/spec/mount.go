package spec

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Mount is a directory or file of the node that a container sees.
type Mount struct {
	Source   string `json:"source"` // absolute and clean, as Target
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Origin   string `json:"origin,omitempty"` // "run directory", "--mount", "job.toml:7", …
}

// ParseMount reads SOURCE[:TARGET][:ro|:rw]. Paths are absolute; the target is
// the source where it is not said.
func ParseMount(text string) (Mount, error) {
	m, err := parseMount(text)
	if err != nil {
		return Mount{}, fmt.Errorf("mount %q: %w", text, err)
	}
	return m, nil
}

func parseMount(text string) (Mount, error) {
	parts := strings.Split(text, ":")
	var m Mount
	if last := parts[len(parts)-1]; len(parts) > 1 && (last == "ro" || last == "rw") {
		m.ReadOnly, parts = last == "ro", parts[:len(parts)-1]
	}
	switch len(parts) {
	case 1:
		m.Source, m.Target = parts[0], parts[0]
	case 2:
		m.Source, m.Target = parts[0], parts[1]
	default:
		return m, errors.New("expected SOURCE[:TARGET][:ro], and a path cannot have a colon in it")
	}
	return m, m.Check()
}

// ofImage are directories whose content a mount would take away from the image
// or from the runtime.
var ofImage = []string{"/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"}

// Check refuses a mount that nobody can mean.
func (m Mount) Check() error {
	for _, p := range []string{m.Source, m.Target} {
		switch {
		case !path.IsAbs(p):
			return fmt.Errorf("%q is no absolute path", p)
		case path.Clean(p) != p:
			return fmt.Errorf("write %s as %s", p, path.Clean(p))
		case strings.ContainsFunc(p, unicode.IsControl):
			return fmt.Errorf("%q has a control character", p)
		}
	}
	if slices.Contains(ofImage, m.Target) {
		return fmt.Errorf("%s belongs to the image; mount below it", m.Target)
	}
	if strings.HasPrefix(m.Target, "/proc/") || strings.HasPrefix(m.Target, "/sys/") {
		return fmt.Errorf("%s belongs to the kernel", m.Target)
	}
	return nil
}

// Sees reports whether a path of the node has the same name below the mount.
func (m Mount) Sees(p string) bool {
	return m.Source == m.Target && (p == m.Source || m.Source == "/" || strings.HasPrefix(p, m.Source+"/"))
}

// String is as ParseMount reads it.
func (m Mount) String() string {
	text := m.Source
	if m.Target != m.Source {
		text += ":" + m.Target
	}
	if m.ReadOnly {
		text += ":ro"
	}
	return text
}
