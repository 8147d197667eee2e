package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDigestNamesTheContent(t *testing.T) {
	l := lab{"a.py": "one", "run.sh": "#!x", "l": "-> a.py"}
	base := digest(t, selectAll(t, l.repo(t)), "").Digest
	if other := digest(t, selectAll(t, l.repo(t)), "").Digest; other != base {
		t.Error("two equal trees have two digests")
	}
	for name, change := range map[string]func(root string){
		"content":                         func(r string) { os.WriteFile(r+"/a.py", []byte("two"), 0o644) },
		"mode":                            func(r string) { os.Chmod(r+"/a.py", 0o755) },
		"name":                            func(r string) { os.Rename(r+"/run.sh", r+"/walk.sh") },
		"link":                            func(r string) { os.Remove(r + "/l"); os.Symlink("run.sh", r+"/l") },
		"removal":                         func(r string) { os.Remove(r + "/run.sh") },
		"new":                             func(r string) { os.WriteFile(r+"/b.py", nil, 0o644) },
		"link for a file with its target": func(r string) { os.Remove(r + "/l"); os.WriteFile(r+"/l", []byte("a.py"), 0o644) },
	} {
		root := l.repo(t)
		change(root)
		if digest(t, selectAll(t, root), "").Digest == base {
			t.Errorf("%s: the digest stays", name)
		}
	}
	for name, same := range map[string]func(root string){
		"times":      func(r string) { os.Chtimes(r+"/a.py", time.Unix(1, 0), time.Unix(1, 0)) },
		"group mode": func(r string) { os.Chmod(r+"/a.py", 0o660) },
		"committed":  func(r string) { commit(t, r) },
	} {
		root := l.repo(t)
		same(root)
		if digest(t, selectAll(t, root), "").Digest != base {
			t.Errorf("%s: the digest changes", name)
		}
	}
}

// The format is a promise between releases: objects in stores are found by it.
func TestDigestIsPinned(t *testing.T) {
	man := digest(t, selectAll(t, lab{"a.py": "one", "run.sh": "#!x", "l": "-> a.py"}.repo(t)), "")
	const want = "1d308822834b32e172851277b953bfbd0b961656b383101a5e7a05a20fb69430"
	if man.Digest.String() != want {
		t.Errorf("%s", man.Digest)
	}
}

func TestDigestUsesTheCache(t *testing.T) {
	root, cache := lab{"a.py": "one", "b.py": "two", "d/c.py": "three"}.repo(t), t.TempDir()
	first := digest(t, later(selectAll(t, root)), cache)
	entries := loadStats(t, cache)
	if len(entries) != 3 {
		t.Fatalf("%d entries", len(entries))
	}
	if mode := statMode(t, cache); mode != 0o600 {
		t.Errorf("mode %o", mode)
	}
	// A wrong digest in the cache shows that the file is not read.
	entries[0].sum[0]++
	storeStats(t, cache, entries)
	second := digest(t, later(selectAll(t, root)), cache)
	if second.Files[0].SHA256 == first.Files[0].SHA256 {
		t.Error("an unchanged file is read again")
	}
	// Same size, same mtime: the change time tells.
	info, _ := os.Stat(root + "/a.py")
	os.WriteFile(root+"/a.py", []byte("uno"), 0o644)
	os.Chtimes(root+"/a.py", info.ModTime(), info.ModTime())
	third := digest(t, later(selectAll(t, root)), cache)
	if third.Files[0].SHA256 == second.Files[0].SHA256 || third.Files[0].SHA256 == first.Files[0].SHA256 {
		t.Error("a changed file is not read again")
	}
	os.Remove(root + "/b.py")
	digest(t, later(selectAll(t, root)), cache)
	if len(loadStats(t, cache)) != 2 {
		t.Error("the entry of a removed file stays")
	}
}

