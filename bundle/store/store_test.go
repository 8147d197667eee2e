package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/bundle/store/storetest"
)

func TestDir(t *testing.T) {
	suite(t, func(t *testing.T) store.Store {
		st, err := store.NewDir(filepath.Join(t.TempDir(), "not", "yet", "there"))
		if err != nil {
			t.Fatal(err)
		}
		return st
	})
}

func TestS3InProcess(t *testing.T) {
	suite(t, func(t *testing.T) store.Store { return storetest.S3(t) })
}

// TestS3Server runs on a real server, for example versitygw:
//
//	TP_E2E_S3_ENDPOINT=http://127.0.0.1:7070 TP_E2E_S3_BUCKET=tp-test TP_E2E_S3_CREDENTIALS=FILE go test ./bundle/store
func TestS3Server(t *testing.T) {
	suite(t, func(t *testing.T) store.Store { return storetest.Server(t) })
}

// suite is what every store must do.
func suite(t *testing.T, open func(*testing.T) store.Store) {
	ctx := context.Background()
	t.Run("put, get, has, delete", func(t *testing.T) {
		st := open(t)
		has(t, st, []string{"a-object"}, false)
		if _, err := st.Get(ctx, "a-object"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get of nothing: %v", err)
		}
		put(t, st, "a-object", "one")
		has(t, st, []string{"b-object", "a-object"}, false, true)
		if got := get(t, st, "a-object"); got != "one" {
			t.Errorf("got %q", got)
		}
		for range 2 {
			if err := st.Delete(ctx, "a-object"); err != nil {
				t.Error(err)
			}
		}
		has(t, st, []string{"a-object"}, false)
	})
	t.Run("an object stays as it was first put", func(t *testing.T) {
		st := open(t)
		put(t, st, "same", "first")
		put(t, st, "same", "second")
		if got := get(t, st, "same"); got != "first" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("racing writers leave one whole object", func(t *testing.T) {
		st := open(t)
		body := strings.Repeat("x", 1<<20)
		var group errgroup.Group
		for range 16 {
			group.Go(func() error { return st.Put(ctx, "race", []byte(body)) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if get(t, st, "race") != body {
			t.Error("damaged")
		}
	})
	t.Run("list by prefix, beyond one page", func(t *testing.T) {
		st := open(t)
		var group errgroup.Group
		group.SetLimit(16)
		for i := range 1100 {
			group.Go(func() error { return st.Put(ctx, fmt.Sprintf("k%04d.zz", i), []byte("12345")) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		put(t, st, "other", "")
		for prefix, want := range map[string]int{"": 1101, "k": 1100, "k00": 100, "k0007.": 1, "o": 1, "none": 0} {
			objects, err := st.List(ctx, prefix)
			if err != nil || len(objects) != want {
				t.Errorf("list %q: %d objects, %v; want %d", prefix, len(objects), err, want)
			}
			for _, o := range objects {
				if !strings.HasPrefix(o.Name, prefix) || (o.Size != 5 && o.Name != "other") || time.Since(o.ModTime).Abs() > time.Hour {
					t.Errorf("list %q: %+v", prefix, o)
				}
			}
		}
	})
	t.Run("many names at once, within and beyond one page", func(t *testing.T) {
		for _, stored := range []int{20, 1010} {
			st := open(t)
			var group errgroup.Group
			group.SetLimit(16)
			for i := range stored {
				group.Go(func() error { return st.Put(ctx, fmt.Sprintf("m%04d.zz", i), []byte("x")) })
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range 40 { // half of them are there: the first and, where there are so many, the last
				names = append(names, fmt.Sprintf("m%04d.zz", stored-20+i))
			}
			has, err := st.Has(ctx, names)
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range has {
				if want := i < 20; got != want {
					t.Errorf("%d stored: %s: %v, want %v", stored, names[i], got, want)
				}
			}
		}
	})
	t.Run("empty and large objects", func(t *testing.T) {
		st := open(t)
		large := make([]byte, 17<<20)
		rand.Read(large)
		put(t, st, "large", string(large))
		put(t, st, "empty", "")
		if get(t, st, "large") != string(large) || get(t, st, "empty") != "" {
			t.Error("damaged")
		}
		if err := st.Put(ctx, "too-large", make([]byte, store.MaxObject+1)); err == nil {
			t.Error("too large an object is stored")
		}
	})
	t.Run("bad names", func(t *testing.T) {
		st := open(t)
		for _, name := range []string{"", "ab", ".hidden", "a/b", "../../up", "a b c", "ä-name", strings.Repeat("a", 201)} {
			_, errGet := st.Get(ctx, name)
			_, errHas := st.Has(ctx, []string{name})
			_, errFetch := st.Fetch(ctx, []string{name}, time.Hour)
			for what, err := range map[string]error{"put": st.Put(ctx, name, nil), "get": errGet, "has": errHas, "fetch": errFetch, "delete": st.Delete(ctx, name)} {
				if err == nil || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s %q: %v", what, name, err)
				}
			}
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		st := open(t)
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if err := st.Put(ctx, "cancelled", []byte("x")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := st.Has(ctx, []string{"cancelled"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("fetch", func(t *testing.T) {
		st := open(t)
		put(t, st, "fetch.one", "1")
		put(t, st, "fetch.two", "2")
		access, err := st.Fetch(ctx, []string{"fetch.one", "fetch.two"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		switch access.Kind {
		case store.KindDir:
			dir = access.Dir
			for _, n := range []string{"fetch.one", "fetch.two"} {
				info, err := os.Stat(filepath.Join(dir, store.Path(n)))
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v %v", info, err)
				}
			}
		case store.KindS3:
			if time.Until(access.Expires) < 59*time.Minute {
				t.Errorf("expires %v", access.Expires)
			}
			config := filepath.Join(dir, "config")
			if err := os.WriteFile(config, access.CurlConfig, 0o600); err != nil {
				t.Fatal(err)
			}
			curl := exec.Command("curl", "-q", "-fsS", "-K", config)
			curl.Dir = dir
			if out, err := curl.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for n, want := range map[string]string{"fetch.one": "1", "fetch.two": "2"} {
				if got, err := os.ReadFile(filepath.Join(dir, n)); string(got) != want {
					t.Errorf("%s: %q %v", n, got, err)
				}
			}
		}
	})
}

func put(t *testing.T, st store.Store, name, body string) {
	t.Helper()
	if err := st.Put(context.Background(), name, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, st store.Store, name string) string {
	t.Helper()
	r, err := st.Get(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func has(t *testing.T, st store.Store, names []string, want ...bool) {
	t.Helper()
	got, err := st.Has(context.Background(), names)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("has %q: %v, %v; want %v", names, got, err, want)
	}
}

func TestDirLeavesNothingHalfDone(t *testing.T) {
	root := t.TempDir()
	st, _ := store.NewDir(root)
	// What a killed writer leaves: a temporary file, which is no object.
	os.MkdirAll(filepath.Join(root, "ab"), 0o700)
	os.WriteFile(filepath.Join(root, "ab", ".tmp-123"), []byte("half"), 0o600)
	os.WriteFile(filepath.Join(root, "ab", "misplaced"), []byte("x"), 0o600)
	objects, err := st.List(context.Background(), "")
	if err != nil || len(objects) != 0 {
		t.Errorf("%v %v", objects, err)
	}
}

func TestBatchIsDurableTogether(t *testing.T) {
	d, err := store.NewDir(filepath.Join(t.TempDir(), "objects"))
	if err != nil {
		t.Fatal(err)
	}
	b := d.Batch()
	body := bytes.Repeat([]byte("0123456789"), 200_000) // more than one write
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("%02d-object", i))
		if err := b.Put(t.Context(), names[i], body); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if get(t, d, name) != string(body) {
			t.Errorf("%s differs", name)
		}
	}
}

// What does not reach the disk is said, and the rest gets there.
func TestBatchSaysWhatFailed(t *testing.T) {
	root := filepath.Join(t.TempDir(), "objects")
	d, err := store.NewDir(root)
	if err != nil {
		t.Fatal(err)
	}
	b := d.Batch()
	if err := b.Put(t.Context(), "bb-good", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "aa"), nil, 0o600); err != nil { // a file where the directory should be
		t.Fatal(err)
	}
	if err := errors.Join(b.Put(t.Context(), "aa-bad", []byte("x")), b.Wait()); err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("%v", err)
	}
	if get(t, d, "bb-good") != "x" {
		t.Error("the good one is gone")
	}
}

func TestDirThatCannotBe(t *testing.T) {
	root := filepath.Join(t.TempDir(), "file")
	os.WriteFile(root, nil, 0o600)
	st, _ := store.NewDir(root)
	if err := st.Put(context.Background(), "object", []byte("x")); err == nil || !strings.Contains(err.Error(), root) {
		t.Error(err)
	}
}

// faulty answers the first requests with faults, then passes on.
func faulty(t *testing.T, faults int, answer http.HandlerFunc) (store.Config, *atomic.Int32) {
	c, handler := storetest.Handler(t)
	var requests atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if int(requests.Add(1)) <= faults {
			io.Copy(io.Discard, r.Body)
			answer(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c.Endpoint = srv.URL
	return c, &requests
}

func openS3(t *testing.T, c store.Config) store.Store {
	t.Helper()
	st, err := store.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// P77: 500 twice, then well.
func TestS3RetriesServerErrors(t *testing.T) {
	c, requests := faulty(t, 2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	st := openS3(t, c)
	put(t, st, "retried", "body")
	if requests.Load() != 3 || get(t, st, "retried") != "body" {
		t.Errorf("%d requests", requests.Load())
	}
}

func TestS3Faults(t *testing.T) {
	deny := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
	}
	denied, _ := faulty(t, 1000, deny)
	noBucket, _ := faulty(t, 0, nil)
	noBucket.Bucket = "not-there"
	wrongKey, _ := faulty(t, 0, nil)
	wrongKey.Credentials = storetest.Credentials(t, "someone", "else")
	gone, _ := faulty(t, 0, nil)
	gone.Endpoint = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		config store.Config
		want   error
	}{
		"403": {denied, store.ErrDenied}, "no bucket": {noBucket, store.ErrNoBucket},
		"wrong key": {wrongKey, store.ErrDenied}, "refused connection": {gone, store.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			st := openS3(t, c.config)
			err := st.Put(context.Background(), "object", []byte("x"))
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "X-Amz") {
				t.Errorf("put: %v", err)
			}
			if _, err := st.List(context.Background(), ""); !errors.Is(err, c.want) {
				t.Errorf("list: %v", err)
			}
		})
	}
}

// A server without conditional writes still works: names are content.
func TestS3WithoutConditionalWrites(t *testing.T) {
	c, handler := storetest.Handler(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotImplemented)
			io.WriteString(w, `<Error><Code>NotImplemented</Code></Error>`)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c.Endpoint = srv.URL
	st := openS3(t, c)
	put(t, st, "object", "x")
	if get(t, st, "object") != "x" {
		t.Error("damaged")
	}
}

func TestS3Config(t *testing.T) {
	good, _ := storetest.Handler(t)
	for name, change := range map[string]func(*store.Config){
		"endpoint with a path":  func(c *store.Config) { c.Endpoint = "https://host/path" },
		"endpoint, no scheme":   func(c *store.Config) { c.Endpoint = "host:9000" },
		"endpoint with secrets": func(c *store.Config) { c.Endpoint = "https://u:p@host" },
		"no bucket":             func(c *store.Config) { c.Bucket = "" },
		"no credentials":        func(c *store.Config) { c.Credentials = "" },
		"missing credentials":   func(c *store.Config) { c.Credentials = "/nowhere/file" },
		"missing profile":       func(c *store.Config) { c.Credentials += "#nobody" },
		"open credentials":      func(c *store.Config) { os.Chmod(c.Credentials, 0o640) },
		"kind":                  func(c *store.Config) { c.Kind = "ftp" },
	} {
		c := good
		c.Endpoint, c.Credentials = "http://127.0.0.1:9000", storetest.Credentials(t, "id", "secret")
		if _, err := store.Open(c); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := store.Open(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := store.NewDir("relative"); err == nil {
		t.Error("a relative directory is accepted")
	}
}

// P73: path style for custom endpoints, virtual hosts for Amazon, and a switch.
func TestS3EndpointStyle(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		endpoint, bucket string
		style            *bool
		want             string
	}{
		{"http://127.0.0.1:9000", "buck", nil, "http://127.0.0.1:9000/buck/ann/object?"},
		{"https://s3.site.edu", "buck.with.dots", nil, "https://s3.site.edu/buck.with.dots/ann/object?"},
		{"https://s3.site.edu", "buck", &no, "https://buck.s3.site.edu/ann/object?"},
		{"", "buck", nil, "https://buck.s3."},
		{"", "buck", &yes, "https://s3."},
	} {
		st, err := store.NewS3(store.Config{Endpoint: c.endpoint, Bucket: c.bucket, Prefix: "ann", PathStyle: c.style, Credentials: storetest.Credentials(t, "id", "secret")})
		if err != nil {
			t.Fatal(err)
		}
		access, err := st.Fetch(context.Background(), []string{"object"}, time.Hour)
		if err != nil || !bytes.Contains(access.CurlConfig, []byte(`url = "`+c.want)) {
			t.Errorf("%+v: %s %v", c, access.CurlConfig, err)
		}
	}
}

func TestPresignTooLong(t *testing.T) {
	st := storetest.S3(t)
	if _, err := st.Fetch(context.Background(), []string{"object"}, 8*24*time.Hour); err == nil {
		t.Error("8 days are accepted")
	}
}
