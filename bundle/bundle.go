// Package bundle ships a lab's code to the nodes of a job as content-addressed
// segments, so that a second submit of 20,000 files sends what changed and a
// node unpacks it with cat, zstd and tar.
//
//	sel, err := bundle.Select(ctx, bundle.Source{Root: lab, Dirs: []string{"experiments/a", "common"}})
//	man, err := bundle.Digest(ctx, sel, cacheDir)       // names the bundle; reads only changed files
//	todo, err := bundle.Plan(ctx, man, st, cacheDir)    // what an upload would send; sends nothing
//	stored, err := bundle.Put(ctx, man, lab, st, cacheDir, nil)
//	fetch, err := bundle.NewFetch(ctx, man, st, stored, 48*time.Hour) // script and files for the node
//
// # Segments
//
// The sorted files are cut where a hash of the path says so, into segments of
// about 384 KiB; a file of 1 MiB or more has its own. An added, removed or
// edited file therefore changes one segment, rarely two or three. The key of a segment
// is a hash over the path, mode, size and digest of its files: known without
// reading or compressing any. A segment is a piece of a tar archive in one zstd
// frame; frames concatenate, and a fixed last object ends the archive.
//
// # What is packed
//
// What git lists, tracked or not, unless it ignores it; outside of git every
// file, less a fixed exclude list. Contents are those of the working tree.
// Modes become 0644 and 0755, owner and time are dropped, empty directories
// too. Links stay links and must lead to something packed. Files that look like
// credentials, by name or content, refuse the bundle: see [Select] and [Digest].
package bundle

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// Sum is a SHA-256 digest; as text it is 64 hex digits.
type Sum [32]byte

func (s Sum) String() string               { return hex.EncodeToString(s[:]) }
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText accepts 64 lower-case hex digits.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 64 || strings.ToLower(string(text)) != string(text) {
		return fmt.Errorf("digest %.80q: want 64 lower-case hex digits", text)
	}
	if _, err := hex.Decode(s[:], text); err != nil {
		return fmt.Errorf("digest %.80q: want 64 lower-case hex digits", text)
	}
	return nil
}

// File is one entry of a bundle.
type File struct {
	Path   string // relative to the lab, slashes; any bytes but control characters
	Mode   uint32 // 0644 or 0755, for a link 0777
	Size   int64  // bytes; of a link the length of its target
	SHA256 Sum    // of the content, of a link that of its target
	Link   string // target of a symbolic link, "" for a file
}

const (
	modeFile = 0o644
	modeExec = 0o755
	modeLink = 0o777
)

// marker is the file beside the packed ones that holds the digest of an
// unpacked bundle; fetch.sh writes it.
const marker = ".tp-bundle"

// listMax bounds the names in an error.
const listMax = 20

// refuse is a refusal that names what is refused, one line each.
func refuse(what string, lines []string, hint string) error {
	slices.Sort(lines)
	shown := lines
	if len(shown) > listMax {
		shown = append(slices.Clone(shown[:listMax]), fmt.Sprintf("and %d more", len(lines)-listMax))
	}
	return fault.New(fault.Usage, "%s:\n  %s", what, strings.Join(shown, "\n  ")).WithHint("%s", hint)
}

// within says whether p is dir or below it; everything is below ".".
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}

// localPath says whether p stays below the directory it is relative to and is
// written the one canonical way.
func localPath(p string) bool {
	return p != "" && p != "." && p != ".." && path.Clean(p) == p && p[0] != '/' && !strings.HasPrefix(p, "../") && !strings.Contains(p, "\x00")
}
