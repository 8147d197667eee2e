package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/rest"
)

// asked is a server of one dialect that counts the questions after the first
// ping. In its queue the ids below 500 run; accounting knows 500 to 599.
type asked struct {
	mu       sync.Mutex
	lines    []string
	noStates bool // 23.11.0 to .4
	noDB     bool
}

func (a *asked) serve(t *testing.T, dialect string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(strings.Replace(r.URL.Path, "/slurmdb/", "/slurm/db/", 1), "/slurm/")
		path, at := strings.Replace(path, dialect+"/", "", 1), strings.Contains(path, dialect+"/")
		if !ok || !at || path == "jobs/state" && a.noStates {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(404)
			return
		}
		if path == "ping" {
			reply(w, 200, `{"pings":[{"ping":"UP","pinged":"UP","responding":true}],"meta":{"slurm":{"release":"24.11.5","cluster":"c"}}}`)
			return
		}
		a.mu.Lock()
		a.lines = append(a.lines, path)
		a.mu.Unlock()
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			t.Error(err)
		}
		var list []string
		switch one, isOne := strings.CutPrefix(path, "job/"); {
		case isOne:
			if id := number(t, one); id >= 500 {
				reply(w, 500, `{"errors":[{"error_number":2017,"error":"Invalid job id specified"}]}`)
				return
			}
			list = append(list, fmt.Sprintf(`{"job_id":%s,"name":"n%s","job_state":["RUNNING"]}`, one, one))
		case path == "jobs/state":
			for _, text := range query["job_id"] {
				if id := number(t, text); id < 500 {
					list = append(list, fmt.Sprintf(`{"job_id":"%d","state":["RUNNING"]}`, id))
				}
			}
		case path == "db/jobs" && a.noDB:
			reply(w, 500, `{"errors":[{"error_number":7000,"error":"Unable to connect to database"}]}`)
			return
		case path == "db/jobs":
			ids := query["step"]
			if dialect == "v0.0.38" {
				ids = strings.Split(query.Get("step"), ",")
			}
			for _, text := range ids {
				if id := number(t, text); id >= 500 && id < 600 {
					list = append(list, fmt.Sprintf(`{"job_id":%d,"name":"n%d","state":{"current":["COMPLETED"]}}`, id, id))
				}
			}
		}
		reply(w, 200, `{"jobs":[`+strings.Join(list, ",")+`],"errors":[],"warnings":[]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func number(t *testing.T, text string) (id int) {
	if _, err := fmt.Sscan(text, &id); err != nil || fmt.Sprint(id) != text {
		t.Errorf("%q is no id", text)
	}
	return id
}

func ids(from, to int) []slurm.JobID {
	var list []slurm.JobID
	for id := from; id <= to; id++ {
		list = append(list, slurm.JobID(id))
	}
	return list
}

// A round over many jobs is one question, not one for each.
func TestStatesCostFewQuestions(t *testing.T) {
	running := func(list []slurm.JobID) (jobs []slurm.Job) {
		for _, id := range list {
			jobs = append(jobs, slurm.Job{ID: id, State: slurm.Running, Name: fmt.Sprint("n", id)})
		}
		return jobs
	}
	squeue := func(context.Context) ([]slurm.Job, error) { return running(ids(1, 499)), nil } // more than is asked for
	broken := func(context.Context) ([]slurm.Job, error) { return nil, errors.New("squeue: no controller") }
	for name, c := range map[string]struct {
		dialect string
		mine    func(context.Context) ([]slurm.Job, error)
		asked   *asked
		ids     []slurm.JobID
		want    []string // paths and how often
		found   int
	}{
		"squeue":                  {"v0.0.42", squeue, &asked{}, ids(1, 450), nil, 450},
		"squeue, ended ones":      {"v0.0.42", squeue, &asked{}, ids(1, 699), []string{"1 db/jobs", "1 jobs/state"}, 599},
		"squeue, 22.05":           {"v0.0.38", squeue, &asked{}, ids(200, 499), nil, 300},
		"without squeue":          {"v0.0.42", nil, &asked{}, ids(1, 450), []string{"2 jobs/state"}, 450},
		"broken squeue":           {"v0.0.40", broken, &asked{}, ids(1, 400), []string{"1 jobs/state"}, 400},
		"without squeue, 22.05":   {"v0.0.38", nil, &asked{}, append(ids(1, 20), ids(500, 519)...), []string{"1 db/jobs", "40 job/"}, 40},
		"23.11.0 lacks states":    {"v0.0.40", nil, &asked{noStates: true}, ids(1, 20), []string{"20 job/"}, 20},
		"few":                     {"v0.0.42", squeue, &asked{}, ids(7, 8), []string{"2 job/"}, 2},
		"accounting down":         {"v0.0.42", squeue, &asked{noDB: true}, append(ids(1, 20), ids(500, 503)...), []string{"1 db/jobs", "4 job/"}, 20},
		"accounting in batches":   {"v0.0.44", squeue, &asked{}, ids(500, 900), []string{"2 jobs/state", "3 db/jobs"}, 100},
		"nothing, and no request": {"v0.0.44", squeue, &asked{}, []slurm.JobID{0}, nil, 0},
	} {
		a := c.asked
		client := client(t, rest.Options{URL: a.serve(t, c.dialect), Mine: c.mine})
		jobs, err := client.States(t.Context(), append(c.ids, c.ids...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		seen := map[slurm.JobID]bool{}
		for _, j := range jobs {
			if seen[j.ID] || !slices.Contains(c.ids, j.ID) || j.State == "" {
				t.Errorf("%s: %+v", name, j)
			}
			seen[j.ID] = true
		}
		count := map[string]int{}
		for _, line := range a.lines {
			if strings.HasPrefix(line, "job/") {
				line = "job/"
			}
			count[line]++
		}
		var got []string
		for line, n := range count {
			got = append(got, fmt.Sprint(n, " ", line))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if len(seen) != c.found || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d jobs by %v, want %d by %v", name, len(seen), got, c.found, c.want)
		}
	}
}

// Only an answer is one: a controller that is silent is no empty queue.
func TestStatesOfASilentController(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v0.0.42/ping") {
			reply(w, 200, `{"pings":[{"responding":true}],"meta":{}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/ping") {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(404)
			return
		}
		reply(w, 500, `{"jobs":[],"errors":[{"error_number":1007,"error":"x"},{"error_number":5005,"error":"Zero Bytes were transmitted or received"}]}`)
	}))
	t.Cleanup(s.Close)
	for _, list := range [][]slurm.JobID{ids(1, 2), ids(1, 100)} {
		if jobs, err := client(t, rest.Options{URL: s.URL}).States(t.Context(), list...); err == nil {
			t.Errorf("%d jobs without an error", len(jobs))
		}
	}
}
