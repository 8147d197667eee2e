package rest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/rest"
)

// faulty counts submissions and answers them as told; reads get an empty pong.
type faulty struct {
	*httptest.Server
	posts atomic.Int32
	mu    sync.Mutex
	saw   []string // "METHOD path token"
}

func newFaulty(t *testing.T, post http.HandlerFunc) *faulty {
	f := &faulty{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.saw = append(f.saw, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Slurm-User-Token"))
		f.mu.Unlock()
		if r.Method == http.MethodPost {
			f.posts.Add(1)
			post(w, r)
			return
		}
		reply(w, 200, `{"pings":[{"responding":true}],"meta":{"slurm":{"release":"24.11.5","cluster":"c"}}}`)
	}))
	t.Cleanup(f.Close)
	return f
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// cut closes the connection after part of an answer.
func cut(w http.ResponseWriter, part string) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = buf.WriteString(part)
	_ = buf.Flush()
	_ = conn.Close()
}

func TestDoubtfulSubmissionsAreSentOnce(t *testing.T) {
	for what, post := range map[string]http.HandlerFunc{
		"dropped without an answer": func(w http.ResponseWriter, _ *http.Request) { cut(w, "") },
		"cut within the headers":    func(w http.ResponseWriter, _ *http.Request) { cut(w, "HTTP/1.1 200 OK\r\nConte") },
		"cut within the body": func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"job_id\":12,")
		},
		"cut without a length": func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"job_id\":12,")
		},
		"late": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client left
			<-r.Context().Done()
		},
		"proxy's 502": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
		},
		"proxy's 200": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) },
		"no reason":   func(w http.ResponseWriter, _ *http.Request) { reply(w, 500, `{"errors":[]}`) },
		"controller cut": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 500, `{"errors":[{"error_code":5005,"error":"Zero Bytes were transmitted or received"}]}`)
		},
		"controller slow": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 504, `{"errors":[{"error_number":5004,"error":"Socket timed out on send/recv operation"}]}`)
		},
		"controller away": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 502, `{"errors":[{"error_number":1800,"error":"Unable to contact slurm controller (connect failure)"}]}`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFaulty(t, post)
			c := client(t, rest.Options{URL: f.URL, SubmitTimeout: 300 * time.Millisecond})
			sub, err := c.Submit(t.Context(), request())
			var u *slurm.Unreachable
			if !errors.As(err, &u) || u.NotSent || sub.ID != 0 {
				t.Errorf("%+v, %#v", sub, err)
			}
			if n := f.posts.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
		})
	}
}

func TestTheJobIDIsTheTruth(t *testing.T) {
	for what, answer := range map[string]string{
		"500 with an id": `{"errors":[{"error_number":2015,"error":"Requested partition configuration not available now"}],"job_id":12,"job_submit_user_msg":"be nice"}`,
		"id in result":   `{"result":{"job_id":12,"job_submit_user_msg":"be nice"},"errors":[{"error":"Requested partition configuration not available now"}]}`,
	} {
		f := newFaulty(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, 500, answer) })
		sub, err := client(t, rest.Options{URL: f.URL}).Submit(t.Context(), request())
		if err != nil || sub.ID != 12 || len(sub.Warnings) != 2 || sub.Warnings[1] != "be nice" || !strings.Contains(sub.Warnings[0], "not available now") {
			t.Errorf("%s: %+v, %v", what, sub, err)
		}
	}
}

func TestNotSentWhenNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	for _, url := range []string{"http://" + l.Addr().String(), "unix://" + t.TempDir() + "/none.sock"} {
		_, err := client(t, rest.Options{URL: url, Dialect: "v0.0.42"}).Submit(t.Context(), request())
		var u *slurm.Unreachable
		if !errors.As(err, &u) || !u.NotSent || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %#v", url, err)
		}
	}
}

