package recipes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/lab"
	"github.com/tuneplane/tp/internal/spec"
)

// LockVersion is the apiVersion that is written.
const LockVersion = "tuneplane/recipe-lock/v4"

// lockTool marks a lock as written by this program, whose digests must match
// our catalogue; those of other tools are computed in ways we do not know.
const lockTool = "tp"

// lockRequires is the range of the format's core that other readers check.
const lockRequires = ">=0.1,<1"

// Lock is a recipe.lock.json of any version, in the terms of v4.
type Lock struct {
	APIVersion string
	Tool       string // "tp" when this program wrote it
	Recipe     LockedRecipe
	Framework  spec.Framework
	Entrypoint Entrypoint
	Params     map[string]Binding // v4 only
}

// LockedRecipe is the catalogue entry at the time of locking.
type LockedRecipe struct {
	Name    string
	Version string
	Digests
}

// Binding is a parameter as a lock records it.
type Binding struct {
	Path string
	Type Type
}

// lockFile is the union of v1 to v4 on disk.
type lockFile struct {
	APIVersion string `json:"apiVersion"`
	CreatedBy  struct {
		Tool string `json:"tool"`
	} `json:"created_by"`
	Recipe struct {
		Name             string `json:"name"`
		Version          string `json:"version"`
		Digest           string `json:"digest"`
		ManifestDigest   string `json:"manifest_digest"`
		TemplateDigest   string `json:"template_digest"`
		Framework        string `json:"framework"`         // v1, v2
		FrameworkVersion string `json:"framework_version"` // v2
	} `json:"recipe"`
	Framework struct {
		Kind      string `json:"kind"`
		Version   string `json:"version"`
		RuntimeID string `json:"runtime_id"`
	} `json:"framework"`
	Bindings struct {
		Entrypoint struct {
			Kind  string `json:"kind"`
			Value string `json:"value"`
		} `json:"entrypoint"`
		Params map[string]struct {
			Path string `json:"path"`
			Type string `json:"type"`
		} `json:"params"`
	} `json:"bindings"`
}

var lockVersion = regexp.MustCompile(`^(lab|forge|tuneplane)/recipe-lock/v([1-4])$`)

// ParseLock reads a lock file of any version seen: lab, forge and tuneplane,
// v1 to v4. The error says why it is malformed.
func ParseLock(data []byte) (*Lock, error) {
	var file lockFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, lockSyntax(data, err)
	}
	version := lockVersion.FindStringSubmatch(file.APIVersion)
	switch {
	case version == nil:
		return nil, fmt.Errorf("apiVersion %q is not known; expected tuneplane/recipe-lock/v4 or an older one", file.APIVersion)
	case file.Recipe.Name == "":
		return nil, errors.New("recipe.name is missing")
	}
	l := &Lock{APIVersion: file.APIVersion, Tool: file.CreatedBy.Tool, Params: map[string]Binding{},
		Framework:  spec.Framework{Kind: file.Framework.Kind, Version: file.Framework.Version, RuntimeID: file.Framework.RuntimeID},
		Entrypoint: Entrypoint(file.Bindings.Entrypoint),
		Recipe: LockedRecipe{file.Recipe.Name, file.Recipe.Version,
			Digests{file.Recipe.Digest, file.Recipe.ManifestDigest, file.Recipe.TemplateDigest}}}
	if l.Framework.Kind == "" {
		l.Framework.Kind, l.Framework.Version = file.Recipe.Framework, file.Recipe.FrameworkVersion
	}
	if !strings.Contains(l.Recipe.Name, "/") && l.Framework.Kind != "" { // v1 has the bare method
		l.Recipe.Name = l.Framework.Kind + "/" + l.Recipe.Name
	}
	if !recipeName.MatchString(l.Recipe.Name) {
		return nil, fmt.Errorf("recipe.name %q is no <framework>/<method>", l.Recipe.Name)
	}
	for name, b := range file.Bindings.Params {
		p := Param{Type: Type(b.Type)}
		if p.Type != Enum && p.check() != nil {
			return nil, fmt.Errorf("bindings.params.%s.type %q is not known", name, b.Type)
		}
		l.Params[name] = Binding{b.Path, p.Type}
	}
	return l, nil
}

func lockSyntax(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var clash *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &clash):
		offset = clash.Offset
		err = fmt.Errorf("%s: found a JSON %s", clash.Field, clash.Value)
	}
	if offset < 0 || offset > int64(len(data)) {
		return err
	}
	before := data[:offset]
	return fmt.Errorf("line %d, column %d: %w", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'), err)
}

// ReadLock reads an experiment's lock. A missing or malformed one is a usage
// error.
func ReadLock(e *lab.Experiment) (*Lock, error) {
	data, err := lab.ReadFile(e.Path(lab.LockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Usage, "%s has no %s, so its recipe is not known", e.Rel, lab.LockName).
			WithHint("tp recipe upgrade %s --recipe NAME; tp methods lists them", e.Name)
	}
	if err != nil {
		return nil, err
	}
	l, err := ParseLock(data)
	if err != nil {
		return nil, fault.New(fault.Usage, "%s/%s is malformed: %w", e.Rel, lab.LockName, err).WithHint("tp recipe upgrade %s --recipe NAME", e.Name)
	}
	return l, nil
}

// NewLock binds a recipe at one of its framework versions, the default when
// version is empty.
func NewLock(r *Recipe, version string) (*Lock, error) {
	if version == "" {
		version = r.Framework.Default
	}
	if !slices.Contains(r.Framework.Versions, version) {
		return nil, fault.New(fault.Usage, "%s does not support %s %s; it supports %s", r.Name, r.Framework.Kind, version, strings.Join(r.Framework.Versions, ", "))
	}
	l := &Lock{APIVersion: LockVersion, Tool: lockTool, Recipe: LockedRecipe{r.Name, r.Version, r.Digests}, Entrypoint: r.Entrypoint,
		Framework: spec.Framework{Kind: r.Framework.Kind, Version: version, RuntimeID: r.runtimeID(version)}, Params: map[string]Binding{}}
	for name, p := range r.Params {
		if p.Path != "" {
			l.Params[name] = Binding{p.Path, p.Type}
		}
	}
	return l, nil
}

// Encode is the canonical text: two blanks, sorted keys, other alphabets kept,
// a newline at the end. Version is that of this program.
func (l *Lock) Encode(version string) []byte {
	params := map[string]any{}
	for name, b := range l.Params {
		params[name] = map[string]any{"path": b.Path, "type": b.Type}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(map[string]any{ // maps of texts have no encoding error, and are written sorted
		"apiVersion": LockVersion,
		"created_by": map[string]any{"core_version": version, "tool": lockTool},
		"requires":   map[string]any{"core": lockRequires},
		"recipe": map[string]any{"name": l.Recipe.Name, "version": l.Recipe.Version, "digest": l.Recipe.Digest,
			"manifest_digest": l.Recipe.ManifestDigest, "template_digest": l.Recipe.TemplateDigest},
		"framework": map[string]any{"kind": l.Framework.Kind, "version": l.Framework.Version, "runtime_id": l.Framework.RuntimeID},
		"bindings": map[string]any{"entrypoint": map[string]any{"kind": l.Entrypoint.Kind, "value": l.Entrypoint.Value},
			"params": params},
	})
	return out.Bytes()
}

// WriteLock replaces an experiment's lock in one step.
func WriteLock(e *lab.Experiment, l *Lock, version string) error {
	return lab.WriteFile(e.Path(lab.LockName), l.Encode(version))
}
