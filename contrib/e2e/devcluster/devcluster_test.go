// Package devcluster checks what contrib/devcluster promises to the other
// end-to-end tests, on each release that contrib/test brought up: six nodes
// with GPUs, both slurmrestd doors, the same home in and outside, loopback only.
package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cluster is one release of $TP_E2E_RELEASES, driven through $TP_DEVCLUSTER.
type cluster struct {
	script, release string
	site            string // text of its site file
}

func each(t *testing.T, check func(*testing.T, cluster)) {
	releases, script := strings.Fields(os.Getenv("TP_E2E_RELEASES")), os.Getenv("TP_DEVCLUSTER")
	if len(releases) == 0 || script == "" {
		t.Skip("no cluster: TP_E2E_RELEASES and TP_DEVCLUSTER are not set (contrib/test sets them)")
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			c := cluster{script: script, release: release}
			c.site = c.exec(t, "cat", strings.TrimSpace(c.exec(t, "printenv", "TP_SITE")))
			check(t, c)
		})
	}
}

// exec runs a command as the ordinary user of the cluster and returns its stdout.
func (c cluster) exec(t *testing.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.script, append([]string{"exec", c.release, "--"}, command...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, stderr.String())
	}
	return string(out)
}

// url is the first one of a scheme in the site file.
func (c cluster) url(t *testing.T, scheme string) string {
	t.Helper()
	m := regexp.MustCompile(`url = "` + scheme + `://([^"]+)"`).FindStringSubmatch(c.site)
	if m == nil {
		t.Fatalf("no %s url in the site file:\n%s", scheme, c.site)
	}
	return m[1]
}

func TestSixNodesAndAccounting(t *testing.T) {
	each(t, func(t *testing.T, c cluster) {
		if version := c.exec(t, "sinfo", "--version"); !strings.Contains(version, c.release) {
			t.Logf("wanted Slurm %s, found %s", c.release, version)
		}
		nodes := strings.Fields(c.exec(t, "sinfo", "-h", "-N", "-p", "h200,h100,cpu", "-o", "%N=%G"))
		want := "cpu-1=(null) cpu-2=(null) h100-1=gpu:h100:8 h100-2=gpu:h100:8 h200-1=gpu:h200:8 h200-2=gpu:h200:8"
		if got := strings.Join(nodes, " "); got != want {
			t.Errorf("wanted nodes %s, found %s", want, got)
		}
		accounts := c.exec(t, "sacctmgr", "-n", "-P", "show", "assoc", "user=bob", "format=account")
		if !strings.Contains(accounts, "research") || !strings.Contains(accounts, "vip") {
			t.Errorf("wanted bob in research and vip, found %q", accounts)
		}
	})
}

func TestJobSeesItsGPUsAndHome(t *testing.T) {
	each(t, func(t *testing.T, c cluster) {
		// srun, not sbatch: its answer comes back without polling.
		out := c.exec(t, "srun", "-p", "h200", "--gres=gpu:h200:2", "sh", "-c", `echo "$CUDA_VISIBLE_DEVICES $HOME"; test -w "$HOME"`)
		gpus, home, _ := strings.Cut(strings.TrimSpace(out), " ")
		if len(strings.Split(gpus, ",")) != 2 {
			t.Errorf("wanted two GPUs, found %q", gpus)
		}
		if info, err := os.Stat(home); err != nil || !info.IsDir() {
			t.Errorf("wanted the home %s under the same path outside: %v", home, err)
		}
		for _, tool := range []string{"git", "python3", "zstd", "curl", "tar"} {
			c.exec(t, tool, "--version")
		}
	})
}

func TestRestAnswersOnBothDoors(t *testing.T) {
	each(t, func(t *testing.T, c cluster) {
		socket := c.url(t, "unix")
		// The client runs here as root, which slurmrestd accepts; the folder keeps others out.
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		}}
		get(t, client, "http://localhost/openapi/v3", nil)
		token := strings.TrimPrefix(strings.TrimSpace(c.exec(t, "scontrol", "token")), "SLURM_JWT=")
		user := strings.TrimSpace(c.exec(t, "id", "-un"))
		get(t, &http.Client{Timeout: 10 * time.Second}, "http://"+c.url(t, "http")+"/openapi/v3",
			http.Header{"X-Slurm-User-Name": {user}, "X-Slurm-User-Token": {token}})

		other, err := exec.Command(c.script, "exec", c.release, "--user", "bob", "--",
			"curl", "-s", "--unix-socket", socket, "http://localhost/openapi/v3").CombinedOutput()
		if user != "bob" && err == nil {
			t.Errorf("bob reached the socket of %s: %s", user, other)
		}
	})
}

func get(t *testing.T, client *http.Client, url string, header http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: wanted 200, found %s", url, response.Status)
	}
}

// TestOnlyLoopbackListens looks at every socket in the release's thousand ports.
func TestOnlyLoopbackListens(t *testing.T) {
	each(t, func(t *testing.T, c cluster) {
		var rest int
		if _, err := fmt.Sscanf(c.url(t, "http"), "127.0.0.1:%d", &rest); err != nil {
			t.Fatalf("%s: %v", c.url(t, "http"), err)
		}
		base := rest - 820
		seen := 0
		for _, line := range strings.Split(c.exec(t, "ss", "-Hltn"), "\n") {
			fields := strings.Fields(line)
			if len(fields) < 4 {
				continue
			}
			host, port, err := net.SplitHostPort(fields[3])
			n, _ := strconv.Atoi(port)
			if err != nil || n < base || n >= base+1000 {
				continue
			}
			seen++
			if !strings.HasPrefix(host, "127.") {
				t.Errorf("listens on %s", fields[3])
			}
		}
		if seen < 10 { // slurmctld, slurmdbd, MariaDB, slurmrestd and six slurmd
			t.Errorf("wanted 10 listening ports from %d on, found %d", base, seen)
		}
	})
}
