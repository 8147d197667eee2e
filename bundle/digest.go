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
	if err := sel.read(ctx, files, entries, todo); err != nil {
		return nil, err
	}
	if fresh+len(todo)+len(old) > 0 {
		sel.remember(file, entries)
	}
	man := &Manifest{Files: files}
	for i := range entries {
		if entries[i].lfs {
			man.Warnings = append(man.Warnings, files[i].Path+" is a Git LFS pointer, not the file itself (git lfs pull)")
		}
	}
	man.seal()
	return man, nil
}

// read hashes and scans the files of the given indices.
func (s *Selection) read(ctx context.Context, files []File, entries []cached, todo []int) error {
	var mu sync.Mutex
	var secrets []string
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(max(runtime.GOMAXPROCS(0), 8)) // more than CPUs: network file systems wait
	for _, i := range todo {
		group.Go(func() error {
			if err := reading.Err(); err != nil {
				return err
			}
			content, err := readFile(s.root, files[i].Path, s.stats[i])
			if err != nil {
				return err
			}
			files[i].SHA256 = content.sum
			entries[i] = cached{files[i].Path, s.stats[i], content.sum, content.lfs}
			if len(content.secrets) > 0 {
				mu.Lock()
				defer mu.Unlock()
				for _, line := range content.secrets {
					secrets = append(secrets, files[i].Path+":"+line)
				}
			}
			return nil
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
	lfs     bool
	secrets []string // "line: what"
}

type hasher struct {
	hash hash.Hash
	buf  []byte
}

var hashers = sync.Pool{New: func() any { return &hasher{sha256.New(), make([]byte, scanMax)} }}

const lfsPrefix = "version https://git-lfs.github.com/spec/v1\n"

// readFile hashes a file that must be as lstat saw it, before and after.
func readFile(root, name string, want stat) (content, error) {
	f, err := openUnchanged(root, name, want)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	h := hashers.Get().(*hasher)
	defer hashers.Put(h)
	h.hash.Reset()
	var c content
	if want.size < scanMax {
		data := h.buf[:want.size]
		if _, err := io.ReadFull(f, data); err != nil && want.size > 0 {
			return content{}, readError(name, err)
		}
		h.hash.Write(data)
		c.secrets = scanSecrets(data)
		c.lfs = len(data) < 1024 && bytes.HasPrefix(data, []byte(lfsPrefix))
	} else if n, err := io.CopyBuffer(struct{ io.Writer }{h.hash}, struct{ io.Reader }{io.LimitReader(f, want.size)}, h.buf); err != nil || n != want.size {
		return content{}, readError(name, err)
	}
	if now, err := fstat(f); err != nil || now != want {
		return content{}, changed(name)
	}
	h.hash.Sum(c.sum[:0])
	return c, nil
}

// openUnchanged opens a file and sees that it is the one lstat saw. Neither a
// link nor a pipe put in its place in between is followed or waited for.
func openUnchanged(root, name string, want stat) (*os.File, error) {
	f, err := os.OpenFile(root+"/"+name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, readError(name, err)
	}
	if now, err := fstat(f); err != nil || now != want {
		f.Close()
		return nil, changed(name)
	}
	return f, nil
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
