package spec

import (
	"strings"
	"testing"
)

const hex64 = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseImage(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"python":                             "docker.io/library/python:latest",
		"python:3.12":                        "docker.io/library/python:3.12",
		"docker://python:3.12":               "docker.io/library/python:3.12",
		"index.docker.io/library/python":     "docker.io/library/python:latest",
		"verlai/verl@" + hex64:               "docker.io/verlai/verl@" + hex64,
		"verlai/verl:0.9@" + hex64:           "docker.io/verlai/verl:0.9@" + hex64,
		"nvcr.io/nvidia/pytorch:24.05-py3":   "nvcr.io/nvidia/pytorch:24.05-py3",
		"nvcr.io#nvidia/pytorch:24.05-py3":   "nvcr.io/nvidia/pytorch:24.05-py3",
		"localhost/a/b":                      "localhost/a/b:latest",
		"registry.example.org:5000/a/b__c:1": "registry.example.org:5000/a/b__c:1",
		"oras://ghcr.io/a/b:1":               "oras://ghcr.io/a/b:1",
		"/images/verl-0.9.0.sqsh":            "/images/verl-0.9.0.sqsh",
		"/images/verl.sif":                   "/images/verl.sif",
		"/images/verl_0123":                  "/images/verl_0123",
	} {
		i, err := ParseImage(text)
		if err != nil || i.String() != want {
			t.Errorf("%q is %q (%v), wanted %q", text, i, err, want)
		}
		if again, err := ParseImage(want); err != nil || again != i {
			t.Errorf("%q is %+v (%v) when read again, wanted %+v", want, again, err, i)
		}
	}
	for text, kind := range map[string]ImageKind{"a": RegistryImage, "oras://a/b": OrasImage, "/a.sqsh": SquashFile, "/a.sif": SIFFile, "/a": BundleDir} {
		if i, _ := ParseImage(text); i.Kind != kind {
			t.Errorf("%q is a %s, wanted %s", text, i.Kind, kind)
		}
	}
}

func TestParseImageRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"alice@nvcr.io#nvidia/pytorch":      "a user of a registry is named in its credentials",
		"alice:secret@nvcr.io/nvidia/torch": "a user of a registry is named in its credentials",
		"a@sha256:12":                       "64 hex digits",
		"a@sha512:12":                       "no sha256",
		"A/b":                               "lower-case",
		"a/../b":                            "no name of a repository",
		"a//b":                              "no name of a repository",
		"a:":                                "no tag",
		"a:b c":                             "no tag",
		"library://a/b":                     "library:// is not known",
		"http://a/b":                        "http:// is not known",
		"./a.sif":                           "absolute path",
		"~/a.sif":                           "absolute path",
		"/images/../etc/a.sif":              "write the path as /etc/a.sif",
		"/images/a b.sif":                   "letters, digits",
		"/images/a,b.sqsh":                  "letters, digits",
		"/":                                 "letters, digits",
		"a$(id)":                            "no name of a repository",
		"a\n":                               "no name of a repository",
		"-v/a":                              "no name of a repository",
		"host:x/a":                          "no registry",
		"nvcr.io#":                          "no name of a repository",
	} {
		if i, err := ParseImage(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v (%v), wanted an error with %q", text, i, err, want)
		}
	}
}

func TestImageMatches(t *testing.T) {
	for _, x := range []struct {
		image, pattern string
		want           bool
	}{
		{"registry.example.org/a/b:1", "registry.example.org/*", true},
		{"registry.example.org.evil.org/a", "registry.example.org/*", false},
		{"registryxexample.org/a", "registry.example.org/*", false},
		{"python:3.12", "docker.io/library/python", true},
		{"python:3.12", "docker.io/library/python:3.*", true},
		{"python:2.7", "docker.io/library/python:3.*", false},
		{"python:3.12@" + hex64, "docker.io/library/python:3.*", false}, // the digest may be of any tag
		{"python:3.12@" + hex64, "docker.io/library/python@" + hex64, true},
		{"python@" + hex64, "docker.io/library/python", true},
		{"docker://python:3.12", "docker://docker.io/library/*", true},
		{"oras://ghcr.io/a", "ghcr.io/*", false},
		{"/images/a.sif", "/images/*", true},
		{"/home/a.sif", "/images/*", false},
	} {
		i, err := ParseImage(x.image)
		if err != nil || i.Matches(x.pattern) != x.want {
			t.Errorf("%s, %s: %v (%v)", x.image, x.pattern, !x.want, err)
		}
	}
}

func TestUnpinned(t *testing.T) {
	for text, want := range map[string]string{
		"python:3.12": "docker.io/library/python@sha256:… pins it", "/a.sif": "is a path and has no digest", "python@" + hex64: "", "": "",
	} {
		i, _ := ParseImage(text)
		if got := i.Unpinned(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestParseMount(t *testing.T) {
	for text, want := range map[string]Mount{
		"/data":           {Source: "/data", Target: "/data"},
		"/data:ro":        {Source: "/data", Target: "/data", ReadOnly: true},
		"/data:/mnt/d:rw": {Source: "/data", Target: "/mnt/d"},
		"/data:/mnt/d:ro": {Source: "/data", Target: "/mnt/d", ReadOnly: true},
	} {
		if m, err := ParseMount(text); err != nil || m != want {
			t.Errorf("%q is %+v (%v)", text, m, err)
		}
	}
	for text, want := range map[string]string{
		"data:/x": "no absolute path", "/a:b": "no absolute path", "/a:/b:/c": "cannot have a colon", "/a:/etc": "belongs to the image",
		"/a:/": "belongs to the image", "/a:/proc/1": "belongs to the kernel", "/a/../b": "as /b", "": "no absolute path", "/a:/b\n": "control character",
	} {
		if m, err := ParseMount(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v (%v), wanted an error with %q", text, m, err, want)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	for _, text := range []string{"python:3.12", "nvcr.io#a/b", "oras://a.b/c@" + hex64, "/a/b.sif", "a:b/c:d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseImage(text)
		if err != nil || i.Kind == NoImage {
			return
		}
		if again, err := ParseImage(i.String()); err != nil || again != i {
			t.Errorf("%q is %+v, and %q is %+v (%v)", text, i, i.String(), again, err)
		}
		if strings.ContainsAny(i.String(), " ,'\"$`\n\\;|&<>") {
			t.Errorf("%q has a character that no command line should get", i)
		}
	})
}
