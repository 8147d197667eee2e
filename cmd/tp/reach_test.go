package main

import (
	"slices"
	"testing"

	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm/connect"
)

// The site file, which may not import connect, knows the same ways.
func TestTransportsAreWays(t *testing.T) {
	var names []string
	for _, w := range connect.Ways {
		names = append(names, string(w))
	}
	if !slices.Equal(names, site.Transports) {
		t.Errorf("%q and %q", names, site.Transports)
	}
}
