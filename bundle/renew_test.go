package bundle

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/bundle/store"
)

// linkStore signs nothing; it shows which objects were asked for.
type linkStore struct{ store.Store }

func (linkStore) Fetch(_ context.Context, names []string, ttl time.Duration) (store.Access, error) {
	return store.Access{Kind: store.KindS3, CurlConfig: []byte(strings.Join(names, "\n")), Expires: time.Unix(2000, 0).Add(ttl)}, nil
}

func TestRenew(t *testing.T) {
	stored := []Stored{{Key: Sum{3}, SHA256: Sum{1}}, {Key: Sum{4}, SHA256: Sum{2}}}
	files := fetchFiles(store.Access{Kind: store.KindS3, CurlConfig: []byte("old"), Expires: time.Unix(2000, 0)}, stored)
	sums, links := files["bundle.sha256"], files["bundle.curl"]
	ttl := time.Hour
	for _, c := range []struct {
		name  string
		links []byte
		now   int64
		want  bool
	}{
		{"fresh", links, 2000 - 1801, false},
		{"half gone", links, 2000 - 1799, true},
		{"expired", links, 9000, true},
		{"unreadable", []byte("url = x"), 0, true},
		{"directory store", nil, 9000, false},
	} {
		got, err := Renew(t.Context(), sums, c.links, linkStore{}, ttl, time.Unix(c.now, 0))
		if err != nil || (got != nil) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
		if want := fmt.Sprintf("# expires %d\n%s\n%s", 2000+3600, stored[0].Name(), stored[1].Name()); c.want && !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
	if _, err := Renew(t.Context(), []byte("nonsense\n"), links, linkStore{}, ttl, time.Unix(9000, 0)); err == nil {
		t.Error("a broken bundle.sha256 must be an error")
	}
}
