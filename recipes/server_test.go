package recipes

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// standIn is an HTTP server that is not ready until it is told so.
type standIn struct {
	port int
	up   atomic.Bool
}

func (s *standIn) ready() { s.up.Store(true) }

func server(t *testing.T) *standIn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{port: l.Addr().(*net.TCPAddr).Port}
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" || !s.up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	go h.Serve(l)
	t.Cleanup(func() { h.Close() })
	return s
}
