package bundle

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/bundle/store/storetest"
	"github.com/tuneplane/tp/internal/fault"
)

// huge is odd with files that are split.
func huge(t testing.TB) string {
	big := make([]byte, 2*partSize+777)
	rand.New(rand.NewSource(1)).Read(big)
	return lab{"mid.bin": string(big[:aloneSize+1]), "big.bin": string(big), "even.bin": string(big[:2*partSize])}.write(t, odd(t))
}

// odd is a tree with everything else a bundle can hold.
func odd(t testing.TB) string {
	l := lab{
		"a.py": "one", "empty": "", "d/run.sh": "#!/bin/sh\necho hi\n", "link": "-> d/run.sh", "d/up": "-> ..", "l2": "-> link",
		"#n.py": "hash", ";s.py": "semicolon", `a"b.py`: "q", "a b.py": "blank", "-rf": "dash", "$(id)": "x", "ü/ñ.py": "utf-8", "\xff\xfe.py": "raw", `back\slash`: "b",
		"deep/" + strings.Repeat("long-name/", 20) + strings.Repeat("x", 200): "pax", "exact": strings.Repeat("x", 512),
	}
	for i := range 400 {
		l["many/"+strings.Repeat("f", 1+i%9)+string(rune('a'+i%26))+strings.Repeat("g", i/26)] = strings.Repeat("code ", i*7)
	}
	return l.repo(t)
}

func dirStore(t testing.TB) *store.Dir {
	t.Helper()
	st, err := store.NewDir(filepath.Join(t.TempDir(), "objects"))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func put(t testing.TB, man *Manifest, root string, st store.Store, cache string) []Stored {
	t.Helper()
	stored, err := Put(context.Background(), man, root, st, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func plan(t testing.TB, man *Manifest, st store.Store, cache string) Upload {
	t.Helper()
	up, err := Plan(context.Background(), man, st, cache)
	if err != nil {
		t.Fatal(err)
	}
	return up
}

func TestPutAndUnpack(t *testing.T) {
	root := huge(t)
	sel := selectAll(t, root)
	man := digest(t, sel, "")
	for name, st := range map[string]store.Store{"dir": dirStore(t), "s3": storetest.S3(t)} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			if up := plan(t, man, st, cache); up.Segments != len(man.Segments) || up.NewBytes != man.Bytes {
				t.Errorf("%+v", up)
			}
			var last, total int64
			stored, err := Put(context.Background(), man, root, st, cache, func(d, n int64) {
				if d < last {
					t.Error("progress runs backwards")
				}
				last, total = d, n
			})
			if err != nil || last != total || total != man.Bytes {
				t.Fatalf("%d of %d, %v", last, total, err)
			}
			if len(stored) != len(man.Segments)+1 || stored[len(stored)-1].Key != eofKey {
				t.Fatalf("%d stored, %d segments", len(stored), len(man.Segments))
			}
			out := filepath.Join(t.TempDir(), "out")
			if err := Unpack(context.Background(), st, stored, out); err != nil {
				t.Fatal(err)
			}
			wantTree(t, root, man.Files, out)
			// again, with and without the cache: nothing to do, the same objects
			for _, c := range []string{cache, t.TempDir(), ""} {
				if up := plan(t, man, st, c); up.Segments != 0 || up.NewBytes != 0 {
					t.Errorf("%+v", up)
				}
				again := put(t, man, root, st, c)
				for i := range again {
					if again[i] != stored[i] {
						t.Errorf("object %d: %+v, was %+v", i, again[i], stored[i])
					}
				}
			}
		})
	}
}

