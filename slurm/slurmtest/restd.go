package slurmtest

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tuneplane/tp/slurm"
)

// recorded holds answers of slurmrestd 24.11.5 in v0.0.42, with names and
// paths of the machine taken out.
//
//go:embed recorded
var recorded embed.FS

// Restd answers as the slurmrestd of Slurm 24.11.5 does, for tests that need a
// cluster's words and not a cluster: six idle nodes, five partitions, and a
// queue in which jobs change only when the test says so. What it answers was
// recorded from a real one. It cannot be wrong in the ways a real one is wrong;
// the end-to-end tests drive those.
//
//	d := slurmtest.NewRestd("alice")
//	url, stop, err := d.Listen(filepath.Join(t.TempDir(), "rest.sock"))
type Restd struct {
	User string

	mu      sync.Mutex
	jobs    []map[string]any
	next    int
	submits int
	refuse  string
	silent  bool // take the job, and cut the connection
}

// NewRestd is a server whose jobs belong to user. Ids begin at 100.
func NewRestd(user string) *Restd { return &Restd{User: user, next: 100} }

// Listen serves on a unix socket; url is what the site file says.
func (d *Restd) Listen(socket string) (url string, stop func(), err error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: d.handler(), ReadHeaderTimeout: time.Minute}
	go s.Serve(l) //nolint:errcheck // ends with Close
	return "unix://" + socket, func() { s.Close() }, nil
}

// Submits counts the requests to submit, also those refused.
func (d *Restd) Submits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.submits
}

// Refuse makes submissions fail with Slurm's words; "" takes them again.
func (d *Restd) Refuse(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = text
}

// Silence makes the server queue a job and hang up without an answer.
func (d *Restd) Silence(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.silent = on
}

// Set gives a job, with all its components, a state, a reason and the exit
// status of its script.
func (d *Restd) Set(id slurm.JobID, state slurm.State, reason string, exit int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	jobs := d.withLeader(int(id))
	if len(jobs) == 0 {
		return fmt.Errorf("no job %d", id)
	}
	now := number(time.Now().Unix())
	for _, j := range jobs {
		j["job_state"], j["state_reason"] = []string{string(state)}, reason
		if state == slurm.Running {
			j["start_time"] = now
		}
		if state.Ended() {
			j["end_time"] = now
			j["exit_code"] = map[string]any{"return_code": number(int64(exit))}
		}
	}
	return nil
}

// Queue is a job that somebody else's sbatch made.
func (d *Restd) Queue(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = append(d.jobs, d.job(map[string]any{"name": name, "partition": "h200", "minimum_nodes": 1.0, "tasks": 1.0}, d.next, 0, 1))
	d.next++
}

// Forget drops a job, as slurmctld does after MinJobAge and accounting never.
func (d *Restd) Forget(id slurm.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var kept []map[string]any
	for _, j := range d.jobs {
		if j["job_id"] != int(id) {
			kept = append(kept, j)
		}
	}
	d.jobs = kept
}

// Names lists the jobs' names, one for each component, oldest first.
func (d *Restd) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, j := range d.jobs {
		out = append(out, fmt.Sprint(j["name"]))
	}
	return out
}

func (d *Restd) handler() http.Handler {
	mux := http.NewServeMux()
	const ctld, dbd = "/slurm/v0.0.42", "/slurmdb/v0.0.42"
	for path, name := range map[string]string{
		ctld + "/ping": "ping", ctld + "/nodes": "nodes", ctld + "/partitions": "partitions", ctld + "/reservations": "reservations", dbd + "/clusters": "clusters",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, load(name)) })
	}
	mux.HandleFunc("POST "+ctld+"/job/submit", d.submit)
	mux.HandleFunc("GET "+ctld+"/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		id, _ := strconv.Atoi(r.PathValue("id"))
		if jobs := d.withLeader(id); len(jobs) > 0 {
			doc := load("job")
			doc["jobs"] = jobs
			reply(w, 200, doc)
			return
		}
		reply(w, 500, load("nojob"))
	})
	mux.HandleFunc("DELETE "+ctld+"/job/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.Atoi(r.PathValue("id"))
		if d.Set(slurm.JobID(id), slurm.Cancelled, "None", 0) != nil {
			reply(w, 500, load("nojob"))
			return
		}
		reply(w, 200, load("cancel"))
	})
	mux.HandleFunc("GET "+ctld+"/jobs/state", d.states)
	mux.HandleFunc("GET "+dbd+"/jobs", func(w http.ResponseWriter, r *http.Request) {
		d.history(w, r.URL.Query().Get("job_name"), r.URL.Query()["step"]...)
	})
	mux.HandleFunc("GET "+dbd+"/job/{id}", func(w http.ResponseWriter, r *http.Request) { d.history(w, "", r.PathValue("id")) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "Unable find requested URL. Please view /openapi/v3 for API reference.")
	})
	return mux
}

