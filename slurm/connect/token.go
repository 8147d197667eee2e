package connect

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/tuneplane/tp/internal/durable"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/rest"
)

// tokens is where the tokens of one client come from. A configured file or
// command that fails is an error, not a reason to try another source: the
// token decides who the user is. SLURM_JWT is what a shell happened to hold,
// so a fresh token of the same user may take its place, and that is said.
type tokens struct {
	s    *search
	file string
	argv []string
	env  bool

	mu       sync.Mutex
	used     bool // SLURM_JWT was handed out
	settled  bool // Open is over
	warnings []string
}

// tokens of a socket that nobody configured do not come from the sources of
// the configured address.
func (s *search) tokens(way Way) *tokens {
	t := &tokens{s: s, env: s.TokenEnv}
	if way == URL {
		t.file, t.argv = s.TokenFile, s.TokenCommand
	}
	return t
}

// optional: nobody asked for a token, and one from the environment would say
// what the socket knows anyway.
func (t *tokens) optional() bool {
	if t.file != "" || len(t.argv) > 0 || t.s.User != "" && t.s.User != t.s.self {
		return false
	}
	who := rest.ParseClaims(t.s.o.JWT).User(t.s.self)
	return !t.env || who == "" || who == t.s.self
}

// get is the source for rest.Options.
func (t *tokens) get(ctx context.Context) (string, error) {
	tools := t.s.o.Tools
	switch {
	case t.file != "":
		token, open, err := readToken(t.file)
		if open != 0 {
			t.warn(fmt.Sprintf("token file %s can be read by others (mode %04o): chmod 600 it", t.file, open))
		}
		return token, err
	case len(t.argv) > 0:
		return tools.TokenFrom(ctx, t.argv)
	case t.env:
		why := t.unusable()
		if why == "" {
			return t.s.o.JWT, nil
		}
		if who := rest.ParseClaims(t.s.o.JWT).User(t.s.self); who != "" && who != t.s.self {
			return "", fmt.Errorf("SLURM_JWT of %s %s, and a fresh one would be %s's", who, why, t.s.self)
		}
		token, err := tools.Token(ctx)
		if err != nil {
			return "", fmt.Errorf("SLURM_JWT %s, and there is no fresh one: %w", why, err)
		}
		t.warn("SLURM_JWT " + why + ": a fresh token of scontrol is used instead")
		return token, nil
	}
	return tools.Token(ctx)
}

// unusable says what is wrong with SLURM_JWT; asked for a second time it was
// refused or is about to expire.
func (t *tokens) unusable() string {
	jwt := t.s.o.JWT
	t.mu.Lock()
	defer t.mu.Unlock()
	claims := rest.ParseClaims(jwt)
	if _, err := cli.ParseToken([]byte(jwt)); err != nil {
		return "is no token"
	}
	if claims.Expired(t.s.o.Clock()) {
		return "expired at " + claims.Expires.Format("15:04:05")
	}
	if t.used {
		return "was refused or is about to expire"
	}
	t.used = true
	return ""
}

// warn says each thing once, after Open to Options.Warn.
func (t *tokens) warn(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, have := range t.warnings {
		if have == text {
			return
		}
	}
	t.warnings = append(t.warnings, text)
	if t.settled && t.s.o.Warn != nil {
		t.s.o.Warn(text)
	}
}

// settle returns the warnings of Open.
func (t *tokens) settle() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = true
	return append([]string(nil), t.warnings...)
}

// maxToken is far above any JWT; Slurm's own have some 200 bytes.
const maxToken = 16 << 10

// readToken also gives the file's mode when others may read it. A pipe is no
// token file: it would be waited for, and can be read only once.
func readToken(path string) (token string, open os.FileMode, err error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		open = info.Mode().Perm()
	}
	raw, err := durable.Read(path, maxToken)
	if err != nil {
		return "", open, err // names the file
	}
	if token, err = cli.ParseToken(raw); err != nil {
		return "", open, fmt.Errorf("token file %s: %w", path, err)
	}
	return token, open, nil
}
