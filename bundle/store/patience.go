package store

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
)

// readPatience is how long a question may go without the first byte of its
// answer; writes have minio-go's minute, for a server may sync 32 MiB first.
const readPatience = 10 * time.Second

// patience is minio-go's transport with an end: a server that takes requests
// and answers none would otherwise be asked six times for a minute each. After
// one question without an answer the retries fail at once.
type patience struct {
	reads, writes *http.Transport
	silent        atomic.Bool
}

func newPatience(secure bool) (*patience, error) {
	writes, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	p := &patience{reads: writes.Clone(), writes: writes}
	p.reads.ResponseHeaderTimeout = readPatience
	p.reads.DialContext = (&net.Dialer{Timeout: readPatience}).DialContext
	return p, nil
}

// errSilent stands for the retries of a question that had no answer.
var errSilent net.Error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "no answer within " + readPatience.String() }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return p.writes.RoundTrip(r)
	}
	if p.silent.Load() {
		return nil, errSilent
	}
	resp, err := p.reads.RoundTrip(r)
	var network net.Error
	if errors.As(err, &network) && network.Timeout() && r.Context().Err() == nil {
		p.silent.Store(true)
		return nil, errSilent
	}
	return resp, err
}
