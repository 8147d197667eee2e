package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
)

// proxy stands between tp and a real slurmrestd. It passes everything on but
// submissions, with which it does what the test wants.
type proxy struct {
	w        *world
	network  string // of the server: tcp or unix
	target   string
	address  string
	listener net.Listener
	late     sync.WaitGroup

	mu     sync.Mutex
	submit func(request []byte, tp net.Conn) // nil: pass it on
	seen   int                               // submissions
	lines  []string                          // "METHOD /path" of every request
}

// proxyTo starts one; tp's fleet "faulty", the default from now on, goes
// through it. The token is asked of scontrol as on a real site.
func (w *world) proxyTo(network, target string) *proxy {
	w.Helper()
	p := &proxy{w: w, network: network, target: target, address: "127.0.0.1:0"}
	p.listen()
	w.Cleanup(func() { p.listener.Close(); p.late.Wait() })
	w.fleet("faulty", `url = "http://`+p.address+`"`, `token_command = ["scontrol", "token"]`)
	return p
}

// fleet adds a fleet to the site file and makes it the default. Nothing stands
// in for its address: the world has Slurm's commands too.
func (w *world) fleet(name string, lines ...string) {
	w.Helper()
	lines = append(lines, `transport = "url"`)
	w.edit(`(?m)^default_fleet = .*$`, fmt.Sprintf("default_fleet = %q", name))
	w.edit(`(?m)\n\[fleets\.devlab\]`, "\n[fleets."+name+"]\nkind = \"slurm\"\n"+strings.Join(lines, "\n")+"\n\n[fleets.devlab]")
}

// jwtAddress is where the release's own slurmrestd takes tokens.
func (w *world) jwtAddress() string {
	w.Helper()
	text, err := os.ReadFile(w.site)
	w.ok(err)
	m := regexp.MustCompile(`(?s)\[fleets\.devlab-jwt\].*?url = "http://([^"]+)"`).FindSubmatch(text)
	if m == nil {
		w.Fatalf("no fleet devlab-jwt in\n%s", text)
	}
	return string(m[1])
}

func (p *proxy) listen() {
	l, err := net.Listen("tcp", p.address)
	p.w.ok(err)
	p.listener, p.address = l, l.Addr().String()
	go func() {
		for {
			tp, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(tp)
		}
	}()
}

// serve takes one request of a connection.
func (p *proxy) serve(tp net.Conn) {
	defer tp.Close()
	r, err := http.ReadRequest(bufio.NewReader(tp))
	if err != nil {
		return
	}
	request, err := httputil.DumpRequest(r, true)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.lines = append(p.lines, r.Method+" "+r.URL.Path)
	p.mu.Unlock()
	do := p.pass
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/job/submit") {
		p.mu.Lock()
		p.seen++
		if p.submit != nil {
			do = p.submit
		}
		p.mu.Unlock()
	}
	do(request, tp)
}

// forward gives the whole answer of the server, nil if there was none.
func (p *proxy) forward(request []byte) []byte {
	server, err := net.Dial(p.network, p.target)
	if err != nil {
		return nil
	}
	defer server.Close()
	if _, err := server.Write(request); err != nil {
		return nil
	}
	answer, err := http.ReadResponse(bufio.NewReader(server), nil)
	if err != nil {
		return nil
	}
	answer.Close = true // one request for each connection
	whole, err := httputil.DumpResponse(answer, true)
	if err != nil {
		return nil
	}
	return whole
}

// onSubmit says what becomes of the submissions from now on.
func (p *proxy) onSubmit(do func(request []byte, tp net.Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.submit = do
}

// requests are those since the last call whose path has the part.
func (p *proxy) requests(part string) (all, with int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all = len(p.lines)
	for _, line := range p.lines {
		if strings.Contains(line, part) {
			with++
		}
	}
	p.lines = nil
	return all, with
}

func (p *proxy) submissions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// once does it to the first submission only.
func once(do func([]byte, net.Conn), then func([]byte, net.Conn)) func([]byte, net.Conn) {
	var first sync.Once
	return func(request []byte, tp net.Conn) {
		did := false
		first.Do(func() { did = true; do(request, tp) })
		if !did {
			then(request, tp)
		}
	}
}

func (p *proxy) pass(request []byte, tp net.Conn) { tp.Write(p.forward(request)) }

// drop has the job queued and says nothing.
func (p *proxy) drop(request []byte, _ net.Conn) { p.forward(request) }

// truncate has the job queued and says half of it.
func (p *proxy) truncate(request []byte, tp net.Conn) {
	answer := p.forward(request)
	tp.Write(answer[:len(answer)/2])
}

// lose cuts the connection and delivers nothing.
func (p *proxy) lose([]byte, net.Conn) {}

// later cuts the connection and delivers the request when it is time.
func (p *proxy) later(wait func(), delivered chan<- struct{}) func([]byte, net.Conn) {
	return func(request []byte, _ net.Conn) {
		p.late.Go(func() {
			wait()
			p.forward(request)
			close(delivered)
		})
	}
}

// notSlurm is a server of the test's own; it counts who comes.
func (w *world) notSlurm(handler http.HandlerFunc) (address string, visits func() int) {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.ok(err)
	var mu sync.Mutex
	count := 0
	server := &http.Server{Handler: handler, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			mu.Lock()
			count++
			mu.Unlock()
		}
	}}
	go server.Serve(l)
	w.Cleanup(func() { server.Close() })
	u := url.URL{Scheme: "http", Host: l.Addr().String()}
	return u.String(), func() int { mu.Lock(); defer mu.Unlock(); return count }
}
