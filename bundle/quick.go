package bundle

import (
	"context"
	"crypto/sha256"
	"hash/crc32"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Put reads what Digest has read before and must see any change in between,
// whatever the times of the file say: a program that writes through mmap need
// not touch them. A second SHA-256 would cost a fifth of the compression, so
// Digest leaves the CRC-32C of what it read, which costs next to nothing and
// sees a change as surely as any program that changes a file by accident
// deserves. Files that Digest knew from its cache get their SHA-256 here.

// quickSum makes the CRCs of a file's parts; a file that is not split has one.
// Writes must not cross the borders of parts.
type quickSum struct {
	size int64 // written
	sums []uint32
}

func (q *quickSum) write(data []byte) {
	if q.size%partSize == 0 {
		q.sums = append(q.sums, 0)
	}
	last := &q.sums[len(q.sums)-1]
	*last = crc32.Update(*last, castagnoli, data)
	q.size += int64(len(data))
}

// checker tells whether what is packed is what the manifest says.
type checker struct {
	man   *Manifest
	parts map[int][]Sum // SHA-256 of the parts of split files without quick hashes
}

// newChecker reads the split files of which parts are missing and which Digest
// has not read.
func newChecker(ctx context.Context, man *Manifest, root string, missing []int) (*checker, error) {
	c := &checker{man: man, parts: map[int][]Sum{}}
	var mu sync.Mutex
	last := endIndex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, i := range missing {
		if i == endIndex || man.Segments[i].Length < 0 || man.Segments[i].From == last || c.quick(man.Segments[i].From) != nil {
			continue
		}
		last = man.Segments[i].From
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			at := man.Segments[i].From
			sums, err := partSums(root, &man.Files[at])
			mu.Lock()
			defer mu.Unlock()
			c.parts[at] = sums
			return err
		})
	}
	return c, group.Wait()
}

func (c *checker) quick(i int) []uint32 {
	if c.man.quick == nil {
		return nil
	}
	return c.man.quick[i]
}

// same compares a part of file i, 0 for a whole one.
func (c *checker) same(i, part int, data []byte) bool {
	if quick := c.quick(i); quick != nil {
		return crc32.Checksum(data, castagnoli) == quick[part]
	}
	want := c.man.Files[i].SHA256
	if parts := c.parts[i]; parts != nil {
		want = parts[part]
	}
	return sha256.Sum256(data) == want
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
	buf := make([]byte, scanMax) // divides partSize
	for at := int64(0); at < f.Size; {
		data := buf[:min(int64(len(buf)), f.Size-at)]
		if err := file.readAt(data, at); err != nil {
			return nil, err
		}
		whole.Write(data)
		part.Write(data)
		if at += int64(len(data)); at%partSize == 0 || at == f.Size {
			sums = append(sums, Sum(part.Sum(nil)))
			part.Reset()
		}
	}
	if Sum(whole.Sum(nil)) != f.SHA256 {
		return nil, changed(f.Path)
	}
	return sums, nil
}
