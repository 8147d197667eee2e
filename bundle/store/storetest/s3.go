// Package storetest is S3 for tests: an S3 server inside the process, which
// checks signatures, and a real one where the environment names it.
package storetest

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"

	"github.com/tuneplane/tp/bundle/store"
)

// bucket is the one that exists.
const bucket = "bucket"

// S3 opens a fresh store on an S3 server inside the process.
func S3(t testing.TB) store.Store {
	t.Helper()
	c, handler := Handler(t)
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	c.Endpoint = srv.URL
	return open(t, c)
}

// Handler is the server as a handler, so that a test can put faults before it,
// and the configuration to reach it but for the endpoint.
func Handler(t testing.TB) (store.Config, http.Handler) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(context.Background(), bucket); err != nil {
		t.Fatal(err)
	}
	faker := gofakes3.New(lister{backend}, gofakes3.WithV4Auth(map[string]string{"tester": "testing-secret"}))
	return store.Config{
		Kind: store.KindS3, Bucket: bucket, Prefix: "users/tester",
		Credentials: Credentials(t, "tester", "testing-secret"),
	}, faker.Server()
}

// lister reads an empty delimiter, which minio-go always sends, as none;
// otherwise recursive listings have one entry (rclone/gofakes3 v0.0.12).
type lister struct{ *s3mem.Backend }

func (l lister) ListBucket(ctx context.Context, name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return l.Backend.ListBucket(ctx, name, prefix, page)
}

// Server opens a store under a fresh prefix of the server named by
// TP_E2E_S3_ENDPOINT, TP_E2E_S3_BUCKET and TP_E2E_S3_CREDENTIALS, or skips.
func Server(t testing.TB) store.Store {
	t.Helper()
	endpoint := os.Getenv("TP_E2E_S3_ENDPOINT")
	if endpoint == "" {
		t.Skip("TP_E2E_S3_ENDPOINT is not set")
	}
	st := open(t, store.Config{
		Kind: store.KindS3, Endpoint: endpoint, Bucket: os.Getenv("TP_E2E_S3_BUCKET"),
		Credentials: os.Getenv("TP_E2E_S3_CREDENTIALS"), Prefix: "test-" + rand.Text(),
	})
	t.Cleanup(func() {
		objects, _ := st.List(context.Background(), "")
		for _, o := range objects {
			st.Delete(context.Background(), o.Name)
		}
	})
	return st
}

// Credentials writes a credentials file of mode 0600 and returns its path.
func Credentials(t testing.TB, id, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func open(t testing.TB, c store.Config) store.Store {
	t.Helper()
	st, err := store.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
