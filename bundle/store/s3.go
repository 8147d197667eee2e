package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// maxPresign is the longest life SigV4 gives a presigned URL.
const maxPresign = 7 * 24 * time.Hour

// maxRetries covers a fail-over of some seconds: minio-go waits at most one
// second between tries, and an endpoint that is down should be said soon.
const maxRetries = 5

// S3 is a store under a prefix of a bucket.
type S3 struct {
	client   *minio.Client
	endpoint string // host[:port]
	bucket   string
	prefix   string // "" or ends in a slash

	// noCondition is set once the server turned out not to know If-None-Match.
	// Names are content, so an overwrite writes what is there already.
	noCondition atomic.Bool
}

// NewS3 makes a store from the S3 part of a configuration.
func NewS3(c Config) (*S3, error) {
	if c.Endpoint == "" {
		c.Endpoint = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, fmt.Errorf("object store: endpoint %q: want https://host or http://host:port", c.Endpoint)
	}
	if c.Bucket == "" {
		return nil, errors.New("object store: no bucket is configured")
	}
	key, err := readCredentials(c.Credentials)
	if err != nil {
		return nil, err
	}
	region := c.Region
	if region == "" {
		region = "us-east-1" // fixed, which saves a round trip to ask
	}
	lookup := minio.BucketLookupPath
	if c.PathStyle == nil && isAmazon(u.Hostname()) || c.PathStyle != nil && !*c.PathStyle {
		lookup = minio.BucketLookupDNS
	}
	transport, err := newPatience(u.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", c.Endpoint, err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Transport:    transport,
		Creds:        credentials.NewStaticV4(key.id, key.secret, key.token),
		Secure:       u.Scheme == "https",
		Region:       region,
		BucketLookup: lookup,
		MaxRetries:   maxRetries,
		// TrailingHeaders stays off: versitygw answers BadDigest and
		// rclone's server 400. Integrity comes from our own digests.
	})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", c.Endpoint, err)
	}
	prefix := strings.Trim(c.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &S3{client: client, endpoint: u.Host, bucket: c.Bucket, prefix: prefix}, nil
}

// isAmazon tells AWS, where virtual-host style is the rule, from custom
// endpoints, which rarely have the DNS entries for it.
func isAmazon(host string) bool {
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn")
}

func (s *S3) Identity() string { return "s3:" + s.endpoint + "/" + s.bucket + "/" + s.prefix }
func (s *S3) String() string {
	return "s3://" + s.bucket + "/" + s.prefix + " at " + s.endpoint
}

// Put is one request, so an interrupted upload leaves neither an object nor
// parts. If-None-Match would be dropped silently by a multipart upload.
func (s *S3) Put(ctx context.Context, name string, body []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(body) > MaxObject {
		return fmt.Errorf("object %s has %d bytes, more than %d", name, len(body), MaxObject)
	}
	conditional := !s.noCondition.Load()
	err := s.put(ctx, name, body, conditional)
	if conditional && minio.ToErrorResponse(err).Code == minio.NotImplemented {
		s.noCondition.Store(true)
		err = s.put(ctx, name, body, false)
	}
	if minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed {
		return nil // it is there
	}
	return s.errorf("put "+name, err)
}

func (s *S3) put(ctx context.Context, name string, body []byte, conditional bool) error {
	opts := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
	if conditional {
		opts.SetMatchETagExcept("*")
	}
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(body), int64(len(body)), opts)
	return err
}

func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	core := minio.Core{Client: s.client}
	body, _, _, err := core.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.errorf("get "+name, err)
	}
	return body, nil
}

func (s *S3) Has(ctx context.Context, names []string) ([]bool, error) {
	return hasEach(ctx, names, func(ctx context.Context, name string) (bool, error) {
		_, err := s.client.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
		if err == nil {
			return true, nil
		}
		if err := s.errorf("stat "+name, err); !errors.Is(err, ErrNotFound) {
			return false, err
		}
		return false, nil
	})
}

func (s *S3) List(ctx context.Context, prefix string) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the lister when an entry carries an error
	var objects []Object
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, s.errorf("list", o.Err)
		}
		name := strings.TrimPrefix(o.Key, s.prefix)
		if checkName(name) == nil {
			objects = append(objects, Object{Name: name, Size: o.Size, ModTime: o.LastModified})
		}
	}
	return objects, ctx.Err()
}

func (s *S3) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := s.errorf("delete "+name, s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Fetch presigns one URL per object: no request, 35 µs each. Links made with
// temporary credentials end with those, which nothing here can know.
func (s *S3) Fetch(ctx context.Context, names []string, ttl time.Duration) (Access, error) {
	if ttl < time.Minute || ttl > maxPresign {
		return Access{}, fmt.Errorf("object store %s: download links can live from 1 minute to 7 days, not %v", s, ttl)
	}
	expires := time.Now().Add(ttl)
	var config bytes.Buffer
	config.WriteString("globoff\n")
	for _, name := range names {
		if err := checkName(name); err != nil {
			return Access{}, err
		}
		u, err := s.client.PresignedGetObject(ctx, s.bucket, s.prefix+name, ttl, nil)
		if err != nil {
			return Access{}, s.errorf("presign", err)
		}
		fmt.Fprintf(&config, "url = %s\noutput = %s\n", curlQuote(u.String()), curlQuote(name))
	}
	return Access{Kind: KindS3, CurlConfig: config.Bytes(), Expires: expires}, nil
}

// curlQuote is a quoted word of a curl configuration file.
func curlQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// deniedCodes are S3's words for wrong or stale credentials and missing rights.
var deniedCodes = map[string]bool{
	"AccessDenied": true, "InvalidAccessKeyId": true, "SignatureDoesNotMatch": true, "AuthorizationHeaderMalformed": true,
	"InvalidToken": true, "ExpiredToken": true, "RequestTimeTooSkewed": true,
	"XAdminUserNotFound": true, // versitygw, of an unknown key id
}

// errorf turns what S3 says into one of our errors, in words that name what to
// look at. It never repeats a URL, which could be signed.
func (s *S3) errorf(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("object store %s: %s: %w", s, what, err)
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("object store %s: %w: %s", s, ErrNoBucket, s.bucket)
	case deniedCodes[answer.Code]: // before the status, which versitygw makes 404
		return fmt.Errorf("object store %s: %s: %w (%s)", s, what, ErrDenied, answer.Code)
	case answer.Code == minio.NoSuchKey || answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("object store %s: %s: %w", s, what, ErrNotFound)
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("object store %s: %s: %w (%s)", s, what, ErrDenied, answer.Code)
	case answer.StatusCode >= 500:
		return fmt.Errorf("object store %s: %s: %w: the server answers %d %s", s, what, ErrUnreachable, answer.StatusCode, answer.Code)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL
	}
	var network net.Error
	var operation *net.OpError
	if errors.As(err, &network) || errors.As(err, &operation) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("object store %s: %s: %w: %w", s, what, ErrUnreachable, err)
	}
	return fmt.Errorf("object store %s: %s: %w", s, what, err)
}