// git's racy rule: a file changed within the resolution of the clock.
func TestDigestDoesNotTrustYoungFiles(t *testing.T) {
	root, cache := lab{"a.py": "one"}.repo(t), t.TempDir()
	digest(t, selectAll(t, root), cache)
	if n := len(loadStats(t, cache)); n != 0 {
		t.Errorf("%d entries about files that changed just now", n)
	}
}

func TestDigestIgnoresABadCache(t *testing.T) {
	root, cache := lab{"a.py": "one", "b.py": "two"}.repo(t), t.TempDir()
	want := digest(t, later(selectAll(t, root)), cache).Digest
	entries := loadStats(t, cache)
	file := cacheFile(t, cache)
	good, _ := os.ReadFile(file)
	check := func(what string) {
		t.Helper()
		if got := digest(t, later(selectAll(t, root)), cache).Digest; got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x40
		os.WriteFile(file, bad, 0o600)
		check(fmt.Sprint("byte ", i))
		os.WriteFile(file, good[:i], 0o600)
		check(fmt.Sprint("cut at ", i))
	}
	entries[0].sum[0]++
	storeStats(t, cache, entries)
	os.Chmod(file, 0o666)
	check("writable by all")
	os.Remove(file)
	os.Mkdir(file, 0o700)
	check("a directory")
	check("twice")
	if _, err := Digest(context.Background(), selectAll(t, root), "/proc/cannot/be"); err != nil {
		t.Error(err)
	}
}

func TestDigestSeesChangesWhilePacking(t *testing.T) {
	for name, change := range map[string]func(file string){
		"written":     func(f string) { os.WriteFile(f, []byte("two, longer"), 0o644) },
		"same size":   func(f string) { os.WriteFile(f, []byte("uno"), 0o644) },
		"removed":     func(f string) { os.Remove(f) },
		"linked away": func(f string) { os.Remove(f); os.Symlink("/etc/passwd", f) },
		"a pipe":      func(f string) { os.Remove(f); syscall.Mkfifo(f, 0o600) },
	} {
		root := lab{"a.py": "one"}.repo(t)
		sel := selectAll(t, root)
		time.Sleep(10 * time.Millisecond) // the kernel's clock tick, which file times have
		change(root + "/a.py")
		_, err := Digest(context.Background(), sel, "")
		wantFault(t, err, "a.py changed while being packed")
		_ = name
	}
}

func TestDigestNamesUnreadableFiles(t *testing.T) {
	root := lab{"a.py": "one"}.repo(t)
	os.Chmod(root+"/a.py", 0)
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	_, err := Digest(context.Background(), selectAll(t, root), "")
	wantFault(t, err, "a.py cannot be read")
}

func TestDigestWarnsOfLFSPointers(t *testing.T) {
	man := digest(t, selectAll(t, lab{"model.bin": lfsPrefix + "oid sha256:00\nsize 5\n", "a.py": ""}.repo(t)), "")
	if len(man.Warnings) != 1 || !strings.Contains(man.Warnings[0], "model.bin") {
		t.Errorf("%q", man.Warnings)
	}
}

