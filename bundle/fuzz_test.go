package bundle

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
)

func FuzzManifest(f *testing.F) {
	man := digest(f, selectAll(f, lab{"a.py": "one", "\xff.py": "x", "run.sh": "#!x", "l": "-> a.py"}.repo(f)), "")
	data, err := json.Marshal(man)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"codec":"zstd","digest":"","files":[{"path":"a","mode":"0644","size":99999999999}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Manifest
		if m.UnmarshalJSON(data) != nil {
			return
		}
		again, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		var back Manifest
		if err := back.UnmarshalJSON(again); err != nil || back.Digest != m.Digest {
			t.Fatalf("%v\n%s", err, again)
		}
		for _, file := range m.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains("/"+file.Path+"/", "/../") {
				t.Fatalf("%q", file.Path)
			}
		}
	})
}

func FuzzCache(f *testing.F) {
	entries := []cached{{path: "a", stat: stat{size: 1, mtime: 2, ctime: 3, inode: 4, mode: 5}}, {path: "b", lfs: true}}
	f.Add(encodeStats(entries))
	f.Add((&known{objects: map[Sum]Stored{{1}: {Key: Sum{1}, Size: 5}}}).encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if entries := decodeStats(data); entries != nil {
			if string(encodeStats(entries)) != string(data) {
				t.Fatal("a cache reads as another")
			}
		}
		decodeKnown(data)
		unframe(data, statMagic)
		if payload, ok := unframe(frame(data, statMagic), statMagic); !ok || string(payload) != string(data) {
			t.Fatal("the frame loses its payload")
		}
	})
}

func FuzzExclude(f *testing.F) {
	f.Add("outputs/", "a/outputs/b")
	f.Add("/datasets/*/raw/", "datasets/x/raw/y")
	f.Add("a/**/b", "a/x/y/b")
	f.Add("[a-z]*?", ".env.local")
	f.Fuzz(func(t *testing.T, pattern, p string) {
		credentialName(p)
		x, err := newExcluder([]string{pattern})
		if err != nil || !localPath(p) || len(p) > 300 || strings.Count(pattern, "**") > 4 {
			return
		}
		v := x.file(p)
		if v.at != "" && !within(strings.TrimSuffix(v.at, "/"), p) {
			t.Fatalf("%q is excluded with %q", p, v.at)
		}
		if again := x.file(p); again != v {
			t.Fatalf("%v, then %v", v, again)
		}
		if v.at == "" && !x.patterns[len(x.patterns)-1].anchored && path.Base(p) == pattern {
			t.Fatalf("%q does not exclude %q", pattern, p)
		}
	})
}

func FuzzScanSecrets(f *testing.F) {
	f.Add([]byte("x = 1\n" + fake("gh", "p_") + strings.Repeat("aB1", 12) + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, line := range scanSecrets(data) {
			if !strings.Contains(line, ": ") {
				t.Fatal(line)
			}
		}
	})
}
