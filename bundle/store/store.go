// Package store keeps immutable objects: small files (a segment of a bundle, at
// most [MaxObject] bytes) under names that say what they contain. A store is a
// directory that login and compute nodes share, or a prefix in an S3 bucket.
//
//	st, err := store.Open(store.Config{Kind: "dir", Path: "/scratch/ann/tp/objects"})
//	err = st.Put(ctx, name, body)
//	access, err := st.Fetch([]string{name}, 0) // what a node needs to read it
//
// Names are content: who finds a name already taken has nothing to write. A
// store therefore belongs to one user (a directory of mode 0700, a prefix per
// user): a name says what should be inside, not who wrote it.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxObject is the largest object in bytes. Segments are cut at 16 MiB; the
// rest is room for frames that do not compress and for small documents.
const MaxObject = 64 << 20

// Store is a place for objects. Every method may be called from several
// goroutines.
type Store interface {
	// Put stores an object unless one of this name exists: then it leaves that
	// one alone and returns nil. An object is visible complete or not at all,
	// and durable when Put returns.
	Put(ctx context.Context, name string, body []byte) error
	// Get opens an object; [ErrNotFound] when there is none.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Has says for each name whether it is there.
	Has(ctx context.Context, names []string) ([]bool, error)
	// List finds the objects whose names start with prefix, in no order.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object; it is no error when there is none.
	Delete(ctx context.Context, name string) error
	// Fetch makes what a node needs to read the named objects for ttl. Stores
	// whose access does not expire ignore ttl.
	Fetch(ctx context.Context, names []string, ttl time.Duration) (Access, error)
	// Identity tells stores apart; it is stable and contains no secret.
	Identity() string
	// String is the store in the words of a preview.
	String() string
}

// Object is an entry of a listing.
type Object struct {
	Name    string
	Size    int64
	ModTime time.Time
}

// Kind says how nodes reach a store.
type Kind string

// The kinds of store.
const (
	KindDir Kind = "dir"
	KindS3  Kind = "s3"
)

// Access is the way of a node to a set of objects.
type Access struct {
	Kind Kind
	// Dir is the root of a directory store, where [Path] finds an object.
	Dir string
	// CurlConfig is the text of a curl -K file that downloads every object to
	// a file of its name. Its URLs are credentials: keep it in a file of mode
	// 0600, never in a script, an argument or a log.
	CurlConfig []byte
	// Expires is when CurlConfig stops working; zero is never.
	Expires time.Time
}

// Errors a store wraps; the text around them says which store and object.
var (
	ErrNotFound    = errors.New("no such object")
	ErrNoBucket    = errors.New("no such bucket")
	ErrDenied      = errors.New("access denied")
	ErrUnreachable = errors.New("not reachable")
)

// Config is a store as the site file describes it.
type Config struct {
	Kind Kind

	Path string // dir: an absolute path

	Endpoint    string // s3: URL; empty is Amazon
	Bucket      string
	Region      string // empty is us-east-1
	Prefix      string // in front of every name; must be the user's own
	Credentials string // ini file of mode 0600, with "#profile" if not default
	PathStyle   *bool  // nil: path style for every endpoint but Amazon's
}

// Open makes the store. It touches neither disk nor network, except that it
// reads the credentials of an S3 store.
func Open(c Config) (Store, error) {
	switch c.Kind {
	case KindDir:
		return NewDir(c.Path)
	case KindS3:
		return NewS3(c)
	}
	return nil, fmt.Errorf("object store: kind %q is neither dir nor s3", c.Kind)
}

// checkName holds names to what is safe as a file name, a URL path and a word
// of bash at once, and to what [Path] can spread over directories.
func checkName(name string) error {
	if len(name) < 3 || len(name) > 200 || name[0] == '.' {
		return fmt.Errorf("object name %q: want 3 to 200 characters, no leading dot", name)
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c == '.', c == '-', c == '_':
		default:
			return fmt.Errorf("object name %q: want letters, digits, dot, dash and underscore", name)
		}
	}
	return nil
}
