package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/internal/spec"
)

// large is a ledger of n runs of which every tenth is active, made without
// syncing each file.
func large(tb testing.TB, n int) Options {
	o := Options{Roots: []string{tb.TempDir()}, User: "ann", StateDir: tb.TempDir(), Host: "login1"}
	for i := range n {
		h := Header{ID: ID(fmt.Sprintf("%s%012x", IDPrefix, i)), User: "ann", Experiment: fmt.Sprint("sweep", i%20), Recipe: "custom/custom",
			PlanDigest: strings.Repeat("0", 64), BundleDigest: strings.Repeat("1", 64), Created: time.Unix(1750000000-int64(i), 0).UTC(),
			Pools: []spec.Pool{{Name: "train", Roles: []string{"train"}, Series: "h200", GRES: "gpu:h200", Nodes: 1, GPUsPerNode: 8, Partition: "h200"}}}
		data, err := json.Marshal(h)
		if err != nil {
			tb.Fatal(err)
		}
		state := Succeeded
		if i%10 == 0 {
			state = Running
		}
		var text bytes.Buffer
		for seq, e := range []Event{{Type: Created, Data: data}, {Type: Intent, Attempt: 1, JobName: h.JobName()}, {Type: Submitted, Attempt: 1, JobID: 7}, {Type: Changed, Attempt: 1, State: state}} {
			e.Time, e.Seq, e.Host = h.Created, uint64(seq+1), "login1"
			line, err := json.Marshal(e)
			if err != nil {
				tb.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
		dir := Dir(o.Roots[0], "ann", h.Experiment, h.ID)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, mainEvents), text.Bytes(), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return o
}

// BenchmarkList opens the ledger anew each time, as every command does.
func BenchmarkList(b *testing.B) {
	o := large(b, 20000)
	list := func(b *testing.B, f Filter, want int) {
		l, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		runs, err := l.List(f)
		if err != nil || len(runs) != want {
			b.Fatal(len(runs), err)
		}
		l.Close()
	}
	list(b, Filter{}, 20000) // the index is there from now on
	for _, c := range []struct {
		name string
		f    Filter
		want int
	}{{"active", Filter{Active: true}, 2000}, {"newest", Filter{Limit: 15}, 15}, {"all", Filter{}, 20000}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list(b, c.f, c.want)
			}
		})
	}
}
