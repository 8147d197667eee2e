package rest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm/wire"
)

// tokens keeps one token until shortly before it expires. Slurm's default life
// is 30 minutes, so a wizard left open outlives it.
type tokens struct {
	source func(context.Context) (string, error)
	now    func() time.Time

	mu      sync.Mutex
	current string
}

// tokenMargin is how long before its end a token is replaced, at most: a read
// of a busy controller may take so long. A site may let tokens live for
// seconds; then it is a part of the life.
const tokenMargin = time.Minute

// get returns the current token, or a new one when it is about to expire or
// equals stale, the one that was just refused. A submission wants more of the
// life to be left: Slurm 22.05 answers it with a bad token as if the controller
// had died of it.
func (t *tokens) get(ctx context.Context, stale string, submission bool) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	claims := ParseClaims(t.current)
	if t.current != "" && t.current != stale && !claims.spent(t.now(), submission) {
		return t.current, nil
	}
	token, err := t.source(ctx)
	if err != nil {
		if t.current != "" && t.current != stale && t.now().Before(claims.Expires) {
			return t.current, nil // it will do for this once
		}
		return "", err
	}
	t.current = strings.TrimSpace(token)
	return t.current, nil
}

// Claims are what a token says of itself. The signature is slurmctld's affair.
type Claims struct {
	Issued  time.Time // zero when it does not say
	Expires time.Time // zero: never
	// Sun is the user in tokens of Slurm's own, and what it looks at first.
	Sun string
	// all are the other claims that are text.
	all map[string]string
}

// ParseClaims reads a JWT; what is none has no claims.
func ParseClaims(token string) Claims {
	var c Claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return c
	}
	var times struct {
		Exp wire.Num `json:"exp"`
		Iat wire.Num `json:"iat"`
	}
	var texts map[string]any
	if json.Unmarshal(raw, &times) != nil || json.Unmarshal(raw, &texts) != nil {
		return c
	}
	c.Issued, c.Expires = times.Iat.Time(), times.Exp.Time()
	c.all = map[string]string{}
	for name, value := range texts {
		if s, ok := value.(string); ok {
			c.all[name] = s
		}
	}
	c.Sun = c.all["sun"]
	return c
}

// User is whom Slurm takes the bearer for: the claim sun, else username, else
// the one that userclaimfield of AuthAltParameters names, which the token does
// not tell. So self, who runs tp, is believed if any claim has that name;
// else it is one of the claims that identity providers use. "" when no claim
// fits.
func (c Claims) User(self string) string {
	if user := cmp.Or(c.Sun, c.all["username"]); user != "" {
		return user
	}
	for _, value := range c.all {
		if value == self {
			return self
		}
	}
	return cmp.Or(c.all["preferred_username"], c.all["sub"])
}

// Expired reports whether the token is of no use any more.
func (c Claims) Expired(now time.Time) bool {
	return !c.Expires.IsZero() && !now.Before(c.Expires)
}

// spent: 80 % of a short life are over, or half of it before a submission.
func (c Claims) spent(now time.Time, submission bool) bool {
	if c.Expires.IsZero() {
		return false
	}
	margin := tokenMargin
	if life := c.Expires.Sub(c.Issued); !c.Issued.IsZero() && life > 0 {
		part := life / 5
		if submission {
			part = life / 2
		}
		margin = min(margin, part)
	}
	return !now.Before(c.Expires.Add(-margin))
}
