package lab

import (
	"regexp"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
	"github.com/tuneplane/tp/internal/tomlfile"
	"go.yaml.in/yaml/v4"
)

// readTOML reads our own marker, strictly.
func (l *Lab) readTOML(data []byte) error {
	f, err := tomlfile.Parse(l.Marker, data)
	if err != nil {
		return err
	}
	if err := refuse(f); err != nil {
		return err
	}
	var keys struct {
		Name        string       `toml:"name"`
		Description string       `toml:"description"`
		Defaults    spec.JobKeys `toml:"defaults"`
	}
	if err := f.Decode(&keys); err != nil {
		return err
	}
	l.Name, l.Description = keys.Name, keys.Description
	if err := checkProject(l.Name); err != nil {
		return f.Errorf([]string{"name"}, "%w", err)
	}
	if _, ok := f.Find("defaults"); ok {
		l.Defaults, err = NewJobFile(f, []string{"defaults"}, keys.Defaults)
	}
	return err
}

var projectVersion = regexp.MustCompile(`^(tuneplane|forge)/project/v[0-9]+$`)

// readYAML reads the marker of an existing TunePlane lab. It is not our format,
// so keys we do not know are left alone.
func (l *Lab) readYAML(data []byte) error {
	var keys struct {
		APIVersion string `yaml:"apiVersion"`
		Name       string `yaml:"name"`
	}
	if err := yaml.Unmarshal(data, &keys); err != nil {
		return fault.New(fault.Usage, "%s: %w", l.Marker, err)
	}
	if keys.APIVersion != "" && !projectVersion.MatchString(keys.APIVersion) {
		return fault.New(fault.Usage, "%s: apiVersion %q is not known; expected tuneplane/project/v1 or forge/project/v1", l.Marker, keys.APIVersion)
	}
	if err := checkProject(keys.Name); err != nil {
		return fault.New(fault.Usage, "%s: name: %w", l.Marker, err)
	}
	l.Name = keys.Name
	return nil
}
