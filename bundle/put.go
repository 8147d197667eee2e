package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/internal/fault"
)

// Upload is what a [Put] would do.
type Upload struct {
	Segments int   // to upload
	NewBytes int64 // content of these, before compression
	Total    int   // segments of the bundle
	Bytes    int64 // content of the bundle
}

// Plan says what a [Put] would upload. It asks the store when its last listing
// is older than an hour and believes it otherwise: an object that vanished
// since then is found by Put, which uploads it again.
func Plan(ctx context.Context, man *Manifest, st store.Store, cacheDir string) (Upload, error) {
	file := cachePath(cacheDir, "store", st.Identity())
	k := loadKnown(file)
	listed, err := k.refresh(ctx, st, time.Now())
	if err != nil {
		return Upload{}, storeFault(err)
	}
	if listed {
		k.save(file)
	}
	up := Upload{Total: len(man.Segments), Bytes: man.Bytes}
	for i := range man.Segments {
		if _, ok := k.objects[man.Segments[i].Key]; !ok {
			up.Segments++
			up.NewBytes += man.Segments[i].RawSize
		}
	}
	return up, nil
}

// Put uploads the segments the store does not have and returns all objects in
// the order of the archive, its end included; all of them are durable then. It
// reads the files below root again and fails with "changed while being packed"
// where they are not those of the manifest. After an error or a kill the store
// holds whole segments only, and the next Put goes on from there.
//
// Progress may be nil; it is called with bytes of content, from one goroutine
// at a time.
func Put(ctx context.Context, man *Manifest, root string, st store.Store, cacheDir string, progress func(done, total int64)) ([]Stored, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	file := cachePath(cacheDir, "store", st.Identity())
	k := loadKnown(file)
	listed, err := k.refresh(ctx, st, time.Now())
	if err != nil {
		return nil, storeFault(err)
	}
	missing, err := k.missing(ctx, man, st)
	if err != nil {
		return nil, storeFault(err)
	}
	if len(missing) > 0 || listed {
		uploaded, err := upload(ctx, man, root, st, missing, progress)
		for _, s := range uploaded {
			k.objects[s.Key] = s
		}
		k.save(file) // after an error too: what is there need not go up again
		if err != nil {
			return nil, storeFault(err)
		}
	}
	stored := make([]Stored, 0, len(man.Segments)+1)
	for i := range man.Segments {
		stored = append(stored, k.objects[man.Segments[i].Key])
	}
	return append(stored, k.objects[eofKey]), nil
}

// endIndex stands for the end of the archive among indices of segments.
const endIndex = -1

// missing asks the store about every object that would be reused and returns
// the indices of the segments to upload.
func (k *known) missing(ctx context.Context, man *Manifest, st store.Store) ([]int, error) {
	var missing, reused []int
	var names []string
	check := func(i int, key Sum) {
		if s, ok := k.objects[key]; ok {
			reused, names = append(reused, i), append(names, s.Name())
			return
		}
		missing = append(missing, i)
	}
	check(endIndex, eofKey)
	for i := range man.Segments {
		check(i, man.Segments[i].Key)
	}
	has, err := st.Has(ctx, names)
	if err != nil {
		return nil, err
	}
	for j, i := range reused {
		if !has[j] {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// uploadWidth is how many segments are under way: every CPU has one to
// compress while others wait for the network or the disk. A packer holds up to
// 32 MiB, so the whole stays below 384.
func uploadWidth() int { return min(runtime.GOMAXPROCS(0)+4, 12) }

// upload returns what it stored, also beside an error.
func upload(ctx context.Context, man *Manifest, root string, st store.Store, missing []int, progress func(done, total int64)) ([]Stored, error) {
	check, err := newChecker(ctx, man, root, missing)
	if err != nil {
		return nil, err
	}
	var total, done int64
	largest := 0
	for _, i := range missing {
		if i != endIndex {
			total += man.Segments[i].RawSize
			largest = max(largest, man.Segments[i].archived())
		}
	}
	put, wait := st.Put, func() error { return nil }
	if b, ok := st.(interface{ Batch() *store.Batch }); ok {
		batch := b.Batch()
		put, wait = batch.Put, batch.Wait
	}
	var mu sync.Mutex
	var stored []Stored
	next := make(chan int)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(next)
		for _, i := range missing {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(uploadWidth(), len(missing)) {
		group.Go(func() error {
			p, err := newPacker(root, man.Files, check, largest)
			if err != nil {
				return err
			}
			defer p.zstd.Close()
			for i := range next {
				key, size, frame := eofKey, int64(0), []byte(nil)
				if i == endIndex {
					frame = eofFrame()
				} else if frame, err = p.pack(&man.Segments[i]); err != nil {
					return err
				} else {
					key, size = man.Segments[i].Key, man.Segments[i].RawSize
				}
				s := Stored{Key: key, SHA256: sha256.Sum256(frame), Size: int64(len(frame))}
				if err := put(ctx, s.Name(), frame); err != nil {
					return err
				}
				mu.Lock()
				stored = append(stored, s)
				if done += size; progress != nil {
					progress(done, total)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	err = group.Wait()
	return stored, errors.Join(err, wait()) // what was put is durable, also beside an error
}

// storeFault gives the errors of a store that a user can do something about
// their exit code and remedy.
func storeFault(err error) error {
	var finished *fault.Error
	switch {
	case errors.As(err, &finished):
		return err
	case errors.Is(err, store.ErrUnreachable):
		return fault.New(fault.Unreachable, "%w", err).WithHint("tp doctor")
	case errors.Is(err, store.ErrDenied):
		return fault.New(fault.Refused, "%w", err).WithHint("check the owner of the directory, or the credentials file and the rights of its key")
	case errors.Is(err, store.ErrNoBucket):
		return fault.New(fault.Refused, "%w", err).WithHint("create the bucket, or correct its name in the site file")
	}
	return fmt.Errorf("upload bundle: %w", err)
}