func (d *Restd) submit(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Script string           `json:"script"`
		Job    map[string]any   `json:"job"`
		Jobs   []map[string]any `json:"jobs"`
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.submits++
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !strings.HasPrefix(body.Script, "#!") {
		reply(w, 500, load("refused"))
		return
	}
	if d.refuse != "" {
		doc := load("refused")
		doc["errors"].([]any)[0].(map[string]any)["error"] = d.refuse
		reply(w, 500, doc)
		return
	}
	parts := body.Jobs
	if body.Job != nil {
		parts = []map[string]any{body.Job}
	}
	leader := d.next
	for i, part := range parts {
		d.jobs = append(d.jobs, d.job(part, leader, i, len(parts)))
		d.next++
	}
	if d.silent {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
		return
	}
	doc := load("submit")
	doc["job_id"], doc["warnings"] = leader, []any{}
	reply(w, 200, doc)
}

// job is what slurmctld makes of a description.
func (d *Restd) job(part map[string]any, leader, offset, components int) map[string]any {
	j := load("job")["jobs"].([]any)[0].(map[string]any)
	for _, key := range []string{"name", "partition", "comment", "account", "qos", "current_working_directory", "standard_output", "time_limit", "memory_per_node", "requeue"} {
		if v, ok := part[key]; ok {
			j[key] = v
		}
	}
	if v, ok := part["constraints"]; ok {
		j["features"] = v
	}
	if v, ok := part["reservation"]; ok {
		j["resv_name"] = v
	}
	per, _ := part["tres_per_node"].(string)
	j["tres_per_node"] = strings.ReplaceAll(per, "gres:", "gres/")
	j["tres_req_str"] = ""
	nodes, tasks, cpus := whole(part["minimum_nodes"]), whole(part["tasks"]), whole(part["cpus_per_task"])
	j["node_count"], j["tasks"], j["cpus_per_task"], j["cpus"] = number(nodes), number(tasks), number(cpus), number(tasks*cpus)
	j["job_id"], j["user_name"], j["submit_time"] = leader+offset, d.User, number(time.Now().Unix())
	j["job_state"], j["state_reason"] = []string{"PENDING"}, "Priority"
	if components > 1 {
		j["het_job_id"], j["het_job_offset"] = number(int64(leader)), number(int64(offset))
	}
	return j
}

// withLeader is a job with all its components.
func (d *Restd) withLeader(id int) []map[string]any {
	var out []map[string]any
	for _, j := range d.jobs {
		if j["job_id"] == id || whole(j["het_job_id"]) == int64(id) && id != 0 {
			out = append(out, j)
		}
	}
	return out
}

// states tells ids and states alone. A comma in the query is refused, as by the
// real one.
func (d *Restd) states(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []any{}
	for _, text := range r.URL.Query()["job_id"] {
		id, err := strconv.Atoi(text)
		if err != nil {
			reply(w, 500, map[string]any{"jobs": []any{}, "errors": []any{map[string]any{"error_number": 9000, "error": "Query empty or not RFC7320 compliant"}}})
			return
		}
		for _, j := range d.withLeader(id) {
			text := fmt.Sprint(j["job_id"])
			if whole(j["het_job_id"]) != 0 {
				text += fmt.Sprintf("+%d", whole(j["het_job_offset"]))
			}
			list = append(list, map[string]any{"job_id": text, "state": j["job_state"]})
		}
	}
	reply(w, 200, map[string]any{"jobs": list, "errors": []any{}, "warnings": []any{}})
}

// history is accounting's list by name or ids.
func (d *Restd) history(w http.ResponseWriter, name string, ids ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc := load("dbjobs")
	record := doc["jobs"].([]any)[0].(map[string]any)
	list := []any{}
	for _, j := range d.jobs {
		if j["name"] != name && !slices.Contains(ids, fmt.Sprint(j["job_id"])) {
			continue
		}
		r := maps.Clone(record)
		r["job_id"], r["name"], r["user"] = j["job_id"], j["name"], d.User
		r["state"] = map[string]any{"current": j["job_state"], "reason": j["state_reason"]}
		r["het"] = map[string]any{"job_id": j["het_job_id"], "job_offset": j["het_job_offset"]}
		list = append(list, r)
	}
	doc["jobs"] = list
	reply(w, 200, doc)
}

// load decodes a recorded answer anew: the caller may change it.
func load(name string) map[string]any {
	data, err := recorded.ReadFile("recorded/" + name + ".json")
	var doc map[string]any
	if err == nil {
		err = json.Unmarshal(data, &doc)
	}
	if err != nil {
		panic(err) // an embedded file is broken
	}
	return doc
}

func reply(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(doc) //nolint:errcheck // a client that hangs up
}

func number(n int64) map[string]any {
	return map[string]any{"set": true, "infinite": false, "number": n}
}

// whole reads 5 and {"set":true,"number":5}.
func whole(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case int64:
		return v
	case map[string]any:
		return whole(v["number"])
	}
	return 0
}
