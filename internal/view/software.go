package view

import (
	"fmt"

	"github.com/tuneplane/tp/internal/spec"
)

// software is what the roles run in: image, what starts it, and where both were
// said.
func software(r spec.Runtime) []string {
	from := ""
	if r.Name != "" {
		from = fmt.Sprintf("runtime %s (%s)", r.Name, r.Origin)
	} else if r.Origin != "" {
		from = r.Origin
	}
	if !r.Contained() {
		if from == "" {
			return []string{"none: runs on the node itself"}
		}
		lines := []string{"none: runs on the node itself, " + from}
		return append(lines, r.Prolog...)
	}
	lines := []string{r.Image.String(), fmt.Sprintf("started by %s, %s", r.Container, from)}
	if r.Image.Digest == "" {
		lines[1] += "; not pinned by a digest"
	}
	if r.Credentials != "" {
		lines = append(lines, "with the credentials in "+r.Credentials)
	}
	if r.Home {
		lines = append(lines, "the home directory is mounted")
	}
	return lines
}

// mount is one mount as a person reads it.
func mount(m spec.Mount) string {
	text := m.Source
	if m.Target != m.Source {
		text += " at " + m.Target
	}
	if m.ReadOnly {
		text += ", read only"
	}
	return text + " (" + m.Origin + ")"
}