// A token whose claim has passed is not sent at all.
func TestExpiredTokenIsNotSent(t *testing.T) {
	f := newFaulty(t, nil)
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1796049999,"sun":"alice"}`))
	c := client(t, rest.Options{URL: f.URL, User: "alice", Dialect: "v0.0.42", Token: func(context.Context) (string, error) { return "h." + payload + ".s", nil }})
	_, err := c.Submit(t.Context(), request())
	var auth *slurm.AuthError
	var u *slurm.Unreachable
	if !errors.As(err, &auth) || errors.As(err, &u) || len(f.saw) != 0 {
		t.Errorf("%v, server saw %q", err, f.saw)
	}
}

func TestRefusedTokenIsRenewedOnce(t *testing.T) {
	f := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slurm-User-Token") == "t2" {
			reply(w, 200, `{"job_id":5}`)
			return
		}
		reply(w, 511, `{"errors":[{"error_number":1007,"error":"Protocol authentication error"}]}`)
	})
	count := 0
	source := func(context.Context) (string, error) { count++; return fmt.Sprintf("t%d", count), nil }
	sub, err := client(t, rest.Options{URL: f.URL, User: "alice", Token: source, Dialect: "v0.0.42"}).Submit(t.Context(), request())
	if err != nil || sub.ID != 5 || f.posts.Load() != 2 {
		t.Errorf("%+v, %v after %d posts", sub, err, f.posts.Load())
	}
	same := func(context.Context) (string, error) { return "old", nil }
	f.posts.Store(0)
	_, err = client(t, rest.Options{URL: f.URL, User: "alice", Token: same, Dialect: "v0.0.42"}).Submit(t.Context(), request())
	var auth *slurm.AuthError
	if !errors.As(err, &auth) || f.posts.Load() != 1 {
		t.Errorf("%v after %d posts", err, f.posts.Load())
	}
}

// Slurm 22.05 answers a bad token as it answers a crash: the submission stays
// in doubt and is not repeated.
func TestZeroBytesWithATokenStayInDoubt(t *testing.T) {
	f := newFaulty(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 500, `{"errors":[{"error_code":5005,"error":"Zero Bytes were transmitted or received"}]}`)
	})
	count := 0
	source := func(context.Context) (string, error) { count++; return fmt.Sprintf("t%d", count), nil }
	_, err := client(t, rest.Options{URL: f.URL, User: "alice", Token: source, Dialect: "v0.0.38"}).Submit(t.Context(), request())
	var u *slurm.Unreachable
	var auth *slurm.AuthError
	if !errors.As(err, &u) || u.NotSent || !errors.As(err, &auth) || f.posts.Load() != 1 {
		t.Errorf("%v after %d posts", err, f.posts.Load())
	}
}

func TestTokenNeverFollowsARedirect(t *testing.T) {
	other := newFaulty(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"job_id":1}`) })
	f := newFaulty(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	source := func(context.Context) (string, error) { return "secret", nil }
	_, err := client(t, rest.Options{URL: f.URL, User: "alice", Token: source}).Submit(t.Context(), request())
	if err == nil || len(other.saw) != 0 {
		t.Errorf("%v; the other host saw %q", err, other.saw)
	}
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Error("the token is in the error")
	}
}

// A server update takes a remembered dialect away: the request is encoded anew
// and sent once to a URL that exists.
func TestStaleDialectHint(t *testing.T) {
	for _, hint := range []string{"v0.0.38", "v0.0.41", "v0.0.45", "nonsense", ""} {
		server, _ := recorded(t, "testdata/24.11/v0.0.42", nil)
		h := httptest.NewServer(server)
		t.Cleanup(h.Close)
		c := client(t, rest.Options{URL: h.URL, Dialect: hint})
		sub, err := c.Submit(t.Context(), request())
		if err != nil || sub.ID == 0 || c.Dialect() != "v0.0.42" {
			t.Errorf("hint %q: %+v, %v, %s", hint, sub, err, c.Dialect())
		}
		log := server.Log()
		if last := log[len(log)-1]; last.Line != "POST /slurm/v0.0.42/job/submit" || !strings.Contains(string(last.Body), `"environment":["PATH=/bin"`) {
			t.Errorf("hint %q: last request %s", hint, last.Line)
		}
	}
	server, _ := recorded(t, "testdata/24.11/v0.0.42", nil)
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	if _, err := client(t, rest.Options{URL: h.URL, Dialect: "v0.0.42"}).Submit(t.Context(), request()); err != nil || len(server.Log()) != 1 {
		t.Errorf("a right hint costs %d requests, %v", len(server.Log()), err)
	}
}

func TestLookUpByName(t *testing.T) {
	answers := map[string]string{
		"GET /slurmdb/{d}/jobs?job_name=nosuch.run&skip_steps=true&users=alice": "db-none",
	}
	_, c := recorded(t, "testdata/24.11/v0.0.42", answers)
	if _, err := c.JobsByName(t.Context(), "alice", "nosuch.run"); err == nil {
		t.Error("an answer that is none is taken for one")
	}
	mine := func(context.Context) ([]slurm.Job, error) {
		return []slurm.Job{{ID: 7, Name: "a,b", User: "alice"}, {ID: 8, Name: "a", User: "alice"}}, nil
	}
	broken := func(context.Context) ([]slurm.Job, error) { return nil, errors.New("squeue: no controller") }
	server, _ := recorded(t, "testdata/22.05/v0.0.38", map[string]string{"GET /slurm/{d}/job/7": "job-none"})
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	jobs, err := client(t, rest.Options{URL: h.URL, Mine: mine}).JobsByName(t.Context(), "alice", "a,b")
	if err != nil || len(jobs) != 1 || jobs[0].ID != 7 {
		t.Errorf("from squeue alone: %+v, %v", jobs, err)
	}
	for what, m := range map[string]func(context.Context) ([]slurm.Job, error){"no squeue": nil, "broken squeue": broken} {
		if _, err := client(t, rest.Options{URL: h.URL, Mine: m}).JobsByName(t.Context(), "alice", "a,b"); !errors.Is(err, slurm.ErrCannotLookUp) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestStrangeServersAreNamed(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>nginx")) }))
	t.Cleanup(h.Close)
	if _, err := client(t, rest.Options{URL: h.URL}).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "no slurmrestd") {
		t.Errorf("%v", err)
	}
	for _, url := range []string{"", "ftp://x", "unix://", "unix://host/path", "http://", "http://u:p@h", "://", "http://h?x=1"} {
		if _, err := rest.New(rest.Options{URL: url}); err == nil {
			t.Errorf("address %q is taken", url)
		}
	}
}
