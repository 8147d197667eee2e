package bundle

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/tuneplane/tp/bundle/store"
)

// knownFor is how long a listing of the store is believed without asking
// again. Only [Plan] relies on it: [Put] asks about each object it reuses.
const knownFor = time.Hour

// known is what a store is believed to hold: the local record of listings and
// uploads.
type known struct {
	listed  time.Time // when the store was last listed; zero is never
	objects map[Sum]Stored
}

// Stored is an object of a bundle in a store. Its name is key and digest, so
// that one listing tells both, a second upload with another compressor cannot
// change what the first has promised, and no object needs a companion that
// could be missing.
type Stored struct {
	Key    Sum   // of the segment
	SHA256 Sum   // of the frame as stored
	Size   int64 // of the frame, bytes
}

// Name is the name of the object.
func (s Stored) Name() string { return s.Key.String() + "." + s.SHA256.String() }

// ParseStored reads a listed object; false if it is none of a bundle.
func ParseStored(o store.Object) (Stored, bool) {
	s := Stored{Size: o.Size}
	key, sum, ok := strings.Cut(o.Name, ".")
	if !ok || s.Key.UnmarshalText([]byte(key)) != nil || s.SHA256.UnmarshalText([]byte(sum)) != nil {
		return Stored{}, false
	}
	return s, true
}

func (k *known) add(s Stored) {
	// of two frames of one segment always take the same
	if old, ok := k.objects[s.Key]; !ok || hex.EncodeToString(s.SHA256[:]) < hex.EncodeToString(old.SHA256[:]) {
		k.objects[s.Key] = s
	}
}

const knownMagic = "tp-store 1\n"
const knownFixed = 32 + 32 + 8

func loadKnown(file string) *known {
	payload, _ := readCache(file, knownMagic)
	return decodeKnown(payload)
}

func decodeKnown(b []byte) *known {
	k := &known{objects: map[Sum]Stored{}}
	if len(b) < 8 || (len(b)-8)%knownFixed != 0 {
		return k
	}
	k.listed = time.Unix(int64(binary.LittleEndian.Uint64(b)), 0)
	k.objects = make(map[Sum]Stored, len(b)/knownFixed)
	for b = b[8:]; len(b) > 0; b = b[knownFixed:] {
		s := Stored{Key: Sum(b[:32]), SHA256: Sum(b[32:64]), Size: int64(binary.LittleEndian.Uint64(b[64:]))}
		k.objects[s.Key] = s
	}
	return k
}

func (k *known) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(k.listed.Unix()))
	all := make([]Stored, 0, len(k.objects))
	for _, s := range k.objects {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Stored) int { return slices.Compare(a.Key[:], b.Key[:]) })
	for _, s := range all {
		b = append(b, s.Key[:]...)
		b = append(b, s.SHA256[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Size))
	}
	return b
}

// refresh lists the store when the last listing is old, or from the future.
func (k *known) refresh(ctx context.Context, st store.Store, now time.Time) (listed bool, err error) {
	if age := now.Sub(k.listed); age >= 0 && age < knownFor {
		return false, nil
	}
	objects, err := st.List(ctx, "")
	if err != nil {
		return false, err
	}
	k.objects = make(map[Sum]Stored, len(objects))
	for _, o := range objects {
		if s, ok := ParseStored(o); ok {
			k.add(s)
		}
	}
	k.listed = now
	return true, nil
}

// save is best effort, see the top of cache.go.
func (k *known) save(file string) { _ = writeCache(file, knownMagic, k.encode()) }
