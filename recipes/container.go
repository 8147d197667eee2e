package recipes

import (
	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

// readContainer reads the image, into the one form that everybody after this
// knows, and the mounts that the job asks for.
func (c *composer) readContainer() error {
	text := c.text("image", c.opts.Image, func(j *lab.JobFile) string { return j.Image })
	image, err := spec.ParseImage(text)
	if err != nil {
		return fault.New(fault.Usage, "%s: %w", c.origin("image"), err).
			WithHint("--image registry.example.org/team/name:tag@sha256:…, or /PATH/NAME.sqsh or .sif")
	}
	if image.Kind != spec.NoImage {
		c.spec.Image = image.String()
	}
	for _, text := range c.list("mounts", c.opts.Mounts, func(j *lab.JobFile) []string { return j.Mounts }) {
		m, err := spec.ParseMount(text)
		if err != nil {
			return fault.New(fault.Usage, "%s: %w", c.origin("mounts"), err).WithHint("--mount /shared/data:/data:ro")
		}
		m.Origin = c.origin("mounts")
		c.spec.Mounts = append(c.spec.Mounts, m)
	}
	return nil
}
