package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

// packTime is the time of every file: late enough for tools that refuse or
// warn about 1970 (zip, old tar), the same in every bundle.
var packTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// packer turns segments into frames; one per goroutine. It holds one segment
// and its frame: 32 MiB at most, 10 as a rule.
type packer struct {
	root  string
	files []File
	parts map[int][]Sum // digests of the parts of split files, by index of the file
	raw   bytes.Buffer
	copy  []byte // buffer between file and raw
	frame []byte
	zstd  *zstd.Encoder
}

func newPacker(root string, files []File, parts map[int][]Sum) (*packer, error) {
	// "Fastest" has the ratio of zstd -3 on code. One thread: segments are
	// packed side by side.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	return &packer{root: root, files: files, parts: parts, copy: make([]byte, 128<<10), zstd: enc}, err
}

// pack returns the frame of a segment, valid until the next call. Every byte is
// compared with the manifest, for a key says what is inside.
func (p *packer) pack(s *Segment) ([]byte, error) {
	p.raw.Reset()
	var err error
	if s.Length >= 0 {
		err = p.part(s)
	} else {
		err = p.whole(p.files[s.From:s.To])
	}
	if err != nil {
		return nil, err
	}
	p.frame = p.zstd.EncodeAll(p.raw.Bytes(), p.frame[:0])
	return p.frame, nil
}

func (p *packer) whole(files []File) error {
	w := tar.NewWriter(&p.raw)
	for i := range files {
		f := &files[i]
		if err := w.WriteHeader(header(f)); err != nil {
			return readError(f.Path, err)
		}
		if f.Link != "" {
			if target, err := os.Readlink(p.root + "/" + f.Path); err != nil || target != f.Link {
				return changed(f.Path)
			}
			continue
		}
		if err := p.content(w, f); err != nil {
			return err
		}
	}
	return w.Flush() // not Close: the archive goes on in the next segment
}

func (p *packer) content(w io.Writer, f *File) error {
	file, err := openFile(p.root, f)
	if err != nil {
		return err
	}
	defer file.Close()
	start := p.raw.Len()
	p.raw.Grow(int(f.Size) + fileOverhead)
	if n, err := io.CopyBuffer(w, io.LimitReader(file, f.Size), p.copy); err != nil || n != f.Size {
		return readError(f.Path, err)
	}
	if sha256.Sum256(p.raw.Bytes()[start:start+int(f.Size)]) != f.SHA256 {
		return changed(f.Path)
	}
	return nil
}

// part writes header, bytes or padding of a split file: whatever of them falls
// into the part.
func (p *packer) part(s *Segment) error {
	f := &p.files[s.From]
	if s.Offset == 0 {
		if err := tar.NewWriter(&p.raw).WriteHeader(header(f)); err != nil {
			return readError(f.Path, err)
		}
	}
	file, err := openFile(p.root, f)
	if err != nil {
		return err
	}
	defer file.Close()
	start := p.raw.Len()
	p.raw.Grow(int(s.Length) + fileOverhead)
	if n, err := p.raw.ReadFrom(io.NewSectionReader(file, s.Offset, s.Length)); err != nil || n != s.Length {
		return readError(f.Path, err)
	}
	if sha256.Sum256(p.raw.Bytes()[start:]) != p.parts[s.From][s.Offset/partSize] {
		return changed(f.Path)
	}
	if s.Offset+s.Length == f.Size {
		p.raw.Write(make([]byte, -f.Size&511))
	}
	return nil
}

func openFile(root string, f *File) (*os.File, error) {
	file, err := os.OpenFile(root+"/"+f.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, readError(f.Path, err)
	}
	if now, err := fstat(file); err != nil || now.size != f.Size || now.mode&syscall.S_IFMT != syscall.S_IFREG || (now.mode&0o100 != 0) != (f.Mode == modeExec) {
		file.Close()
		return nil, changed(f.Path)
	}
	return file, nil
}

// partSums reads a split file once, sees that it is the one of the manifest,
// and returns the digests of its parts, which tell the same of a part alone.
func partSums(root string, f *File) ([]Sum, error) {
	file, err := openFile(root, f)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var sums []Sum
	whole, part := sha256.New(), sha256.New()
	buf := make([]byte, 1<<20) // divides partSize
	for at := int64(0); at < f.Size; {
		n, err := io.ReadFull(file, buf[:min(int64(len(buf)), f.Size-at)])
		if err != nil {
			return nil, readError(f.Path, err)
		}
		whole.Write(buf[:n])
		part.Write(buf[:n])
		if at += int64(n); at%partSize == 0 || at == f.Size {
			sums = append(sums, Sum(part.Sum(nil)))
			part.Reset()
		}
	}
	if Sum(whole.Sum(nil)) != f.SHA256 {
		return nil, changed(f.Path)
	}
	return sums, nil
}

// header is the same for the same file everywhere: no owner, one time. The
// format is USTAR, and PAX where a name or size does not fit.
func header(f *File) *tar.Header {
	h := &tar.Header{Name: f.Path, Mode: int64(f.Mode), ModTime: packTime, Typeflag: tar.TypeReg, Size: f.Size}
	if f.Link != "" {
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
	}
	return h
}

// eofFrame ends an archive: two empty blocks.
func eofFrame() []byte {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constant
	}
	defer enc.Close()
	return enc.EncodeAll(make([]byte, 1024), nil)
}
