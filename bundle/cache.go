package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Caches are flat binary files: a magic word, a payload, its CRC-32C. One that
// is damaged, of another version or writable by others is as good as none, and
// one that cannot be written costs time, not correctness.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cachePath names the cache of a kind for an identity; "" where dir is.
func cachePath(dir, kind string, identity ...string) string {
	if dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(identity, "\x00")))
	return filepath.Join(dir, hex.EncodeToString(sum[:12])+"."+kind)
}

func readCache(file, magic string) ([]byte, bool) {
	if file == "" {
		return nil, false
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o022 != 0 || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return nil, false
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, false
	}
	return unframe(data, magic)
}

func unframe(data []byte, magic string) ([]byte, bool) {
	if len(data) < len(magic)+4 || string(data[:len(magic)]) != magic {
		return nil, false
	}
	payload, sum := data[len(magic):len(data)-4], data[len(data)-4:]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, false
	}
	return payload, true
}

func frame(payload []byte, magic string) []byte {
	data := append([]byte(magic), payload...)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(payload, castagnoli))
}

// writeCache replaces the file in one step. It is not synced: after a crash of
// the machine the CRC tells.
func writeCache(file, magic string, payload []byte) error {
	if file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".tmp-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(frame(payload, magic))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// cached is what is known about a file from the last time it was read. Only
// files without secrets get here, so the scan is remembered as well.
type cached struct {
	path string
	stat stat
	sum  Sum
	lfs  bool // a Git LFS pointer
}

// racy is how long a file must have been left alone before its times tell two
// contents apart; git's rule, in ns.
const racy = int64(2 * time.Second)

const statMagic = "tp-stat 1\n"

// statFixed is the size of an entry without its path.
const statFixed = 4*8 + 4 + 32 + 1 + 2

// encodeStats packs entries sorted by path.
func encodeStats(entries []cached) []byte {
	size := 8
	for i := range entries {
		size += statFixed + len(entries[i].path)
	}
	b := make([]byte, 0, size)
	le := binary.LittleEndian
	b = le.AppendUint32(b, scanVersion)
	b = le.AppendUint32(b, uint32(len(entries)))
	for i := range entries {
		e := &entries[i]
		b = le.AppendUint64(b, uint64(e.stat.size))
		b = le.AppendUint64(b, uint64(e.stat.mtime))
		b = le.AppendUint64(b, uint64(e.stat.ctime))
		b = le.AppendUint64(b, e.stat.inode)
		b = le.AppendUint32(b, e.stat.mode)
		b = append(b, e.sum[:]...)
		b = append(b, boolByte(e.lfs))
		b = le.AppendUint16(b, uint16(len(e.path)))
		b = append(b, e.path...)
	}
	return b
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// decodeStats returns nil for anything but a whole cache of this version.
func decodeStats(b []byte) []cached {
	le := binary.LittleEndian
	if len(b) < 8 || le.Uint32(b) != scanVersion {
		return nil
	}
	count := int(le.Uint32(b[4:]))
	b = b[8:]
	if count > len(b)/statFixed {
		return nil
	}
	text := string(b) // one copy; the paths are pieces of it
	entries := make([]cached, count)
	at := 0
	for i := range entries {
		if len(b)-at < statFixed {
			return nil
		}
		e, p := &entries[i], b[at:at+statFixed]
		e.stat = stat{int64(le.Uint64(p)), int64(le.Uint64(p[8:])), int64(le.Uint64(p[16:])), le.Uint64(p[24:]), le.Uint32(p[32:])}
		copy(e.sum[:], p[36:68])
		e.lfs = p[68] == 1
		n := int(le.Uint16(p[69:]))
		at += statFixed
		if p[68] > 1 || len(b)-at < n {
			return nil
		}
		e.path = text[at : at+n]
		at += n
		if i > 0 && entries[i-1].path >= e.path {
			return nil
		}
	}
	if at != len(b) {
		return nil
	}
	return entries
}
