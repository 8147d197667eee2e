package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/rest"
)

// drip sends a chunk again and again until the client leaves.
func drip(kind, chunk string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(chunk)); err != nil {
				return
			}
			if pause > 0 {
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(pause):
				}
			}
		}
	}
}

// A server that hangs, truncates or lies gives one error in one line, in time;
// a submission stays in doubt unless the answer is a plain refusal.
func TestLyingServers(t *testing.T) {
	huge := strings.Repeat("Ä\x1b[2J\n<p>", 2<<20)
	for what, c := range map[string]struct {
		answer  http.HandlerFunc
		certain bool // a refusal: the submission queued nothing
	}{
		"hangs": {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"hangs after the headers": {answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}},
		"drips for ever":     {answer: drip("application/json", " ", 20*time.Millisecond)},
		"chunks without end": {answer: drip("application/json", strings.Repeat(" ", 1<<20), 0)},
		"chunks of an error": {answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); drip("text/html", huge, 0)(w, r) }},
		"closes":             {answer: func(w http.ResponseWriter, _ *http.Request) { cut(w, "") }},
		"speaks no HTTP":     {answer: func(w http.ResponseWriter, _ *http.Request) { cut(w, "SSH-2.0-OpenSSH_9.2\r\n") }},
		"header without end": {answer: func(w http.ResponseWriter, _ *http.Request) {
			cut(w, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 12<<20))
		}},
		"length too long":        {answer: func(w http.ResponseWriter, _ *http.Request) { cut(w, jsonAnswer(200, 900, `{"job_id":7,"jobs":[]}`)) }},
		"length too short":       {answer: func(w http.ResponseWriter, _ *http.Request) { cut(w, jsonAnswer(200, 9, `{"job_id":7,"jobs":[]}`)) }},
		"half JSON":              {answer: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"jobs":[{"job_id":7,"na`) }},
		"JSON of the wrong kind": {answer: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `["jobs"]`) }},
		"HTML":                   {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>\x1b]0;x\a" + huge)) }},
		"HTML that says JSON":    {answer: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "<html>Sign in</html>") }},
		"error page of 10 MB":    {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); _, _ = w.Write([]byte(huge)) }},
		"error in JSON of 10 MB": {answer: func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 500, refusal(huge))
		}},
		"long error in JSON": {certain: true, answer: func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 500, refusal(strings.Repeat("no \u202e\x1b[31mway\n", 2000)))
		}},
		"plain refusal": {certain: true, answer: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Forbidden\x1b[2J\n\n\tby policy", http.StatusForbidden)
		}},
		"redirect to a sign-in page": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://sso.example.org/\x1b"+huge[:2000], http.StatusFound)
		}},
		"redirect of any method": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		}},
		"time-out of a proxy": {answer: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Request Timeout", http.StatusRequestTimeout)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client left
				c.answer(w, r)
			}))
			t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
			o := rest.Options{URL: h.URL, Dialect: "v0.0.42", Timeout: 300 * time.Millisecond, SubmitTimeout: 600 * time.Millisecond}
			check := func(op string, err error, limit time.Duration, start time.Time) {
				t.Helper()
				took := time.Since(start)
				if err == nil {
					t.Errorf("%s: no error", op)
					return
				}
				text := err.Error()
				if strings.ContainsAny(text, "\n\x1b\u202e") || !utf8.ValidString(text) || utf8.RuneCountInString(text) > 450 {
					t.Errorf("%s: %d characters: %.600q", op, utf8.RuneCountInString(text), text)
				}
				if took > limit {
					t.Errorf("%s: took %s", op, took)
				}
			}
			// The time-outs are 1.8 s for a read and 0.6 s for a submission; the rest
			// is for a busy machine to swallow 128 MiB.
			const patience = 15 * time.Second
			start := time.Now()
			_, err := client(t, o).Jobs(t.Context(), 7)
			check("read", err, patience, start)
			start = time.Now()
			_, err = client(t, o).Info(t.Context())
			check("info", err, patience, start)
			start = time.Now()
			sub, err := client(t, o).Submit(t.Context(), request())
			check("submit", err, patience, start)
			var u *slurm.Unreachable
			if doubt := errors.As(err, &u) && !u.NotSent; doubt == c.certain || sub.ID != 0 {
				t.Errorf("submit: in doubt: %v, want %v: %+v %v", doubt, !c.certain, sub, err)
			}
		})
	}
}

func jsonAnswer(status, length int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, length, body)
}

// refusal says JSON's way what Slurm has against a job.
func refusal(words string) string {
	quoted, _ := json.Marshal(words)
	return fmt.Sprintf(`{"errors":[{"error_number":2000,"error":%s}]}`, quoted)
}

// Something in between mixes up answers: the state of another job is no answer.
func TestAnswerAboutAnotherJob(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/slurm/v0.0.42/job/7"):
			reply(w, 200, `{"jobs":[{"job_id":8,"job_state":["COMPLETED"],"name":"x"}]}`)
		case strings.HasSuffix(r.URL.Path, "/slurm/v0.0.42/job/9"): // a component
			reply(w, 200, `{"jobs":[{"job_id":10,"het_job_id":{"set":true,"number":9},"job_state":["PENDING"],"name":"x"}]}`)
		case strings.HasSuffix(r.URL.Path, "/slurm/v0.0.42/job/11"): // a task
			reply(w, 200, `{"jobs":[{"job_id":12,"array_job_id":{"set":true,"number":11},"array_task_id":{"set":true,"number":1},"job_state":["PENDING"],"name":"x"}]}`)
		case strings.HasPrefix(r.URL.Path, "/slurmdb/v0.0.42/job/13"):
			reply(w, 200, `{"jobs":[{"job_id":14,"state":{"current":["COMPLETED"]},"name":"x"}]}`)
		default:
			reply(w, 200, `{"jobs":[],"errors":[{"error_number":2017,"error":"Invalid job id specified"}]}`)
		}
	}))
	t.Cleanup(h.Close)
	c := client(t, rest.Options{URL: h.URL, Dialect: "v0.0.42"})
	for id, wrong := range map[slurm.JobID]string{7: "about job 8", 9: "", 11: "", 13: "about job 14"} {
		jobs, err := c.Jobs(t.Context(), id)
		if wrong == "" {
			if err != nil || len(jobs) != 1 {
				t.Errorf("job %s: %+v, %v", id, jobs, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("job %s: %+v, %v", id, jobs, err)
		}
	}
}
