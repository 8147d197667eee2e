package bundle

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tuneplane/tp/bundle/store"
)

// Renew makes new download links for a run that still waits: sums and links are
// the contents of its bundle.sha256 and bundle.curl. Links that live longer
// than half of ttl from now are good enough; then, and for a store without
// links, nothing is returned.
func Renew(ctx context.Context, sums, links []byte, st store.Store, ttl time.Duration, now time.Time) ([]byte, error) {
	if len(links) == 0 {
		return nil, nil
	}
	var expires int64
	if _, err := fmt.Fscanf(bytes.NewReader(links), "# expires %d\n", &expires); err == nil && time.Unix(expires, 0).Sub(now) > ttl/2 {
		return nil, nil
	}
	var stored []Stored
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		_, name, ok := bytes.Cut(lines.Bytes(), []byte("  "))
		s, known := ParseStored(store.Object{Name: string(name)})
		if !ok || !known {
			return nil, fmt.Errorf("bundle.sha256: %.80q is no line of digest and object name", lines.Text())
		}
		stored = append(stored, s)
	}
	names := make([]string, len(stored))
	for i := range stored {
		names[i] = stored[i].Name()
	}
	access, err := st.Fetch(ctx, names, ttl)
	if err != nil {
		return nil, storeFault(err)
	}
	return fetchFiles(access, stored)["bundle.curl"], nil
}
