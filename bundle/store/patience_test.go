package store

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A server that takes questions and answers none is asked once.
func TestSilentServerIsAskedOnce(t *testing.T) {
	silent, err := newPatience(false)
	if err != nil {
		t.Fatal(err)
	}
	silent.reads.ResponseHeaderTimeout = 20 * time.Millisecond
	gone := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1); <-gone }))
	defer server.Close()
	defer close(gone)
	for range 3 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := silent.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, errSilent) {
			t.Errorf("error %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
