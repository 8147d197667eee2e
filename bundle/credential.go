package bundle

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// credentialNames are files that hold secrets as a rule, in lower case. token*
// is not among them: tokenizer.json belongs to every model.
var credentialNames = []string{
	".env", ".envrc", ".netrc", "credentials.json", "token.txt", "api_key.txt",
	".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*",
	"secrets.*", "*.secret", "hf_token*", "*_credentials.json",
}

const credentialHint = "list them in .gitignore (git rm --cached if they are tracked) or move them out of the packed directories; a job gets its secrets with: tp secret set"

// credentialName says whether a file of this path looks like a credential.
func credentialName(p string) bool {
	base := strings.ToLower(path.Base(p))
	for i := range credentialGlobs {
		if credentialGlobs[i].match(base) {
			return true
		}
	}
	return false
}

var credentialGlobs = func() (globs []glob) {
	for _, name := range credentialNames {
		globs = append(globs, newGlob(name))
	}
	return globs
}()

// scanVersion changes with the rules below, which makes caches of older ones
// worthless.
const scanVersion = 1

// scanMax is the size below which files are scanned: what people write by hand.
const scanMax = 1 << 20

// allowSecret on a line lets its content pass.
const allowSecret = "tp:allow-secret"

// scanSecrets finds well-known tokens in a text and returns "line: what" for
// each, never the value. It jumps from run to run of token characters, for this
// is done to every new byte of a bundle: a token has at least minRun of them, so
// looking at every minRun-th byte is enough.
func scanSecrets(data []byte) []string {
	const minRun = 20 // AKIA and 16 more is the shortest
	if len(data) < minRun || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return nil
	}
	var found []string
	report := func(at int, what string) {
		if bytes.Contains(lineAt(data, at), []byte(allowSecret)) {
			return
		}
		found = append(found, fmt.Sprintf("%d: %s", 1+bytes.Count(data[:at], []byte("\n")), what))
	}
	for at := minRun - 1; at < len(data); at += minRun {
		if !tokenChar[data[at]] {
			continue
		}
		from, to := at, at+1
		for from > 0 && tokenChar[data[from-1]] {
			from--
		}
		for to < len(data) && tokenChar[data[to]] {
			to++
		}
		if to-from >= minRun {
			if what := tokenIn(data, from, to); what != "" {
				report(from, what)
			}
		}
		at = to
	}
	key := []byte("PRIVATE KEY-----")
	for at := 0; ; {
		i := bytes.Index(data[at:], key)
		if i < 0 {
			return found
		}
		if bytes.Contains(lineAt(data, at+i), []byte("-----BEGIN ")) {
			report(at+i, "private key")
		}
		at += i + len(key)
	}
}

var tokenChar = func() (t [256]bool) {
	for c := range t {
		t[c] = c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	return t
}()

func lineAt(data []byte, at int) []byte {
	from := bytes.LastIndexByte(data[:at], '\n') + 1
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return data[from : at+i]
	}
	return data[from:]
}

// tokens are the well-known kinds: what follows the prefix is a number of
// characters of a kind, with or without more behind.
var tokens = []struct {
	prefix, what string
	body         func(byte) bool
	min          int
	exact        bool
	mixed        bool // has upper case, lower case and digits, unlike words
}{
	{"hf_", "Hugging Face token", isAlnum, 34, true, false},
	{"ghp_", "GitHub token", isAlnum, 36, true, false},
	{"gho_", "GitHub token", isAlnum, 36, true, false},
	{"ghu_", "GitHub token", isAlnum, 36, true, false},
	{"ghs_", "GitHub token", isAlnum, 36, true, false},
	{"github_pat_", "GitHub token", isToken, 40, false, true},
	{"AKIA", "AWS access key", isUpper, 16, true, false},
	{"ASIA", "AWS access key", isUpper, 16, true, false},
	{"xoxb-", "Slack token", isToken, 20, false, false},
	{"xoxp-", "Slack token", isToken, 20, false, false},
	{"sk-", "API key", isToken, 20, false, true},
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
func isAlnum(c byte) bool  { return isLetter(c) || c >= '0' && c <= '9' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
func isToken(c byte) bool  { return tokenChar[c] }

// tokenIn names the kind of token in a run of token characters.
func tokenIn(data []byte, from, to int) string {
	run := data[from:to]
	for i := range tokens {
		t := &tokens[i]
		for at := 0; ; {
			j := bytes.Index(run[at:], []byte(t.prefix))
			if j < 0 {
				break
			}
			at += j
			body := run[at+len(t.prefix):]
			n := 0
			for n < len(body) && t.body(body[n]) {
				n++
			}
			// a prefix inside a word, as in "task-", is none
			if (at == 0 || !isAlnum(run[at-1])) && n >= t.min && (!t.exact || n == t.min && n == len(body)) &&
				(!t.mixed || isMixed(body[:n])) && !bytes.HasSuffix(body, []byte("EXAMPLE")) {
				return t.what
			}
			at++
		}
	}
	if len(run) == 40 && bytes.IndexFunc(run, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) < 0 {
		line := bytes.ToLower(lineAt(data, from))
		if bytes.Contains(line, []byte("wandb")) && bytes.Contains(line, []byte("key")) {
			return "Weights & Biases key"
		}
	}
	return ""
}

func isMixed(b []byte) bool {
	var upper, lower, digit bool
	for _, c := range b {
		upper = upper || c >= 'A' && c <= 'Z'
		lower = lower || c >= 'a' && c <= 'z'
		digit = digit || c >= '0' && c <= '9'
	}
	return upper && lower && digit
}
