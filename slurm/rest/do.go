package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/wire"
)

// errNoAccounting says that the server has no /slurmdb: slurmdbd is not
// configured, or the plugin is not loaded.
var errNoAccounting = errors.New("slurmrestd offers no accounting")

// notOfferedText is a refusal of the router for a path.
const notOfferedText = "slurmrestd does not offer %s"

// do sends one request in the right dialect with a valid token. path holds %s
// where the dialect goes. It asks again only where that cannot do anything
// twice: after a 404 for the whole URL, and after a refused token.
func (c *Client) do(ctx context.Context, op, method, path string, body []byte) (answer, error) {
	d, err := c.agree(ctx, op)
	if err != nil {
		return answer{}, err
	}
	return c.doIn(ctx, d, op, method, path, body)
}

func (c *Client) doIn(ctx context.Context, d dialect, op, method, path string, body []byte) (answer, error) {
	a, err := c.authorised(ctx, op, method, fmt.Sprintf(path, d), body)
	if err != nil || !a.noSuchURL() {
		if err == nil {
			c.confirm(d)
		}
		return a, err
	}
	if !c.isVerified() { // a remembered dialect that the server lost in an update
		found, err := c.discover(ctx, op)
		if err != nil {
			return answer{}, err
		}
		if body != nil && found != d {
			return answer{}, errOtherDialect // the body must be encoded anew
		}
		if a, err = c.authorised(ctx, op, method, fmt.Sprintf(path, found), body); err != nil {
			return answer{}, err
		}
	}
	if a.noSuchURL() {
		if strings.HasPrefix(path, "/slurmdb/") {
			return answer{}, errNoAccounting
		}
		return answer{}, &slurm.Error{Op: op, Text: fmt.Sprintf(notOfferedText, fmt.Sprintf(path, d)), HTTP: a.status}
	}
	return a, nil
}

// errOtherDialect makes Submit encode again. Nothing was processed.
var errOtherDialect = errors.New("the server speaks another dialect")

// noSuchURL: 404 with text is about the URL, with JSON about the job.
func (a answer) noSuchURL() bool { return a.status == http.StatusNotFound && !a.json }

// authorised adds the token and, when it was certainly refused, tries once
// more with a fresh one.
func (c *Client) authorised(ctx context.Context, op, method, path string, body []byte) (answer, error) {
	stale := ""
	for {
		header := http.Header{"Accept": {"application/json"}}
		if body != nil {
			header.Set("Content-Type", "application/json")
		}
		token := ""
		if c.tokens != nil {
			var err error
			if token, err = c.tokens.get(ctx, stale, method == http.MethodPost); err != nil {
				return answer{}, &slurm.AuthError{Op: op, Text: err.Error(), Missing: true}
			}
			claims := ParseClaims(token)
			if claims.Expired(c.o.Clock()) {
				return answer{}, &slurm.AuthError{Op: op, Text: "it expired at " + claims.Expires.Format("15:04:05")}
			}
			header.Set("X-SLURM-USER-NAME", c.bearer(claims))
			header.Set("X-SLURM-USER-TOKEN", token)
		}
		a, err := c.roundTrip(ctx, op, method, path, body, header)
		if err != nil {
			return answer{}, err
		}
		refusal, certain := a.refusedToken(token != "")
		switch {
		case refusal == "":
			return a, nil
		case !certain && method == http.MethodPost:
			// Slurm 22.05 cuts the connection for a bad token just as it does
			// when slurmctld dies over the request.
			return answer{}, &slurm.Unreachable{Op: op, Via: c.wire.via, Err: &slurm.AuthError{Op: op, Text: refusal}}
		case token == "" || stale != "":
			return answer{}, &slurm.AuthError{Op: op, Text: refusal}
		}
		stale = token
		again, err := c.tokens.get(ctx, stale, false)
		if err != nil {
			return answer{}, &slurm.AuthError{Op: op, Text: fmt.Sprintf("%s; %v", refusal, err)}
		}
		if again == stale {
			return answer{}, &slurm.AuthError{Op: op, Text: refusal}
		}
	}
}

func (c *Client) roundTrip(ctx context.Context, op, method, path string, body []byte, header http.Header) (answer, error) {
	client, total := c.wire.reads, 6*c.o.Timeout
	if method != http.MethodGet {
		client, total = c.wire.writes, c.o.SubmitTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	for {
		a, err := c.wire.send(ctx, client, op, method, path, body, header)
		if k := c.wire.children; err != nil && k != nil && method == http.MethodGet && k.next(err) {
			continue // with other arguments
		}
		return a, err
	}
}

// refusedToken tells a refused authentication from other failures; text is ""
// when it was none. certain is false where Slurm 22.05 uses one answer for
// bad tokens and other things.
func (a answer) refusedToken(withToken bool) (text string, certain bool) {
	number, words := wire.Describe(a.env.Errors)
	words = foreign(words)
	switch {
	case a.status == http.StatusUnauthorized,
		a.status == http.StatusNetworkAuthenticationRequired,
		a.status >= 500 && !a.json && strings.Contains(a.text(), "uthentication"):
		if words == "" {
			words = a.text()
		}
		return words, true
	case a.env.Has(wire.ErrProtocolAuth), a.env.Has(wire.ErrAuthExpired):
		return words, true
	case withToken && a.status == http.StatusInternalServerError && a.json && (number == wire.ErrZeroBytes || number <= 0):
		return fmt.Sprintf("%q, which is how Slurm 22.05 answers a bad token", words), false
	}
	return "", false
}

// agree returns the dialect to use, finding it out at the first call.
func (c *Client) agree(ctx context.Context, op string) (dialect, error) {
	c.mu.Lock()
	d := c.dialect
	c.mu.Unlock()
	if k := c.wire.children; k != nil {
		if d == 0 { // asking in a dialect that it lacks would end the child
			d = dialectOf(k.release(ctx))
			c.mu.Lock()
			c.dialect = d
			c.mu.Unlock()
		}
		k.speak(d)
	}
	if d != 0 {
		return d, nil
	}
	return c.discover(ctx, op)
}

// discover pings from the newest dialect down; the first that is no 404 wins.
// Several callers may do it at once and find the same.
func (c *Client) discover(ctx context.Context, op string) (dialect, error) {
	for d := newest; d >= oldest; d-- {
		a, err := c.authorised(ctx, op, http.MethodGet, fmt.Sprintf("/slurm/%s/ping", d), nil)
		if err != nil {
			return 0, err
		}
		if !a.noSuchURL() {
			if !a.json {
				return 0, &slurm.Error{Op: op, Text: fmt.Sprintf("%s is no slurmrestd: %s", c.wire.via, a.text()), HTTP: a.status}
			}
			c.confirm(d)
			return d, nil
		}
	}
	return 0, &slurm.Error{Op: op, Text: fmt.Sprintf("no dialect from %s to %s at %s", oldest, newest, c.wire.via), HTTP: http.StatusNotFound}
}

func (c *Client) confirm(d dialect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialect, c.verified = d, true
}

func (c *Client) isVerified() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified
}
