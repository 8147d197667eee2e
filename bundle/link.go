package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// tree knows which paths exist in an unpacked bundle.
type tree struct {
	files map[string]string // path to target of the link, "" for files
	dirs  map[string]bool
}

func newTree(files []File) tree {
	t := tree{files: make(map[string]string, len(files)), dirs: map[string]bool{".": true}}
	for i := range files {
		t.files[files[i].Path] = files[i].Link
		for dir := path.Dir(files[i].Path); !t.dirs[dir]; dir = path.Dir(dir) {
			t.dirs[dir] = true
		}
	}
	return t
}

var (
	errOutside = errors.New("leads out of the packed tree")
	errMissing = errors.New("leads to nothing packed")
)

// resolve follows a link as the kernel would on the node and returns the path
// it ends at. Links to a directory above are fine, they are never walked; links
// that only lead to each other end nowhere.
func (t tree) resolve(link, target string) (string, error) {
	at := path.Dir(link)
	rest := target
	for hops := 0; rest != ""; {
		if rest[0] == '/' {
			return rest, errOutside
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		switch name {
		case ".":
			continue
		case "..":
			if at == "." {
				return path.Join(path.Dir(link), target), errOutside
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, name)
		to, isFile := t.files[next]
		switch {
		case isFile && to != "":
			if hops++; hops > 40 { // the kernel's limit
				return next, errMissing
			}
			if to[0] == '/' {
				return to, errOutside
			}
			if rest != "" {
				to += "/" + rest
			}
			rest = to
		case isFile && rest != "", !isFile && !t.dirs[next]:
			return path.Join(next, rest), errMissing
		default:
			at = next
		}
	}
	return at, nil
}

// checkLinks refuses links that would lead nowhere on the node.
func (s *Selection) checkLinks() error {
	var t tree
	var outside, missing []string
	for i := range s.Files {
		f := &s.Files[i]
		if f.Link == "" {
			continue
		}
		if t.files == nil {
			t = newTree(s.Files)
		}
		end, err := t.resolve(f.Path, f.Link)
		line := fmt.Sprintf("%s -> %s", f.Path, f.Link)
		switch {
		case errors.Is(err, errOutside):
			outside = append(outside, line)
		case err != nil:
			why := "is not packed"
			if _, err := os.Stat(s.root + "/" + f.Path); errors.Is(err, fs.ErrNotExist) {
				why = "does not exist"
			} else if err != nil {
				why = "ends nowhere"
			}
			missing = append(missing, fmt.Sprintf("%s (%s %s)", line, end, why))
		}
	}
	if len(outside) > 0 {
		return refuse("links that lead out of the packed tree would dangle on the node", outside,
			"replace them by copies, or list them in .gitignore and give the job the path with a mount or a dataset")
	}
	if len(missing) > 0 {
		return refuse("links that lead to nothing packed would dangle on the node", missing, "remove or fix the links, or list them in .gitignore")
	}
	return nil
}
