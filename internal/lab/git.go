package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/spec"
)

// MaxListed bounds the changed and the untracked files that a provenance
// lists, each. A list of exactly this length may have been cut.
const MaxListed = 1000

// Git reads the state of the packed directories below root: commit, branch,
// what differs from it and the hash of the difference. Outside git it returns a
// provenance without commit. Files elsewhere in the repository do not count:
// they do not travel.
func Git(ctx context.Context, root string, dirs []string) (spec.Provenance, error) {
	if !inGit(root) {
		return spec.Provenance{}, nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return spec.Provenance{}, fault.New(fault.Usage, "%s is in a git repository, but git is not installed here", root)
	}
	g := &repo{root: root}
	remotes, err := g.readConfig(ctx)
	if err != nil {
		return spec.Provenance{}, err
	}
	var p spec.Provenance
	upstream, err := g.status(ctx, &p, dirs)
	if err != nil {
		return spec.Provenance{}, err
	}
	p.Remote = cleanRemote(pickRemote(remotes, upstream))
	if p.Dirty && p.Commit != "" {
		p.PatchHash, err = g.patchHash(ctx, dirs)
	}
	return p, err
}

// Nested adds to p what differs in repositories inside root, such as submodules:
// git status says nothing of their files, and they travel all the same. Each is
// read by itself, for its configuration is as hostile as that of the outer one.
// What git does not track as a whole has no commit to differ from.
func Nested(ctx context.Context, root string, repos []string, p *spec.Provenance) error {
	untracked := map[string]bool{}
	for _, name := range p.Untracked {
		untracked[name] = true
	}
	for _, repo := range slices.Sorted(slices.Values(repos)) { // the outer one comes first
		if untracked[repo+"/"] {
			continue
		}
		inside, err := Git(ctx, filepath.Join(root, repo), []string{"."})
		if err != nil {
			return err
		}
		for _, name := range inside.Untracked {
			untracked[repo+"/"+name] = true
		}
		if !inside.Dirty {
			continue
		}
		p.Dirty = true
		for _, name := range inside.Changed[:min(len(inside.Changed), MaxListed-len(p.Changed))] {
			p.Changed = append(p.Changed, repo+"/"+name)
		}
		sum := sha256.Sum256([]byte(p.PatchHash + "\x00" + repo + "\x00" + inside.PatchHash))
		p.PatchHash = hex.EncodeToString(sum[:])
	}
	return nil
}

func inGit(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// status makes the one call that reads the work tree.
func (g *repo) status(ctx context.Context, p *spec.Provenance, dirs []string) (upstream string, err error) {
	args := append([]string{"status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all",
		"--no-renames", "--ignore-submodules=dirty", "--"}, dirs...)
	full := errors.New("enough")
	err = g.run(ctx, args, func(out io.Reader) error {
		scan := bufio.NewScanner(out)
		scan.Buffer(make([]byte, 0, 64<<10), 1<<20)
		scan.Split(splitNUL)
		for scan.Scan() {
			line := scan.Text()
			switch {
			case strings.HasPrefix(line, "# branch.oid "):
				if oid := line[len("# branch.oid "):]; oid != "(initial)" {
					p.Commit = oid
				}
			case strings.HasPrefix(line, "# branch.head "):
				if head := line[len("# branch.head "):]; head != "(detached)" {
					p.Branch = head
				}
			case strings.HasPrefix(line, "# branch.upstream "):
				upstream = line[len("# branch.upstream "):]
			case strings.HasPrefix(line, "1 "), strings.HasPrefix(line, "u "):
				p.Dirty = true
				fields := 9 // "1 XY sub mH mI mW hH hI path"
				if line[0] == 'u' {
					fields = 11 // "u XY sub m1 m2 m3 mW h1 h2 h3 path"
				}
				if part := strings.SplitN(line, " ", fields); len(part) == fields && len(p.Changed) < MaxListed {
					p.Changed = append(p.Changed, part[fields-1])
				}
			case strings.HasPrefix(line, "? "):
				// Untracked files come last; a million of them need not be read.
				if len(p.Untracked) == MaxListed {
					return full
				}
				p.Untracked = append(p.Untracked, line[2:])
			}
		}
		return scan.Err()
	})
	if errors.Is(err, full) {
		err = nil
	}
	return upstream, err
}

// patchHash identifies the difference to the commit, so that two dirty runs
// can be told apart.
func (g *repo) patchHash(ctx context.Context, dirs []string) (string, error) {
	hash := sha256.New()
	args := append([]string{"diff", "HEAD", "--no-ext-diff", "--no-textconv", "--binary", "--full-index", "--no-color", "--no-renames",
		"--unified=3", "--diff-algorithm=myers", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=dirty", "--"}, dirs...)
	err := g.run(ctx, args, func(out io.Reader) error {
		_, err := io.Copy(hash, out)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

func splitNUL(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// explainGit turns git's own words into ours where a user can act.
func explainGit(root string, err error, stderr string) error {
	stderr = strings.TrimSpace(stderr)
	if strings.Contains(stderr, "dubious ownership") {
		return fault.New(fault.Usage, "git does not read %s: the repository belongs to somebody else", root).
			WithHint("git config --global --add safe.directory %s", root)
	}
	line, _, _ := strings.Cut(stderr, "\n")
	return fmt.Errorf("git in %s: %s (%w)", root, line, err)
}
