package bundle

import (
	"archive/tar"
	"bytes"
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
	check *checker
	raw   bytes.Buffer
	frame []byte
	zstd  *zstd.Encoder
}

// newPacker makes room for the largest segment at once, instead of growing into
// it: memory that is not used costs nothing, touching new memory does.
func newPacker(root string, files []File, check *checker, largest int) (*packer, error) {
	// "Fastest" has the ratio of zstd -3 on code. One thread: segments are
	// packed side by side. No checksum: an object has its SHA-256.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	p := &packer{root: root, files: files, check: check, zstd: enc, frame: make([]byte, 0, largest)}
	p.raw.Grow(largest)
	return p, err
}

// pack returns the frame of a segment, valid until the next call. Every byte is
// compared with the manifest, for a key says what is inside.
func (p *packer) pack(s *Segment) ([]byte, error) {
	p.raw.Reset()
	var err error
	if s.Length >= 0 {
		err = p.part(s)
	} else {
		err = p.whole(s)
	}
	if err != nil {
		return nil, err
	}
	p.frame = p.zstd.EncodeAll(p.raw.Bytes(), p.frame[:0])
	return p.frame, nil
}

func (p *packer) whole(s *Segment) error {
	for i := s.From; i < s.To; i++ {
		f := &p.files[i]
		if err := p.header(f); err != nil {
			return err
		}
		if f.Link != "" {
			if target, err := os.Readlink(p.root + "/" + f.Path); err != nil || target != f.Link {
				return changed(f.Path)
			}
			continue
		}
		if err := p.content(i, 0, f.Size); err != nil {
			return err
		}
		pad(&p.raw, f.Size)
	}
	return nil
}

// part writes header, bytes or padding of a split file: whatever of them falls
// into the part.
func (p *packer) part(s *Segment) error {
	f := &p.files[s.From]
	if s.Offset == 0 {
		if err := p.header(f); err != nil {
			return err
		}
	}
	if err := p.content(s.From, s.Offset, s.Length); err != nil {
		return err
	}
	if s.Offset+s.Length == f.Size {
		pad(&p.raw, f.Size)
	}
	return nil
}

// content reads bytes of a file straight into the segment.
func (p *packer) content(i int, offset, length int64) error {
	f := &p.files[i]
	file, err := openFile(p.root, f)
	if err != nil {
		return err
	}
	defer file.Close()
	p.raw.Grow(int(length))
	data := p.raw.AvailableBuffer()[:length]
	if err := file.readAt(data, offset); err != nil {
		return err
	}
	if !p.check.same(i, int(offset/partSize), data) {
		return changed(f.Path)
	}
	p.raw.Write(data) // where it is already
	return nil
}

// pad fills the last block of a file.
func pad(raw *bytes.Buffer, size int64) {
	var zeros [512]byte
	raw.Write(zeros[:-size&511])
}

func openFile(root string, f *File) (*source, error) {
	file, err := openSource(root, f.Path)
	if err != nil {
		return nil, err
	}
	if now, err := file.stat(); err != nil || now.size != f.Size || now.mode&syscall.S_IFMT != syscall.S_IFREG || (now.mode&0o100 != 0) != (f.Mode == modeExec) {
		file.Close()
		return nil, changed(f.Path)
	}
	return file, nil
}

// header is the same for the same file everywhere: no owner, one time. The
// format is USTAR, and PAX where a name or size does not fit.
func (p *packer) header(f *File) error {
	h := &tar.Header{Name: f.Path, Mode: int64(f.Mode), ModTime: packTime, Typeflag: tar.TypeReg, Size: f.Size}
	if f.Link != "" {
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
	}
	// a writer for each, for it would insist on carrying the content
	if err := tar.NewWriter(&p.raw).WriteHeader(h); err != nil {
		return readError(f.Path, err)
	}
	return nil
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
