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
	"unicode"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

const (
	// maxAnswer bounds a body. 10,000 nodes are about 30 MB on 26.05.
	maxAnswer = 128 << 20
	// maxShort bounds an error and the answer to a write, which have a few kB.
	maxShort = 1 << 20
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

	children *children     // of a private slurmrestd, else nil
	first    time.Duration // to the first byte of a private slurmrestd's answer to a read
}

// answer is a complete answer.
type answer struct {
	status int
	body   []byte
	json   bool
	// location is where a redirect points.
	location string
	env      wire.Envelope // decoded for failures and small bodies only
}

func newLink(o Options) (*link, error) {
	if o.Binary != "" {
		return childLink(o)
	}
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
	w.reads, w.writes = httpClient(o, dial, o.Timeout), httpClient(o, dial, o.SubmitTimeout)
	w.writes.Transport.(*http.Transport).DisableKeepAlives = true
	return w, nil
}

// childLink speaks to a private slurmrestd. Reads and writes share one process:
// it answers one request after the other anyway, and a second one takes longer
// to start than to wait for the first.
func childLink(o Options) (*link, error) {
	if o.URL != "" {
		return nil, errors.New("slurmrestd: an address and a program exclude each other")
	}
	k := newChildren(o.Binary)
	w := &link{base: &url.URL{Scheme: "http", Host: "localhost"}, via: "a private " + o.Binary, children: k}
	w.reads = httpClient(o, k.dial, o.Timeout)
	shared := w.reads.Transport.(*http.Transport)
	shared.MaxConnsPerHost, shared.ResponseHeaderTimeout = 1, 0 // send counts itself: a submission may take longer
	w.writes, w.first = w.reads, o.Timeout
	return w, nil
}

// httpClient waits so long for the first byte of an answer.
func httpClient(o Options, dial func(context.Context, string, string) (net.Conn, error), first time.Duration) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:           dial,
			TLSClientConfig:       o.TLS,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: first,
			DisableCompression:    true, // slurmrestd refuses Content-Encoding and compresses nothing
			MaxIdleConnsPerHost:   4,
			IdleConnTimeout:       30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fail := func(err error) (answer, error) {
		return answer{}, &slurm.Unreachable{Op: op, Via: w.via, NotSent: !connected, Err: shorten(ctx, err)}
	}
	late := time.AfterFunc(time.Hour, func() { cancel(fmt.Errorf("no answer within %s", w.first)) })
	defer late.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected = true
			if w.first > 0 && method == http.MethodGet {
				late.Reset(w.first)
			}
		},
		GotFirstResponseByte: func() { late.Stop() },
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
	a := answer{status: resp.StatusCode, location: resp.Header.Get("Location")}
	limit := int64(maxAnswer)
	if a.status >= 300 || method != http.MethodGet {
		limit = maxShort
	}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1)); err != nil {
		return fail(fmt.Errorf("answer cut off: %w", err))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	// slurmrestd 22.05 names no type for some refusals: look at the text.
	a.json = kind == "application/json" || kind == "" && bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("{"))
	if int64(len(a.body)) > limit && (a.json || a.status < 300) {
		return fail(fmt.Errorf("status %d with an answer of more than %d MiB", a.status, limit>>20))
	}
	if a.json && (a.status >= 400 || len(a.body) < 32<<10) {
		if err := wire.Decode(a.body, &a.env); err != nil {
			return fail(fmt.Errorf("answer is not whole JSON: %w", err))
		}
	}
	return a, nil
}

// shorten drops the method and URL that net/http puts around every error, and
// prefers what ended the request, or the private slurmrestd, to how that was
// noticed.
func shorten(ctx context.Context, err error) error {
	var dead *childError
	if errors.As(err, &dead) {
		return dead
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return quoted{err}
}

// quoted is an error of net/http, which may repeat a server's words whole.
type quoted struct{ error }

func (q quoted) Error() string { return foreign(q.error.Error()) }
func (q quoted) Unwrap() error { return q.error }

// text is a plain answer in one line.
func (a answer) text() string {
	if a.status >= 300 && a.status < 400 {
		return fmt.Sprintf("status %d sends tp on to %q, where it does not go", a.status, foreign(a.location))
	}
	if s := foreign(string(a.body[:min(len(a.body), 16<<10)])); s != "" {
		return s
	}
	return http.StatusText(a.status)
}

// maxForeign bounds what a server's words take in an error, in characters.
const maxForeign = 300

// foreign makes a server's words fit for an error: one line of printable
// characters.
func foreign(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // blanks other than " ", control and format characters, half runes
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	s = strings.Join(strings.Fields(s), " ")
	count := 0
	for at := range s {
		if count++; count > maxForeign {
			return strings.TrimRight(s[:at], " ") + " …"
		}
	}
	return s
}
