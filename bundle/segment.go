package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// The sizes of segments, in bytes of content. Small segments make small
// uploads after an edit, large ones fewer objects. A cut is possible from
// segmentMin on and then comes within segmentGap in the mean: sizes near their
// mean of 384 KiB, where cuts at random would make the segment that an edit
// hits twice as large as the mean (20 scattered edits of 20,000 files: 14 MB
// before compression against 9).
const (
	segmentMin   = 256 << 10
	segmentGap   = 128 << 10
	segmentMax   = 4 << 20  // where a run without a cut ends
	aloneSize    = 1 << 20  // files from here on have their own segment
	partSize     = 16 << 20 // and are split at multiples of this
	fileOverhead = 512      // a tar header
)

// codec names how segments are stored. Another one gives other keys.
const codec = "zstd"

// Segment is a piece of the archive: files From to To of the manifest, or a
// part of the one file From.
type Segment struct {
	Key      Sum
	From, To int   // indices into Files, To exclusive
	Offset   int64 // of the part, in bytes of content
	Length   int64 // of the part; -1 if the segment has whole files
	RawSize  int64 // bytes of content
}

// archived is the size of the segment as a piece of tar, in bytes; about, for
// long names take more.
func (s *Segment) archived() int { return int(s.RawSize) + 2*fileOverhead*(s.To-s.From) }

// cut divides sorted files into segments. Where a segment can end depends on
// the file before alone, so that an edit moves at most the next cuts.
func cut(files []File) []Segment {
	var segments []Segment
	from, size := 0, int64(0)
	end := func(to int) {
		if from < to {
			segments = append(segments, Segment{From: from, To: to, Length: -1, RawSize: size - int64(to-from)*fileOverhead})
		}
		from, size = to, 0
	}
	for i := range files {
		f := &files[i]
		if f.Size < aloneSize || f.Link != "" {
			size += f.Size + fileOverhead
			if size >= segmentMax || size >= segmentMin && cutAfter(f) {
				end(i + 1)
			}
			continue
		}
		end(i)
		from = i + 1
		if f.Size <= partSize {
			segments = append(segments, Segment{From: i, To: i + 1, Length: -1, RawSize: f.Size})
			continue
		}
		for at := int64(0); at < f.Size; at += partSize {
			n := min(partSize, f.Size-at)
			segments = append(segments, Segment{From: i, To: i + 1, Offset: at, Length: n, RawSize: n})
		}
	}
	end(len(files))
	for i := range segments {
		segments[i].Key = segments[i].key(files)
	}
	return segments
}

// cutAfter is true with probability size/segmentGap, decided by a hash of the
// path. The size counts as the power of two below: most edits keep that.
func cutAfter(f *File) bool {
	weight := uint64(1) << (bits.Len64(uint64(f.Size+fileOverhead)) - 1)
	return pathHash(f.Path) < ^uint64(0)/segmentGap*min(weight, segmentGap)
}

// pathHash is FNV-1a with the finalizer of MurmurHash3, for FNV's high bits
// hardly move on short names.
func pathHash(p string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(p) {
		h = (h ^ uint64(p[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (s *Segment) key(files []File) Sum {
	b := make([]byte, 0, 16<<10)
	b = append(b, "tp1\x00"+codec+"\x00"...)
	for i := s.From; i < s.To; i++ {
		f := &files[i]
		b = binary.AppendUvarint(b, uint64(len(f.Path)))
		b = append(b, f.Path...)
		b = binary.AppendUvarint(b, uint64(f.Mode))
		b = binary.AppendUvarint(b, uint64(f.Size))
		b = append(b, f.SHA256[:]...)
	}
	if s.Length >= 0 {
		b = append(b, "part\x00"...)
		b = binary.AppendUvarint(b, uint64(s.Offset))
		b = binary.AppendUvarint(b, uint64(s.Length))
	}
	return sha256.Sum256(b)
}

// eofKey names the object that ends every archive.
var eofKey = Sum(sha256.Sum256([]byte("tp1\x00" + codec + "\x00eof")))

// seal computes segments and digest from the files.
func (m *Manifest) seal() {
	m.Segments = cut(m.Files)
	h := sha256.New()
	h.Write([]byte("tp1 bundle\x00" + codec + "\x00"))
	for i := range m.Segments {
		h.Write(m.Segments[i].Key[:])
	}
	h.Sum(m.Digest[:0])
	m.Bytes = 0
	for i := range m.Files {
		m.Bytes += m.Files[i].Size
	}
}
