package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm/wire"
)

// tokens keeps one token until a minute before it expires. Slurm's default
// life is 30 minutes, so a wizard left open outlives it.
type tokens struct {
	source func(context.Context) (string, error)
	now    func() time.Time

	mu      sync.Mutex
	current string
}

const tokenMargin = time.Minute

// get returns the current token, or a new one when it is about to expire or
// equals stale, the one that was just refused.
func (t *tokens) get(ctx context.Context, stale string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := expiry(t.current)
	fresh := end.IsZero() || t.now().Before(end.Add(-tokenMargin))
	if t.current != "" && t.current != stale && fresh {
		return t.current, nil
	}
	token, err := t.source(ctx)
	if err != nil {
		return "", err
	}
	t.current = strings.TrimSpace(token)
	return t.current, nil
}

// expiry reads the claim exp of a JWT; zero when there is none. The signature
// is slurmctld's affair.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp wire.Num `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil {
		return time.Time{}
	}
	return claims.Exp.Time()
}
