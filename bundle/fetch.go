package bundle

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/tuneplane/tp/bundle/store"
	"github.com/tuneplane/tp/internal/shell"
)

// fetchScript is what the node runs; it needs bash, coreutils, sed, xargs, tar,
// zstd and, for S3, curl.
//
//go:embed fetch.sh
var fetchScript string

// Fetch is what a node needs to get a bundle.
type Fetch struct {
	// Script is a fragment of bash that unpacks into $TP_RUN_DIR/code. It
	// works under set -euo pipefail, does nothing when this bundle is there
	// already, and ends the script with a message and status when it fails. It
	// contains no secret.
	Script string
	// Files belong into $TP_RUN_DIR, with mode 0600, before the job is
	// submitted: bundle.sha256 and for S3 bundle.curl, whose links are
	// credentials.
	Files map[string][]byte
	// Expires is when the job must have started; zero is never.
	Expires time.Time
}

// NewFetch asks the store for access that lives for ttl and writes the script.
func NewFetch(ctx context.Context, man *Manifest, st store.Store, stored []Stored, ttl time.Duration) (Fetch, error) {
	names := make([]string, len(stored))
	for i := range stored {
		names[i] = stored[i].Name()
	}
	access, err := st.Fetch(ctx, names, ttl)
	if err != nil {
		return Fetch{}, storeFault(err)
	}
	return Fetch{Script: FetchScript(man.Digest, access), Files: fetchFiles(access, stored), Expires: access.Expires}, nil
}

// FetchScript is the fragment alone. It depends on the kind of access and the
// directory only, which [store.Store.Fetch] tells for no names too: a preview
// can show the very script that will run before anything is uploaded.
func FetchScript(digest Sum, access store.Access) string {
	return fmt.Sprintf("tp_bundle_digest=%s\ntp_bundle_kind=%s\ntp_bundle_dir=%s\n",
		digest, shell.Quote(string(access.Kind)), shell.Quote(access.Dir)) + fetchScript
}

func fetchFiles(access store.Access, stored []Stored) map[string][]byte {
	var sums bytes.Buffer
	for _, s := range stored {
		fmt.Fprintf(&sums, "%s  %s\n", s.SHA256, s.Name())
	}
	files := map[string][]byte{"bundle.sha256": sums.Bytes()}
	if access.Kind == store.KindS3 {
		// a comment for curl; fetch.sh reads the time when a download fails
		files["bundle.curl"] = fmt.Appendf(nil, "# expires %d\n%s", access.Expires.Unix(), access.CurlConfig)
	}
	return files
}
