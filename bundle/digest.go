package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/internal/fault"
)

// Digest reads what is not in the stat cache (a directory; "" for none) and
// names the bundle. It refuses well-known tokens in texts below 1 MiB, naming
// file and line but not the value (a comment tp:allow-secret on the line lets
// it pass), and files that change while they are read.
func Digest(ctx context.Context, sel *Selection, cacheDir string) (*Manifest, error) {
	file := cachePath(cacheDir, "stat", append([]string{sel.root}, sel.dirs...)...)
	payload, _ := readCache(file, statMagic)
	old := decodeStats(payload)

	files := append([]File(nil), sel.Files...)
	entries := make([]cached, len(files))
	fresh := 0
	var todo []int
	for i := range files {
		f := &files[i]
		if f.Link != "" {
			f.SHA256 = sha256.Sum256([]byte(f.Link))
			continue
		}
		for len(old) > 0 && old[0].path < f.Path {
			old = old[1:]
			fresh++ // the file is gone
		}
		if len(old) > 0 && old[0].path == f.Path && old[0].stat == sel.stats[i] {
			entries[i], f.SHA256 = old[0], old[0].sum
			old = old[1:]
			continue
		}
		todo = append(todo, i)
	}
	man := &Manifest{Files: files}
	if len(todo) > 0 {
		man.quick = make([][]uint32, len(files))
	}
	if err := sel.read(ctx, files, entries, man.quick, todo); err != nil {
		return nil, err
	}
	if fresh+len(todo)+len(old) > 0 {
		sel.remember(file, entries)
	}
	for i := range entries {
		if entries[i].lfs {
			man.Warnings = append(man.Warnings, files[i].Path+" is a Git LFS pointer, not the file itself (git lfs pull)")
		}
	}
	man.seal()
	return man, nil
}

// read hashes and scans the files of the given indices.
func (s *Selection) read(ctx context.Context, files []File, entries []cached, quick [][]uint32, todo []int) error {
	var mu sync.Mutex
	var secrets []string
	var next atomic.Int64
	group, reading := errgroup.WithContext(ctx)
	for range min(max(runtime.GOMAXPROCS(0), 8), len(todo)) { // more than CPUs: network file systems wait
		group.Go(func() error {
			h := newHasher()
			for {
				n := int(next.Add(1)) - 1
				if n >= len(todo) {
					return nil
				}
				if err := reading.Err(); err != nil {
					return err
				}
				i := todo[n]
				content, err := h.read(s.root, files[i].Path, s.stats[i])
				if err != nil {
					return err
				}
				files[i].SHA256, quick[i] = content.sum, content.quick
				entries[i] = cached{files[i].Path, s.stats[i], content.sum, content.lfs}
				if len(content.secrets) > 0 {
					mu.Lock()
					for _, line := range content.secrets {
						secrets = append(secrets, files[i].Path+":"+line)
					}
					mu.Unlock()
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if len(secrets) > 0 {
		return refuse("secrets in files would be packed", secrets,
			"remove and revoke them, a job gets its secrets with: tp secret set; a false alarm passes with the comment "+allowSecret+" on the line")
	}
	return nil
}

// remember writes the entries that can be trusted next time: files that changed
// just before they were read may change again within the same tick of the clock.
func (s *Selection) remember(file string, entries []cached) {
	var kept []cached
	limit := s.taken.UnixNano() - racy
	for i := range entries {
		if e := &entries[i]; e.path != "" && len(e.path) < 1<<16 && e.stat.mtime < limit && e.stat.ctime < limit {
			kept = append(kept, *e)
		}
	}
	_ = writeCache(file, statMagic, encodeStats(kept)) // best effort, see the top of cache.go
}

// content is what reading a file tells.
type content struct {
	sum     Sum
	quick   []uint32 // see quick.go
	lfs     bool
	secrets []string // "line: what"
}

// hasher reads files, one at a time.
type hasher struct {
	hash hash.Hash
	buf  []byte // scanMax, which divides partSize
}

func newHasher() *hasher { return &hasher{sha256.New(), make([]byte, scanMax)} }

const lfsPrefix = "version https://git-lfs.github.com/spec/v1\n"

// read hashes a file that must be as lstat saw it, before and after.
func (h *hasher) read(root, name string, want stat) (content, error) {
	f, err := openSource(root, name)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	if now, err := f.stat(); err != nil || now != want {
		return content{}, changed(name)
	}
	h.hash.Reset()
	var c content
	var quick quickSum
	for at := int64(0); at < want.size; at += scanMax {
		data := h.buf[:min(scanMax, want.size-at)]
		if err := f.readAt(data, at); err != nil {
			return content{}, err
		}
		h.hash.Write(data)
		quick.write(data)
		if want.size < scanMax {
			c.secrets = scanSecrets(data)
			c.lfs = len(data) < 1024 && bytes.HasPrefix(data, []byte(lfsPrefix))
		}
	}
	if now, err := f.stat(); err != nil || now != want {
		return content{}, changed(name)
	}
	h.hash.Sum(c.sum[:0])
	c.quick = quick.sums
	return c, nil
}

func readError(name string, err error) error {
	switch {
	case err == nil, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ELOOP):
		return changed(name)
	case errors.Is(err, os.ErrPermission):
		return fault.New(fault.Usage, "%s cannot be read: %w", name, os.ErrPermission).
			WithHint("chmod u+r the file, or list it in .gitignore")
	}
	return fmt.Errorf("pack %s: %w", name, err)
}

func changed(name string) error {
	return fault.New(fault.Usage, "%s changed while being packed", strings.ToValidUTF8(name, "?")).
		WithHint("wait until whatever writes it is done, then repeat the command")
}
