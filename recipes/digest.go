package recipes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
)

// digests hashes what a recipe does, not how its file is written: the manifest
// as values, so that a comment or another order changes nothing; the template
// as names and contents; and all of it with the launcher.
func digests(m *Manifest, template fs.FS, launch []byte) (Digests, error) {
	values, err := json.Marshal(m)
	if err != nil {
		return Digests{}, err
	}
	tree := sha256.New()
	err = fs.WalkDir(template, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(template, name)
		fmt.Fprintf(tree, "%s\x00%x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		return Digests{}, err
	}
	d := Digests{ManifestDigest: sum(values), TemplateDigest: "sha256:" + hex.EncodeToString(tree.Sum(nil))}
	d.Digest = sum([]byte(d.ManifestDigest + "\n" + d.TemplateDigest + "\n" + sum(launch) + "\n"))
	return d, nil
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(hash[:])
}
