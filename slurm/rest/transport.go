package rest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

const (
	// maxAnswer bounds a body. 10,000 nodes are about 30 MB on 26.05.
	maxAnswer = 256 << 20
	// readTimeout is how long a read may take to its first byte. A lab
	// controller needs 2 s for 1,500 jobs; a ping takes 2 ms.
	readTimeout = 10 * time.Second
	// submitTimeout is long because slurmrestd waits for slurmctld, and giving
	// up early leaves the job in doubt.
	submitTimeout = 60 * time.Second
	dialTimeout   = 5 * time.Second
)

// link moves single requests. It follows no redirect and uses no proxy: a
// token goes to the configured host or nowhere.
type link struct {
	base   *url.URL
	via    string // for messages: unix:///path, http://host:port
	reads  *http.Client
	writes *http.Client // a new connection each: a stale one would leave a submission in doubt
}

// answer is a complete answer.
type answer struct {
	status int
	body   []byte
	json   bool
	env    wire.Envelope // decoded for failures and small bodies only
}

func newLink(o Options) (*link, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("slurmrestd address: %w", err)
	}
	if u.User != nil {
		return nil, errors.New("slurmrestd address: a password in the address is not supported")
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	dial := dialer.DialContext
	w := &link{base: u, via: u.Redacted()}
	switch u.Scheme {
	case "unix":
		socket := u.Path
		if socket == "" || u.Host != "" {
			return nil, fmt.Errorf("slurmrestd address %q: want unix:///absolute/path", o.URL)
		}
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
		w.base = &url.URL{Scheme: "http", Host: "localhost"}
	case "http", "https":
		if u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("slurmrestd address %q: want %s://host:port", o.URL, u.Scheme)
		}
	default:
		return nil, fmt.Errorf("slurmrestd address %q: want unix://, http:// or https://", o.URL)
	}
	client := func(first time.Duration, keep bool) *http.Client {
		return &http.Client{
			Transport: &http.Transport{
				DialContext:           dial,
				TLSClientConfig:       o.TLS,
				TLSHandshakeTimeout:   dialTimeout,
				ResponseHeaderTimeout: first,
				DisableKeepAlives:     !keep,
				DisableCompression:    true, // slurmrestd refuses Content-Encoding and compresses nothing
				MaxIdleConnsPerHost:   4,
				IdleConnTimeout:       30 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	w.reads, w.writes = client(o.Timeout, true), client(o.SubmitTimeout, false)
	return w, nil
}

// tlsConfig clones so that a caller's later change does no harm.
func tlsConfig(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	return c.Clone()
}

// send makes one request and reads the whole answer. Every error is an
// *slurm.Unreachable.
func (w *link) send(ctx context.Context, client *http.Client, op, method, path string, body []byte, header http.Header) (answer, error) {
	connected := false
	fail := func(err error) (answer, error) {
		return answer{}, &slurm.Unreachable{Op: op, Via: w.via, NotSent: !connected, Err: shorten(err)}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	target := strings.TrimRight(w.base.String(), "/") + path
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body) // known length: slurmrestd answers 406 to chunks
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return fail(err)
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return fail(fmt.Errorf("answer cut off: %w", err))
	}
	if len(a.body) > maxAnswer {
		return fail(fmt.Errorf("answer of more than %d MiB", maxAnswer>>20))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	// slurmrestd 22.05 names no type for some refusals: look at the text.
	a.json = kind == "application/json" || kind == "" && bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("{"))
	if a.json && (a.status >= 400 || len(a.body) < 32<<10) {
		if err := wire.Decode(a.body, &a.env); err != nil {
			return fail(fmt.Errorf("answer is not whole JSON: %w", err))
		}
	}
	return a, nil
}

// shorten drops the method and URL that net/http puts around every error.
func shorten(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// text is a plain answer in one line.
func (a answer) text() string {
	s := strings.Join(strings.Fields(string(a.body[:min(len(a.body), 300)])), " ")
	if s == "" {
		return http.StatusText(a.status)
	}
	return s
}
