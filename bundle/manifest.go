package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Manifest is everything about a bundle but its bytes.
type Manifest struct {
	Files    []File    // sorted by path
	Segments []Segment // in the order of the archive, without its fixed end
	Digest   Sum       // names the bundle: the codec and the keys in order
	Bytes    int64     // sum of the sizes
	Warnings []string  // for the preview; not part of the document

	quick [][]uint32 // of the Files that Digest has read, else nil: see quick.go
}

const manifestVersion = 1

// sizeMax bounds what a manifest from elsewhere makes us compute.
const sizeMax = 1 << 40

// document is the manifest as JSON. Segments are not in it: they follow from
// the files, and the digest tells whether they do.
type document struct {
	Version int            `json:"version"`
	Codec   string         `json:"codec"`
	Digest  Sum            `json:"digest"`
	Files   []documentFile `json:"files"`
}

type documentFile struct {
	Path    string `json:"path,omitempty"`
	PathRaw []byte `json:"path_base64,omitempty"` // instead of path where that is no UTF-8
	Mode    string `json:"mode"`                  // 0644, 0755, link
	Size    int64  `json:"size"`
	SHA256  Sum    `json:"sha256"`
	Link    string `json:"link,omitempty"`
	LinkRaw []byte `json:"link_base64,omitempty"`
}

// MarshalJSON writes version 1 of the document.
func (m *Manifest) MarshalJSON() ([]byte, error) {
	doc := document{manifestVersion, codec, m.Digest, make([]documentFile, len(m.Files))}
	for i, f := range m.Files {
		d := documentFile{Mode: fmt.Sprintf("%04o", f.Mode), Size: f.Size, SHA256: f.SHA256}
		if f.Link != "" {
			d.Mode = "link"
		}
		d.Path, d.PathRaw = splitUTF8(f.Path)
		d.Link, d.LinkRaw = splitUTF8(f.Link)
		doc.Files[i] = d
	}
	return json.Marshal(doc)
}

func splitUTF8(s string) (string, []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// UnmarshalJSON accepts version 1, whole and consistent, and nothing else:
// known fields, sorted local paths, and a digest that the files give.
func (m *Manifest) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var doc document
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("bundle manifest: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("bundle manifest: more than one document")
	}
	if doc.Version != manifestVersion || doc.Codec != codec {
		return fmt.Errorf("bundle manifest: version %d with codec %.20q; this tp reads version %d with %s", doc.Version, doc.Codec, manifestVersion, codec)
	}
	files := make([]File, len(doc.Files))
	total := int64(0)
	for i, d := range doc.Files {
		f, err := d.file()
		if err != nil {
			return fmt.Errorf("bundle manifest: file %d: %w", i, err)
		}
		if i > 0 && files[i-1].Path >= f.Path {
			return fmt.Errorf("bundle manifest: file %d: %.200q is not in order", i, f.Path)
		}
		if total += f.Size; total > sizeMax {
			return errors.New("bundle manifest: more than 1 TiB")
		}
		files[i] = f
	}
	sealed := Manifest{Files: files}
	sealed.seal()
	if sealed.Digest != doc.Digest {
		return fmt.Errorf("bundle manifest: its files give the digest %s, not %s", sealed.Digest, doc.Digest)
	}
	*m = sealed
	return nil
}

func (d documentFile) file() (File, error) {
	f := File{Path: d.Path + string(d.PathRaw), Size: d.Size, SHA256: d.SHA256, Link: d.Link + string(d.LinkRaw)}
	if d.Path != "" && d.PathRaw != nil || d.Link != "" && d.LinkRaw != nil {
		return File{}, errors.New("a text is given twice")
	}
	if !localPath(f.Path) {
		return File{}, fmt.Errorf("path %.200q leads out of the bundle", f.Path)
	}
	switch d.Mode {
	case "0644":
		f.Mode = modeFile
	case "0755":
		f.Mode = modeExec
	case "link":
		f.Mode = modeLink
	default:
		return File{}, fmt.Errorf("mode %.20q of %.200q: want 0644, 0755 or link", d.Mode, f.Path)
	}
	if (f.Link != "") != (f.Mode == modeLink) || f.Size < 0 || f.Size > sizeMax || f.Link != "" && f.Size != int64(len(f.Link)) {
		return File{}, fmt.Errorf("size %d or link of %.200q is not right", f.Size, f.Path)
	}
	return f, nil
}
