package bundle

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Mode = 0o644
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("evil"))
		}
	}
	w.Close()
	return b.Bytes()
}

func TestExtractStaysInside(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	file := func(name string) tar.Header { return tar.Header{Name: name} }
	for name, headers := range map[string][]tar.Header{
		"dots":              {file("../evil")},
		"dots inside":       {file("a/../../evil")},
		"absolute":          {file("/tmp/tp-evil")},
		"through a link":    {link("d", "e"), file("d/evil")},
		"over a link":       {link("d", "e"), file("d")},
		"link over a file":  {file("d"), link("d", "e")},
		"twice":             {file("a"), file("a")},
		"link up":           {link("l", "..")},
		"link absolute":     {link("l", "/etc/passwd")},
		"link chain":        {link("d/e/x", "../.."), link("d/e/y", "x/../..")},
		"link chain, later": {link("d/e/y", "x/../.."), link("d/e/x", "../.."), file("d/e/f")},
		"hard link":         {file("a"), {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}},
		"device":            {{Name: "null", Typeflag: tar.TypeChar}},
		"pipe":              {{Name: "p", Typeflag: tar.TypeFifo}},
		"not canonical":     {file("./a")},
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		if err := Extract(bytes.NewReader(archive(t, headers...)), dir); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("%s: %v", name, entries)
		}
	}
	good := archive(t, tar.Header{Name: "d/", Typeflag: tar.TypeDir}, file("d/a"), link("l", "d/a"), link("d/up", ".."))
	if err := Extract(bytes.NewReader(good), filepath.Join(t.TempDir(), "out")); err != nil {
		t.Error(err)
	}
	for _, n := range []int{0, 512, 700, len(good) - 1024} {
		if err := Extract(bytes.NewReader(good[:n]), filepath.Join(t.TempDir(), "out")); err == nil {
			t.Errorf("an archive cut at %d is accepted", n)
		}
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(archive(f, tar.Header{Name: "a"}, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a"}))
	f.Add(archive(f, tar.Header{Name: "../a"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		_ = Extract(bytes.NewReader(data), filepath.Join(parent, "out"))
		if entries, _ := os.ReadDir(parent); len(entries) > 1 {
			t.Errorf("written outside: %v", entries)
		}
	})
}
