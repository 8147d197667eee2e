package spec

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// ImageKind is what an image is stored as.
type ImageKind string

// Kinds of images.
const (
	NoImage       ImageKind = ""
	RegistryImage ImageKind = "registry" // docker://: layers in a registry
	OrasImage     ImageKind = "oras"     // oras://: a SIF file in a registry
	SquashFile    ImageKind = "sqsh"     // a file of enroot import
	SIFFile       ImageKind = "sif"      // a file of apptainer build
	BundleDir     ImageKind = "bundle"   // an unpacked OCI bundle: config.json and rootfs
)

// Image is a container image in the one form that tp keeps, whatever starts it.
// The zero value is none.
type Image struct {
	Kind     ImageKind `json:"kind"`
	Registry string    `json:"registry,omitempty"` // "docker.io", "host:5000"
	Repo     string    `json:"repo,omitempty"`     // "library/python"
	Tag      string    `json:"tag,omitempty"`      // "latest" where neither tag nor digest was said
	Digest   string    `json:"digest,omitempty"`   // "sha256:" and 64 hex digits; it goes before the tag
	Path     string    `json:"path,omitempty"`     // of a file or directory, absolute and clean
}

var (
	imageHost   = regexp.MustCompile(`^(localhost|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?$`)
	imageRepo   = regexp.MustCompile(`^[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*$`) // one component of a repository
	imageTag    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	imagePath   = regexp.MustCompile(`^/[A-Za-z0-9/._+@%=~-]+$`)
)

// ParseImage reads REGISTRY/REPOSITORY[:TAG][@sha256:HEX], the same after
// docker:// or oras://, enroot's REGISTRY#REPOSITORY, or the absolute path of a
// .sqsh file, of a .sif file or of an OCI bundle's directory. "python:3.12" is
// docker.io/library/python:3.12. "" is no image.
func ParseImage(text string) (Image, error) {
	if text == "" {
		return Image{}, nil
	}
	i, err := parseImage(text)
	if err != nil {
		return Image{}, fmt.Errorf("image %q: %w", text, err)
	}
	return i, nil
}

func parseImage(text string) (Image, error) {
	if strings.HasPrefix(text, "/") {
		return parseImagePath(text)
	}
	i := Image{Kind: RegistryImage}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		switch scheme {
		case "docker":
		case "oras":
			i.Kind = OrasImage
		default:
			return i, fmt.Errorf("%s:// is not known; there are docker:// and oras://", scheme)
		}
		text = rest
	} else if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
		return i, errors.New("expected an absolute path, which means the same on every node")
	}
	name, digest, pinned := strings.Cut(text, "@")
	if pinned {
		if !strings.HasPrefix(digest, "sha256:") {
			return i, errors.New("what follows @ is no sha256:HEX; a user of a registry is named in its credentials, to which the site file has the path")
		}
		if !imageDigest.MatchString(digest) {
			return i, errors.New("a digest is sha256: and 64 hex digits, lower case")
		}
		i.Digest = digest
	}
	first, rest, hashed := strings.Cut(name, "#")
	if !hashed {
		first, rest, _ = strings.Cut(name, "/")
		if !isHost(first) || rest == "" {
			first, rest = "docker.io", name
		}
	}
	if !isHost(first) || !imageHost.MatchString(first) {
		return i, fmt.Errorf("%q is no registry, such as nvcr.io or registry.example.org:5000", first)
	}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 {
		i.Tag, rest = rest[at+1:], rest[:at]
		if !imageTag.MatchString(i.Tag) {
			return i, fmt.Errorf("%q is no tag: letters, digits and _.-, 128 at most", i.Tag)
		}
	}
	if first == "index.docker.io" || first == "registry-1.docker.io" {
		first = "docker.io"
	}
	if first == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	for part := range strings.SplitSeq(rest, "/") {
		if !imageRepo.MatchString(part) {
			return i, fmt.Errorf("%q is no name of a repository: lower-case letters and digits, with . _ or - between them", part)
		}
	}
	if i.Tag == "" && i.Digest == "" {
		i.Tag = "latest"
	}
	i.Registry, i.Repo = first, rest
	return i, nil
}

// isHost tells a registry from the first part of a repository of Docker Hub, as
// Docker does.
func isHost(part string) bool { return strings.ContainsAny(part, ".:") || part == "localhost" }

func parseImagePath(text string) (Image, error) {
	i := Image{Path: text, Kind: BundleDir}
	switch path.Ext(text) {
	case ".sqsh", ".squashfs":
		i.Kind = SquashFile
	case ".sif":
		i.Kind = SIFFile
	}
	switch {
	case path.Clean(text) != text:
		return i, fmt.Errorf("write the path as %s", path.Clean(text))
	case text == "/" || !imagePath.MatchString(text):
		return i, errors.New("the path of an image has letters, digits and /._+@%=~- only")
	}
	return i, nil
}

// File reports whether the image is a path that nodes must see.
func (i Image) File() bool { return i.Path != "" }

// Name is the image without tag and digest.
func (i Image) Name() string {
	switch i.Kind {
	case RegistryImage:
		return i.Registry + "/" + i.Repo
	case OrasImage:
		return "oras://" + i.Registry + "/" + i.Repo
	}
	return i.Path
}

// String is the canonical reference: ParseImage of it gives the same image.
func (i Image) String() string {
	text := i.Name()
	if i.Tag != "" {
		text += ":" + i.Tag
	}
	if i.Digest != "" {
		text += "@" + i.Digest
	}
	return text
}

// Unpinned says in one sentence why the same words may mean another image
// tomorrow; "" when they cannot.
func (i Image) Unpinned() string {
	switch {
	case i.Kind == NoImage || i.Digest != "":
		return ""
	case i.File():
		return fmt.Sprintf("image %s is a path and has no digest: what is there when the job starts is what runs", i)
	}
	return fmt.Sprintf("image %s has no digest: its tag may name another image when the job starts; %s@sha256:… pins it", i, i.Name())
}

// Matches reports whether an allow list's pattern fits. In it * stands for any
// text, also for slashes. The pattern is held against the name alone, against
// name and digest, and, since a digest overrules the tag, against name and tag
// only where there is no digest.
func (i Image) Matches(pattern string) bool {
	if p, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(pattern, "docker://")), `\*`, ".*") + "$"); err == nil {
		if p.MatchString(i.Name()) {
			return true
		}
		if i.Digest != "" {
			return p.MatchString(i.Name() + "@" + i.Digest)
		}
		return p.MatchString(i.String())
	}
	return false
}
