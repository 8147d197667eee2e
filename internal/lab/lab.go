// Package lab reads a lab: the project directory with a marker file,
// experiments/, common/ and configs/, and the git state behind it.
//
//	l, err := lab.Find(".", lab.Options{})
//	exp, err := l.Experiment("grpo_qwen3-8b_gsm8k")
//	prov, err := lab.Git(ctx, l.Root, l.PackedDirs(exp))
//
// A lab is hostile input: it may have been downloaded, or stand in a directory
// where others write. Nothing in it names a command that runs on this machine
// or an endpoint that receives a secret, reading it executes nothing (git runs
// with every hook, filter and external diff off), and a marker that belongs to
// a third person is refused.
package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// Markers are the files that make a directory a lab, ours first.
var Markers = []string{"tp.toml", "tuneplane.yaml", "starforge.yaml"}

// Lab is an opened project directory.
type Lab struct {
	Root        string   // absolute
	Marker      string   // file name, one of Markers
	Name        string   // project; groups runs
	Description string   // tp.toml only
	Defaults    *JobFile // [defaults] of tp.toml; nil when there are none
}

// Options of Find; the zero value is right for a user's shell.
type Options struct {
	Trust []string // lab roots whose marker may belong to anybody (--trust-lab)
	UID   *int     // the caller; nil: os.Getuid
}

// ErrNone is in what Find returns where there is no lab.
var ErrNone = errors.New("no lab here")

// Find opens the lab that dir is in: the nearest directory upwards with a
// marker. When one directory has several markers, tp.toml wins.
func Find(dir string, o Options) (*Lab, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for at := start; ; at = filepath.Dir(at) {
		for _, marker := range Markers {
			_, err := os.Lstat(filepath.Join(at, marker))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			return open(at, marker, o)
		}
		if at == filepath.Dir(at) {
			return nil, fault.New(fault.Usage, "%w: neither %s nor a directory above it has %s", ErrNone, start, strings.Join(Markers, ", ")).
				WithHint("tp init DIR, or change into a lab")
		}
	}
}

func open(root, marker string, o Options) (*Lab, error) {
	if err := checkOwner(root, marker, o); err != nil {
		return nil, err
	}
	l := &Lab{Root: root, Marker: marker}
	data, err := ReadFile(filepath.Join(root, marker))
	if err != nil {
		return nil, err
	}
	if marker == "tp.toml" {
		err = l.readTOML(data)
	} else {
		err = l.readYAML(data)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}