func TestDigestCancelled(t *testing.T) {
	sel := selectAll(t, lab{"a.py": "one"}.repo(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Digest(ctx, sel, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Select(ctx, Source{Root: sel.root}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// fake joins the pieces of a made-up token, so that this file has none.
func fake(pieces ...string) string { return strings.Join(pieces, "") }

// P72, by content.
func TestDigestRefusesTokens(t *testing.T) {
	letters := "abcdefghijKLMNOPQRSTuvwxyzABCDEFGHIJ"
	tokens := map[string]string{
		"hf.ipynb":  `"source": ["login(\"` + fake("hf", "_", letters[:34]) + `\")\n"]`,
		"gh.py":     "T = '" + fake("gh", "p_", letters) + "'",
		"pat.txt":   fake("github", "_pat_", "11ABCDEFG0abcdefghijkl", "_", letters),
		"aws.cfg":   "key=" + fake("AK", "IA", "ABCDEFGHIJKLMNOP"),
		"slack.py":  fake("xo", "xb-", "123456789012-123456789012-abcDEF"),
		"openai.py": "k=\"" + fake("s", "k-", "proj-Ab3dEf6hIj9lMn2pQr5t") + "\"",
		"wandb.sh":  "#!/bin/sh\nexport WANDB_API_KEY=" + fake("0123456789abcdef0123", "456789abcdef01234567"),
		"key.txt":   "\n\n" + fake("-----BEGIN OPENSSH PRIV", "ATE KEY-----") + "\nAAAA",
	}
	root, cache := lab(tokens).repo(t), t.TempDir()
	for range 2 { // the cache must not let it pass the second time
		_, err := Digest(context.Background(), later(selectAll(t, root)), cache)
		wantFault(t, err, "hf.ipynb:1: Hugging Face", "gh.py:1: GitHub", "pat.txt:1", "aws.cfg:1: AWS", "slack.py:1: Slack", "openai.py:1", "wandb.sh:2: Weights", "key.txt:3: private key", allowSecret)
		if strings.Contains(err.Error(), letters[:10]) || strings.Contains(err.Error(), "0123456789") {
			t.Error("the value is in the error")
		}
	}
	for name, text := range map[string]string{
		"allowed":       "x = '" + fake("gh", "p_", letters) + "' # tp:allow-secret",
		"word":          "task-" + letters + "1 disk-Ab3dEf6hIj9lMn2pQr5t desk_sk_",
		"name":          "hf_checkpoint_directory_with_a_long_name hf_hub_download_and_something_more_here",
		"css":           "sk-loading-spinner-container-big-blue",
		"example":       fake("AK", "IA", "IOSFODNN7EXAMPLE"),
		"commit":        "rev = 0123456789abcdef0123456789abcdef01234567",
		"short":         fake("gh", "p_", letters[:20]),
		"binary":        "\x00" + fake("gh", "p_", letters),
		"public key":    "-----BEGIN PUBLIC KEY-----",
		"large":         strings.Repeat("x", scanMax) + " " + fake("gh", "p_", letters),
		"empty":         "",
		"digest of git": strings.Repeat("0123456789abcdef", 4),
	} {
		if _, err := Digest(context.Background(), selectAll(t, lab{"f": text}.repo(t)), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Wherever in a text a token stands, the stride of the scan must hit it.
func TestScanFindsTokensEverywhere(t *testing.T) {
	token := fake("AK", "IA", "ABCDEFGHIJKLMNOP")
	for at := range 100 {
		for _, filler := range []string{" ", "a ", "ab.", "long_words_of_code = 1; "} {
			text := strings.Repeat(filler, 1+at/len(filler))[:at]
			if at > 0 {
				text = text[:at-1] + "="
			}
			if got := scanSecrets([]byte(text + token + "\nrest of the text")); len(got) != 1 {
				t.Fatalf("at %d after %q: %q", at, filler, got)
			}
		}
	}
}

func TestManifestDocument(t *testing.T) {
	man := digest(t, selectAll(t, lab{"a.py": "one", "\xff.py": "x", "run.sh": "#!x", "l": "-> \xff.py", "<&>": "h"}.repo(t)), "")
	data, err := json.Marshal(man)
	if err != nil {
		t.Fatal(err)
	}
	var back Manifest
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if fmt.Sprint(back.Files, back.Segments, back.Digest, back.Bytes) != fmt.Sprint(man.Files, man.Segments, man.Digest, man.Bytes) {
		t.Errorf("%+v\n%+v", back, man)
	}
	text := string(data)
	for name, bad := range map[string]string{
		"unknown field": strings.Replace(text, `"version"`, `"x":1,"version"`, 1),
		"version":       strings.Replace(text, `"version":1`, `"version":2`, 1),
		"codec":         strings.Replace(text, `"zstd"`, `"gzip"`, 1),
		"digest":        strings.Replace(text, man.Digest.String(), strings.Repeat("0", 64), 1),
		"path":          strings.Replace(text, `"a.py"`, `"../a.py"`, 1),
		"absolute":      strings.Replace(text, `"a.py"`, `"/a.py"`, 1),
		"order":         strings.Replace(text, `"a.py"`, `"zz.py"`, 1),
		"mode":          strings.Replace(text, `"0755"`, `"4755"`, 1),
		"size":          strings.Replace(text, `"size":3`, `"size":-3`, 1),
		"content":       strings.Replace(text, man.Files[1].SHA256.String(), strings.Repeat("1", 64), 1),
		"trailing":      text + "{}",
		"truncated":     text[:len(text)-1],
	} {
		if bad == text {
			t.Errorf("%s: nothing is changed", name)
		}
		if err := json.Unmarshal([]byte(bad), new(Manifest)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSegmentsKeepTheirCuts(t *testing.T) {
	var files []File
	for i := range 3000 {
		files = append(files, File{Path: fmt.Sprintf("d%02d/f%04d.py", i%40, i), Mode: modeFile, Size: int64(i*7919%40_000 + 100)})
	}
	files = append(files, File{Path: "z/big", Mode: modeFile, Size: 3 << 20}, File{Path: "z/huge", Mode: modeFile, Size: 40 << 20})
	before := cut(files)
	covered, raw, small := 0, int64(0), 0
	for i, s := range before {
		if s.Length < 0 || s.Offset == 0 {
			if s.From != covered {
				t.Fatalf("segment %d starts at %d, not %d", i, s.From, covered)
			}
			covered = s.To
		}
		raw += s.RawSize
		if s.To-s.From > 1 {
			small++
		}
	}
	total := int64(0)
	for _, f := range files {
		total += f.Size
	}
	if covered != len(files) || raw != total {
		t.Errorf("%d files, %d bytes covered; want %d, %d", covered, raw, len(files), total)
	}
	if mean := (total - 43<<20) / int64(small); mean < segmentMin || mean > 2*segmentMin {
		t.Errorf("segments of %d bytes in the mean", mean)
	}
	if huge := before[len(before)-3:]; huge[0].Length != partSize || huge[2].Offset != 2*partSize || huge[2].Length != 8<<20 {
		t.Errorf("%+v", huge)
	}
	keys := map[Sum]bool{}
	for _, s := range before {
		if keys[s.Key] {
			t.Error("two segments have one key")
		}
		keys[s.Key] = true
	}
	changed := func(files []File) (n int) {
		for _, s := range cut(files) {
			if !keys[s.Key] {
				n++
			}
		}
		return n
	}
	edited := append([]File(nil), files...)
	edited[1500].SHA256[0]++
	removed := append(append([]File(nil), files[:1500]...), files[1501:]...)
	added := append(append(append([]File(nil), files[:1500]...), File{Path: files[1499].Path + "x", Mode: modeFile, Size: 900}), files[1500:]...)
	for name, f := range map[string][]File{"edit": edited, "removal": removed, "addition": added} {
		if n := changed(f); n < 1 || n > 3 {
			t.Errorf("%s changes %d segments", name, n)
		}
	}
}

func cacheFile(t *testing.T, dir string) string {
	t.Helper()
	found, _ := filepath.Glob(dir + "/*.stat")
	if len(found) != 1 {
		t.Fatalf("%q", found)
	}
	return found[0]
}

func loadStats(t *testing.T, dir string) []cached {
	t.Helper()
	payload, ok := readCache(cacheFile(t, dir), statMagic)
	if !ok {
		t.Fatal("no cache")
	}
	return decodeStats(payload)
}

func storeStats(t *testing.T, dir string, entries []cached) {
	t.Helper()
	if err := writeCache(cacheFile(t, dir), statMagic, encodeStats(entries)); err != nil {
		t.Fatal(err)
	}
}

func statMode(t *testing.T, dir string) os.FileMode {
	info, err := os.Stat(cacheFile(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}
