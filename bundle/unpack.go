package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/klauspost/compress/zstd"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/internal/fault"
)

// Unpack fetches a bundle and writes it into the directory dir, which must not
// exist or be empty. Each object is compared with its digest before any of its
// content is used.
func Unpack(ctx context.Context, st store.Store, stored []Stored, dir string) error {
	frames := &frames{ctx: ctx, st: st, stored: stored}
	// The window of our frames is 4 MiB; a frame from elsewhere must not ask
	// for all memory.
	dec, err := zstd.NewReader(frames, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return err
	}
	defer dec.Close()
	return Extract(dec, dir)
}

// frames reads verified objects one after the other.
type frames struct {
	ctx    context.Context
	st     store.Store
	stored []Stored
	body   bytes.Reader
}

func (r *frames) Read(p []byte) (int, error) {
	for r.body.Len() == 0 {
		if len(r.stored) == 0 {
			return 0, io.EOF
		}
		frame, err := Object(r.ctx, r.st, r.stored[0])
		if err != nil {
			return 0, err
		}
		r.stored = r.stored[1:]
		r.body.Reset(frame)
	}
	return r.body.Read(p)
}

// Object gets one object and compares it with its digest.
func Object(ctx context.Context, st store.Store, s Stored) ([]byte, error) {
	body, err := st.Get(ctx, s.Name())
	if err != nil {
		return nil, storeFault(err)
	}
	defer body.Close()
	frame, err := io.ReadAll(io.LimitReader(body, store.MaxObject+1))
	if err != nil {
		return nil, storeFault(err)
	}
	if sha256.Sum256(frame) != s.SHA256 {
		return nil, fault.New(fault.Internal, "object %s in %s is corrupt: its digest is %x", s.Name(), st, sha256.Sum256(frame)).
			WithHint("delete the object and submit again, which uploads it anew")
	}
	return frame, nil
}

// Extract writes a tar stream into the directory dir, which must not exist or
// be empty. It takes files, links and directories, and refuses everything that
// could reach outside of dir: names with .., absolute names, links that lead
// out, and writing through a link. The archive must be complete.
func Extract(r io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return errors.Join(err, fault.New(fault.Usage, "%s is not empty", dir))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewReader(&ended{r: r})
	tree := tree{files: map[string]string{}, dirs: map[string]bool{".": true}}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack bundle: %w", err)
		}
		if err := extract(root, tree, h, archive); err != nil {
			return fmt.Errorf("unpack bundle: %.200q: %w", h.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // a damaged tail is an error too
		return fmt.Errorf("unpack bundle: %w", err)
	}
	// Links come last: nothing can be written through them, and whether one
	// leads out can be told only when all others are known.
	for name, target := range tree.files {
		if _, err := tree.resolve(name, target); errors.Is(err, errOutside) {
			return fmt.Errorf("unpack bundle: %.200q: the link to %.200q %w", name, target, err)
		}
	}
	for name, target := range tree.files {
		if err := root.Symlink(target, name); err != nil {
			return fmt.Errorf("unpack bundle: %w", err)
		}
	}
	return nil
}

// ended makes the end of input inside an archive an error: archive/tar takes a
// stream without its two empty blocks for a whole one.
type ended struct{ r io.Reader }

func (e *ended) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func extract(root *os.Root, tree tree, h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		h.Name = path.Clean(h.Name)
	}
	if !localPath(h.Name) {
		return errors.New("the name leads out of the bundle")
	}
	if _, ok := tree.files[h.Name]; ok {
		return errors.New("the name is there twice")
	}
	if dir := path.Dir(h.Name); dir != "." {
		for d := dir; !tree.dirs[d]; d = path.Dir(d) {
			tree.dirs[d] = true
		}
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err == nil {
			err = f.Chmod(os.FileMode(h.Mode) & 0o777)
		}
		return errors.Join(err, f.Close())
	case tar.TypeSymlink:
		if h.Linkname == "" {
			return errors.New("the link has no target")
		}
		tree.files[h.Name] = h.Linkname
		return nil
	case tar.TypeDir:
		tree.dirs[h.Name] = true
		return root.MkdirAll(h.Name, 0o777)
	}
	return fmt.Errorf("entries of type %q are not part of a bundle", h.Typeflag)
}
