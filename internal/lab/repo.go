package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// repo calls git so that nothing from the repository is executed.
type repo struct {
	root   string
	config [][2]string // settings that override the repository's own
}

// harmless switches off everything a repository's configuration can make git
// execute while it reads: monitors, hooks, external diffs.
var harmless = [][2]string{
	{"core.fsmonitor", "false"},
	{"core.hooksPath", "/dev/null"},
	{"core.pager", "cat"},
	{"diff.external", ""},
	{"diff.ignoreSubmodules", "dirty"},
	{"status.showUntrackedFiles", "all"},
	{"submodule.recurse", "false"},
	{"commit.gpgSign", "false"},
}

// run starts git with the overrides and hands its output to read. An error of
// read stops git.
func (g *repo) run(ctx context.Context, args []string, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "--literal-pathspecs"}, args...)...)
	cmd.Dir = g.root
	cmd.Env = g.env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(out); err != nil {
		cancel()
		_ = cmd.Wait()
		return err
	}
	if err := cmd.Wait(); err != nil {
		return explainGit(g.root, err, stderr.String())
	}
	return nil
}

// env is the caller's environment without its GIT_ variables: tp may run in a
// hook, where GIT_DIR points to another repository. The overrides travel in
// GIT_CONFIG_KEY_n, which takes any name, also one with '='.
func (g *repo) env() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		keep := name == "GIT_CONFIG_GLOBAL" || name == "GIT_CONFIG_SYSTEM" || name == "GIT_CONFIG_NOSYSTEM" || name == "GIT_CEILING_DIRECTORIES"
		if keep || !strings.HasPrefix(name, "GIT_") {
			env = append(env, v)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1")
	settings := append(append([][2]string(nil), harmless...), g.config...)
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
}

// wantedConfig asks for core.hooksPath too: it is always set, by harmless, and
// git config fails when nothing matches.
const wantedConfig = `^(remote\..*\.url|filter\..*\.(clean|smudge|process|required)|diff\..*\.(command|textconv)|core\.hookspath)$`

var driver = regexp.MustCompile(`^(filter|diff)\.(.*)\.[a-z]+$`)

// readConfig learns the remotes, and switches off the filters and diff drivers
// that the repository itself defines: git runs a clean filter for every changed
// file. Filters from the user's and the system's configuration (LFS) stay.
func (g *repo) readConfig(ctx context.Context) (remotes map[string]string, err error) {
	remotes = map[string]string{}
	args := []string{"config", "--show-scope", "--null", "--includes", "--get-regexp", wantedConfig}
	err = g.run(ctx, args, func(out io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(out, maxFile))
		fields := strings.Split(string(data), "\x00")
		for i := 0; i+1 < len(fields); i += 2 {
			scope := fields[i]
			key, value, _ := strings.Cut(fields[i+1], "\n")
			if name, ok := strings.CutPrefix(key, "remote."); ok {
				remotes[strings.TrimSuffix(name, ".url")] = value
				continue
			}
			part := driver.FindStringSubmatch(key)
			if part == nil || (scope != "local" && scope != "worktree") {
				continue
			}
			if part[1] == "filter" {
				base := "filter." + part[2]
				g.config = append(g.config, [2]string{base + ".clean", ""}, [2]string{base + ".smudge", ""},
					[2]string{base + ".process", ""}, [2]string{base + ".required", "false"})
			} else {
				g.config = append(g.config, [2]string{key, ""})
			}
		}
		return err
	})
	return remotes, err
}

// pickRemote is the upstream's remote, else origin, else the only one.
func pickRemote(remotes map[string]string, upstream string) string {
	best := ""
	for name := range remotes {
		if strings.HasPrefix(upstream, name+"/") && len(name) > len(best) {
			best = name
		}
	}
	if best != "" {
		return remotes[best]
	}
	if url, ok := remotes["origin"]; ok {
		return url
	}
	if len(remotes) == 1 {
		for _, url := range remotes {
			return url
		}
	}
	return ""
}

var userInfo = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://)[^/]*@`)

// cleanRemote drops what may be a credential: user and password of a URL, its
// query and fragment. The user of ssh stays; it is "git" and no secret.
func cleanRemote(remote string) string {
	if !strings.Contains(remote, "://") {
		return remote // git@host:path, or a directory
	}
	u, err := url.Parse(remote)
	if err != nil {
		remote, _, _ = strings.Cut(userInfo.ReplaceAllString(remote, "$1"), "?")
		return remote
	}
	user := u.User.Username()
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if strings.Contains(u.Scheme, "ssh") && user != "" {
		u.User = url.User(user)
	}
	return u.String()
}
