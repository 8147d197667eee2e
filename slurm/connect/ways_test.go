package connect_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tuneplane/tp/slurm"
	"github.com/tuneplane/tp/slurm/cli"
	"github.com/tuneplane/tp/slurm/connect"
)

// handler answers pings of one cluster, only to the token if there is one.
func handler(cluster, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case token != "" && r.Header.Get("X-SLURM-USER-TOKEN") != token:
			http.Error(w, "Authentication failure", http.StatusUnauthorized)
		case !strings.HasPrefix(r.URL.Path, "/slurm/v0.0.42/"):
			http.Error(w, "Unable find requested URL.", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"pings":[{"responding":true}],"meta":{"slurm":{"release":"24.11.5","cluster":"` + cluster + `"}}}`))
		}
	})
}

// socket serves on a unix socket of that path.
func socket(t *testing.T, path string, h http.Handler) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
}

// program is a slurmrestd whose cluster is "lab".
const program = `[ "$1" != -V ] || { echo slurm 24.11.5; exit; }
body='{"pings":[{"responding":true}],"meta":{"slurm":{"release":"24.11.5","cluster":"lab"}}}'
while read -r line; do
	while read -r header && [ "$header" != "$(printf '\r')" ]; do :; done
	printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body"
done`

// world is a machine with what of Slurm a test wants.
type world struct {
	t    *testing.T
	dir  string
	bin  string // slurmrestd
	sock []string
}

func newWorld(t *testing.T) *world {
	dir, err := os.MkdirTemp("", "tp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &world{t: t, dir: dir}
}

func (w *world) open(f connect.Fleet, o connect.Options) (connect.Choice, error) {
	w.t.Helper()
	o.SetPlaces(w.sock, []string{filepath.Join(w.dir, "nosbin")})
	if o.Tools.Dir == "" {
		o.Tools = cli.Tools{Dir: filepath.Join(w.dir, "nobin")}
	}
	f.Slurmrestd = w.bin
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, choice, err := connect.Open(ctx, f, o)
	if client != nil {
		w.t.Cleanup(func() { connect.Close(client) })
	}
	return choice, err
}

func (w *world) withChild() {
	if os.Geteuid() == 0 {
		w.t.Skip("slurmrestd does not run as root")
	}
	w.bin = write(w.t, 0o755, "#!/bin/bash\n"+program+"\n")
}

func (w *world) withSocket(cluster, token string) string {
	path := filepath.Join(w.dir, "s"+string(rune('a'+len(w.sock))))
	socket(w.t, path, handler(cluster, token))
	w.sock = append(w.sock, path)
	return "unix://" + path
}

// dead is an address where nobody listens.
func dead(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestAutomaticWays(t *testing.T) {
	w := newWorld(t)
	choice, err := w.open(connect.Fleet{}, connect.Options{})
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("nothing here: %v", err)
	}
	for i, way := range connect.Ways {
		if choice.Rejected[i].Way != way {
			t.Errorf("rejected %d: %v", i, choice.Rejected[i])
		}
	}

	if err := os.WriteFile(filepath.Join(w.dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.sock = []string{filepath.Join(w.dir, "none"), filepath.Join(w.dir, "file")}
	want := w.withSocket("lab", "")
	w.sock = append(w.sock, w.sock[2]) // the same twice
	choice, err = w.open(connect.Fleet{}, connect.Options{})
	if err != nil || choice.Way != connect.Socket || choice.URL != want || len(choice.Warnings) != 0 || len(choice.Rejected) != 1 {
		t.Errorf("%+v, %v", choice, err)
	}
	if _, err := w.open(connect.Fleet{Order: []connect.Way{connect.CLI}}, connect.Options{}); err == nil {
		t.Error("a way was taken that nobody asked for")
	}
}

// A shared socket wants a token; a hung one costs no more than its time-out.
func TestSharedAndHungSockets(t *testing.T) {
	w := newWorld(t)
	hung := filepath.Join(w.dir, "hung")
	socket(t, hung, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	w.sock = []string{hung}
	want := w.withSocket("lab", "a.b.c")
	start := time.Now()
	choice, err := w.open(connect.Fleet{}, connect.Options{Tools: tools(t, "scontrol", "echo SLURM_JWT=a.b.c")})
	if err != nil || choice.URL != want || !strings.HasSuffix(choice.Transport, "(token)") || time.Since(start) > 5*time.Second {
		t.Errorf("%+v, %v after %s", choice, err, time.Since(start))
	}
}

// What stands in for an address is said, and refused where it would be another
// user or another cluster.
func TestFallback(t *testing.T) {
	locked := httptest.NewServer(handler("lab", "right.right.right"))
	t.Cleanup(locked.Close)
	other := claims(`{"sun":"stranger"}`)
	known := connect.Memory{Info: slurm.Info{Cluster: "lab"}}
	for what, c := range map[string]struct {
		f       connect.Fleet
		o       connect.Options
		cluster string // of the socket
		refused string // why nothing stands in
	}{
		"dead, the only fleet":       {f: connect.Fleet{URLs: []string{dead(t)}, Alone: true}},
		"dead, known cluster":        {f: connect.Fleet{URLs: []string{dead(t)}}, o: connect.Options{Last: known}},
		"dead, named cluster":        {f: connect.Fleet{URLs: []string{dead(t)}, Cluster: "lab"}},
		"dead, from the environment": {f: connect.Fleet{Alone: true}, o: connect.Options{EnvURL: dead(t)}},
		"dead, one of several":       {f: connect.Fleet{URLs: []string{dead(t)}}, refused: "cluster = NAME under [fleets.gpu]"},
		"dead, fallback off":         {f: connect.Fleet{URLs: []string{dead(t)}, Alone: true, NoFallback: true}, refused: "fallback = false"},
		"dead, another user":         {f: connect.Fleet{URLs: []string{dead(t)}, Alone: true, User: "stranger"}, refused: "asked as stranger"},
		"dead, another user's token": {f: connect.Fleet{URLs: []string{dead(t)}, Alone: true, TokenFile: write(t, 0o600, other)}, refused: "asked as stranger"},
		"dead, another cluster":      {f: connect.Fleet{URLs: []string{dead(t)}}, o: connect.Options{Last: known}, cluster: "west", refused: "it is cluster west, not lab"},
		"refused token":              {f: connect.Fleet{URLs: []string{locked.URL}, Alone: true, TokenFile: write(t, 0o600, "wrong.wrong.wrong")}},
		"refused token of another":   {f: connect.Fleet{URLs: []string{locked.URL}, Alone: true, TokenFile: write(t, 0o600, other)}, refused: "asked as stranger"},
		"address only":               {f: connect.Fleet{URLs: []string{dead(t)}, Alone: true, Order: []connect.Way{connect.URL}}, refused: "no token"},
	} {
		w := newWorld(t)
		cluster := c.cluster
		if cluster == "" {
			cluster = "lab"
		}
		w.withSocket(cluster, "")
		c.f.Name = "gpu"
		choice, err := w.open(c.f, c.o)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %+v, %v", what, choice, err)
			}
			continue
		}
		if err != nil || choice.Way != connect.Socket || len(choice.Warnings) != 1 || !strings.Contains(choice.Warnings[0], "fleet gpu is reached through slurmrestd v0.0.42 at unix:") || choice.User != me(t) {
			t.Errorf("%s: %+v, %v", what, choice, err)
		}
	}
}

// The site says which cluster a fleet is; an address of another is refused.
func TestAddressOfAnotherCluster(t *testing.T) {
	h := httptest.NewServer(handler("west", ""))
	t.Cleanup(h.Close)
	commands := tools(t, "scontrol", "echo SLURM_JWT=a.b.c")
	w := newWorld(t)
	if _, err := w.open(connect.Fleet{URLs: []string{h.URL}, Cluster: "lab"}, connect.Options{Tools: commands}); err == nil || !strings.Contains(err.Error(), "it is cluster west, not lab") {
		t.Errorf("%v", err)
	}
	if _, err := w.open(connect.Fleet{URLs: []string{h.URL}, Cluster: "west"}, connect.Options{Tools: commands}); err != nil {
		t.Error(err)
	}
}

// Memory spares dead ways, but never hides a configured one for long.
func TestMemory(t *testing.T) {
	now := time.Unix(1796050000, 0)
	var asked int
	h := httptest.NewUnstartedServer(nil)
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; handler("lab", "").ServeHTTP(w, r) })
	address := "http://" + h.Listener.Addr().String()
	h.Listener.Close() // down for now
	commands := tools(t, "scontrol", "echo SLURM_JWT=a.b.c")
	w := newWorld(t)
	w.withSocket("lab", "")
	f := connect.Fleet{URLs: []string{address}, Alone: true}
	open := func(last connect.Memory, at time.Time) connect.Choice {
		t.Helper()
		choice, err := w.open(f, connect.Options{Last: last, Tools: commands, Clock: func() time.Time { return at }})
		if err != nil {
			t.Fatal(err)
		}
		return choice
	}
	first := open(connect.Memory{}, now)
	if first.Way != connect.Socket || len(first.Memory.Silent) != 1 || first.Memory.Way != connect.Socket {
		t.Fatalf("%+v", first)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Skip(err)
	}
	h.Listener = l
	h.Start()
	t.Cleanup(h.Close)
	soon := open(first.Memory, now.Add(50*time.Second))
	if soon.Way != connect.Socket || asked != 0 || !strings.Contains(soon.Rejected[0].Err.Error(), "it did not answer at") || len(soon.Warnings) != 1 {
		t.Errorf("after 50 s: %+v", soon)
	}
	if !soon.Memory.Same(first.Memory) {
		t.Errorf("the minute begins anew: %+v", soon.Memory)
	}
	f.Order = []connect.Way{connect.URL}
	if forced := open(first.Memory, now.Add(5*time.Second)); forced.Way != connect.URL {
		t.Errorf("asked for by name: %+v", forced)
	}
	f.Order = nil
	later := open(soon.Memory, now.Add(61*time.Second))
	if later.Way != connect.URL || len(later.Memory.Silent) != 0 {
		t.Errorf("after 61 s: %+v", later)
	}
	if back := open(first.Memory, now.Add(-time.Hour)); back.Way != connect.URL {
		t.Errorf("with the clock put back: %+v", back)
	}
}

// The automatic way that worked goes first for an hour, behind the addresses.
func TestRememberedWayGoesFirst(t *testing.T) {
	now := time.Unix(1796050000, 0)
	w := newWorld(t)
	w.withChild()
	w.withSocket("lab", "")
	for age, want := range map[time.Duration]connect.Way{time.Minute: connect.Child, 61 * time.Minute: connect.Socket} {
		last := connect.Memory{Way: connect.Child, Since: now.Add(-age)}
		choice, err := w.open(connect.Fleet{}, connect.Options{Last: last, Clock: func() time.Time { return now }})
		if err != nil || choice.Way != want {
			t.Errorf("after %s: %+v, %v", age, choice, err)
		}
	}
}

// An order is no discovery: without it the search begins where it did before.
func TestOrderedWayIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	w.withChild()
	w.withSocket("lab", "")
	now := time.Unix(1796050000, 0)
	last := connect.Memory{Way: connect.Socket, Since: now}
	choice, err := w.open(connect.Fleet{Order: []connect.Way{connect.Child}}, connect.Options{Last: last, Clock: func() time.Time { return now }})
	if err != nil || choice.Way != connect.Child || choice.Memory.Way != connect.Socket || !choice.Memory.Since.Equal(now) {
		t.Errorf("%+v, %v", choice, err)
	}
}

// A way that nobody has set up is apart from one that failed.
func TestAbsentWays(t *testing.T) {
	w := newWorld(t)
	w.sock = []string{filepath.Join(w.dir, "none")}
	w.withChild()
	child := w.bin
	choice, err := w.open(connect.Fleet{}, connect.Options{})
	if failed, absent := choice.Others(); err != nil || len(failed) != 0 || len(absent) != 2 || !strings.HasPrefix(absent[0], "url: no address") {
		t.Errorf("%q, %q, %v", failed, absent, err)
	}
	// A socket that refuses, an order that names what is not there.
	socket(t, filepath.Join(w.dir, "none"), http.NotFoundHandler())
	choice, err = w.open(connect.Fleet{}, connect.Options{})
	if failed, absent := choice.Others(); err != nil || len(failed) != 1 || !strings.HasPrefix(failed[0], "unix://") || len(absent) != 1 {
		t.Errorf("%q, %q, %v", failed, absent, err)
	}
	w.bin = child
	choice, err = w.open(connect.Fleet{Order: []connect.Way{connect.URL, connect.Child}}, connect.Options{})
	if failed, absent := choice.Others(); err != nil || len(failed) != 1 || len(absent) != 0 {
		t.Errorf("%q, %q, %v", failed, absent, err)
	}
}

// Slurm's programs would wait a minute for a slurm.conf that is not there.
func TestMissingConfigIsSaidAtOnce(t *testing.T) {
	t.Setenv("SLURM_CONF", "/nosuch/slurm.conf")
	w := newWorld(t)
	w.withChild()
	start := time.Now()
	_, err := w.open(connect.Fleet{}, connect.Options{Tools: tools(t, "sbatch", "sleep 60", "scontrol", "sleep 60")})
	if err == nil || strings.Count(err.Error(), "SLURM_CONF: stat /nosuch/slurm.conf: no such file") != 2 || time.Since(start) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestSurveyTriesAll(t *testing.T) {
	w := newWorld(t)
	w.withSocket("lab", "")
	o := connect.Options{Tools: cli.Tools{Dir: w.dir}}
	o.SetPlaces(w.sock, nil)
	list := connect.Survey(t.Context(), connect.Fleet{Slurmrestd: filepath.Join(w.dir, "none")}, o)
	if len(list) != 4 || list[0].Err == nil || list[1].Err != nil || list[2].Err == nil || list[3].Err == nil {
		t.Errorf("%v", list)
	}
}

// A fleet that is another cluster than the commands' own is asked for by name.
func TestCommandsOfAnotherCluster(t *testing.T) {
	commands := tools(t, "sbatch", "echo slurm 24.11.5", "scontrol", `case "$*" in --clusters=far*) name=far ;; *) name=near ;; esac
[ "${1%%=*}" = version ] && echo slurm 24.11.5
echo "ClusterName = $name"
echo "SLURM_VERSION = 24.11.5"`, "sinfo", "echo slurm 24.11.5", "sacctmgr", "exit 1")
	for cluster, want := range map[string]string{"": "near", "near": "near", "far": "far"} {
		o := connect.Options{Tools: commands}
		o.SetPlaces(nil, nil)
		client, choice, err := connect.Open(t.Context(), connect.Fleet{Cluster: cluster, Order: []connect.Way{connect.CLI}}, o)
		if err != nil {
			t.Fatalf("%q: %v", cluster, err)
		}
		info, err := client.Info(t.Context())
		if err != nil || info.Cluster != want || choice.Way != connect.CLI {
			t.Errorf("%q: %+v, %v", cluster, info, err)
		}
	}
}