// P90: the second bundle is the second tree, whatever was there before.
func TestPutUploadsTheChangeOnly(t *testing.T) {
	root, st, cache := odd(t), dirStore(t), t.TempDir()
	put(t, digest(t, selectAll(t, root), cache), root, st, cache)
	os.WriteFile(root+"/a.py", []byte("two"), 0o644)
	os.Remove(root + "/exact")
	man := digest(t, selectAll(t, root), cache)
	if up := plan(t, man, st, cache); up.Segments < 1 || up.Segments > 2 {
		t.Errorf("%+v", up)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := Unpack(context.Background(), st, put(t, man, root, st, cache), out); err != nil {
		t.Fatal(err)
	}
	wantTree(t, root, man.Files, out)
}

func TestPutSeesVanishedObjects(t *testing.T) {
	root, st, cache := odd(t), dirStore(t), t.TempDir()
	man := digest(t, selectAll(t, root), cache)
	stored := put(t, man, root, st, cache)
	for _, i := range []int{0, len(stored) - 1} {
		if err := st.Delete(context.Background(), stored[i].Name()); err != nil {
			t.Fatal(err)
		}
	}
	if up := plan(t, man, st, cache); up.Segments != 0 {
		t.Error("a young listing is not believed")
	}
	again := put(t, man, root, st, cache)
	has, err := st.Has(context.Background(), []string{again[0].Name(), again[len(again)-1].Name()})
	if err != nil || !has[0] || !has[1] {
		t.Errorf("%v %v", has, err)
	}
	// An old listing is not believed.
	st.Delete(context.Background(), stored[0].Name())
	file := cachePath(cache, "store", st.Identity())
	k := loadKnown(file)
	k.listed = time.Now().Add(-knownFor)
	k.save(file)
	if up := plan(t, man, st, cache); up.Segments != 1 {
		t.Errorf("%+v", up)
	}
}

func TestPutSeesChangesWhilePacking(t *testing.T) {
	for name, change := range map[string]func(root string){
		"content": func(r string) { os.WriteFile(r+"/a.py", []byte("uno"), 0o644) },
		"size":    func(r string) { os.WriteFile(r+"/a.py", []byte("longer"), 0o644) },
		"mode":    func(r string) { os.Chmod(r+"/a.py", 0o755) },
		"removed": func(r string) { os.Remove(r + "/a.py") },
		"linked":  func(r string) { os.Remove(r + "/a.py"); os.Symlink("exact", r+"/a.py") },
		"link":    func(r string) { os.Remove(r + "/link"); os.Symlink("a.py", r+"/link") },
		"part": func(r string) {
			f, _ := os.OpenFile(r+"/big.bin", os.O_WRONLY, 0)
			f.WriteAt([]byte("changed"), partSize+5)
			f.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, st := odd(t), dirStore(t)
			if name == "part" {
				root = huge(t)
			}
			cache := t.TempDir()
			read := digest(t, later(selectAll(t, root)), cache)
			known := digest(t, later(selectAll(t, root)), cache) // reads nothing
			if read.quick == nil || known.quick != nil {
				t.Fatal("the cache is not used")
			}
			change(root)
			for _, man := range []*Manifest{read, known} {
				_, err := Put(context.Background(), man, root, st, "", nil)
				wantFault(t, err, "changed while being packed")
			}
		})
	}
}

// failing is a store that fails after some puts.
type failing struct {
	store.Store
	left atomic.Int32
	err  error
}

func (f *failing) Put(ctx context.Context, name string, body []byte) error {
	if f.left.Add(-1) < 0 {
		return f.err
	}
	return f.Store.Put(ctx, name, body)
}

// P77: an interrupted upload goes on where it was.
func TestPutGoesOnAfterAFault(t *testing.T) {
	root, cache := odd(t), t.TempDir()
	man := digest(t, selectAll(t, root), "")
	st := &failing{Store: dirStore(t), err: store.ErrUnreachable}
	st.left.Store(4)
	_, err := Put(context.Background(), man, root, st, cache, nil)
	if !errors.Is(err, store.ErrUnreachable) || fault.CodeOf(err) != fault.Unreachable {
		t.Fatalf("%v", err)
	}
	st.left.Store(1000)
	put(t, man, root, st, cache)
	if uploaded := 1000 - int(st.left.Load()); uploaded != len(man.Segments)+1-4 {
		t.Errorf("%d uploaded of %d", uploaded, len(man.Segments))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Put(ctx, man, root, dirStore(t), "", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPutFaultsSayWhatToDo(t *testing.T) {
	root := lab{"a": "x"}.repo(t)
	man := digest(t, selectAll(t, root), "")
	for want, code := range map[error]fault.Code{store.ErrDenied: fault.Refused, store.ErrNoBucket: fault.Refused, store.ErrUnreachable: fault.Unreachable} {
		_, err := Put(context.Background(), man, root, &failing{Store: dirStore(t), err: want}, "", nil)
		if fault.CodeOf(err) != code || !errors.Is(err, want) {
			t.Errorf("%v: %v", want, err)
		}
	}
}

func TestUnpackRefusesCorruptObjects(t *testing.T) {
	root, st := odd(t), dirStore(t)
	man := digest(t, selectAll(t, root), "")
	stored := put(t, man, root, st, "")
	file := filepath.Join(strings.TrimPrefix(st.Identity(), "dir:"), store.Path(stored[1].Name()))
	body, _ := os.ReadFile(file)
	body[len(body)/2] ^= 1
	os.WriteFile(file, body, 0o600)
	err := Unpack(context.Background(), st, stored, filepath.Join(t.TempDir(), "out"))
	wantFault(t, err, "corrupt")
	st.Delete(context.Background(), stored[1].Name())
	stored = put(t, man, root, st, "")
	if err := Unpack(context.Background(), st, stored[:len(stored)-1], t.TempDir()); err == nil {
		t.Error("an archive without end is accepted")
	}
	wantFault(t, Unpack(context.Background(), st, stored, root), "not empty")
}

func TestPackIsDeterministic(t *testing.T) {
	root := odd(t)
	man := digest(t, selectAll(t, root), "")
	a, b := put(t, man, root, dirStore(t), ""), put(t, man, root, dirStore(t), "")
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("object %d differs", i)
		}
	}
	if frame := eofFrame(); !bytes.Equal(frame, eofFrame()) {
		t.Error("the end differs")
	}
}
