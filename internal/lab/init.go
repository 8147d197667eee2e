package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tuneplane/tp/internal/fault"
)

// InitOptions of Init.
type InitOptions struct {
	Name  string // project; the directory's name when empty
	NoGit bool   // no repository and no first commit
}

const gitignore = `# what runs leave behind
outputs/
hf_export/
__pycache__/
*.pyc
datasets/*/raw/
datasets/*/data/

# never committed, and tp refuses to pack them
.env
.env.*
secrets.*
*.key
*.pem
`

// Init makes a lab in dir, which may exist but holds no lab yet. Files are
// prepared aside and then moved into place; nothing is overwritten. Unless told
// otherwise it begins a git repository with a first commit, for a run is traced
// back to its commit. A directory inside a repository gets no second one.
func Init(ctx context.Context, dir string, o InitOptions) (*Lab, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = filepath.Base(root)
	}
	if err := CheckName(o.Name); err != nil {
		return nil, fault.New(fault.Usage, "project %q: %w", o.Name, err).WithHint("tp init %s --name NAME", dir)
	}
	for _, name := range append([]string{"experiments", "common", "configs"}, Markers...) {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			return nil, fault.New(fault.Usage, "%s exists in %s; tp init overwrites nothing", name, root).WithHint("tp init in another directory")
		}
	}
	files := map[string]string{
		"tp.toml":              fmt.Sprintf("# A lab of tp. Keys of [defaults] are those of job.toml.\nname = %s\n", tomlString(o.Name)),
		"experiments/.gitkeep": "",
		"common/.gitkeep":      "",
		"configs/.gitkeep":     "",
		"README.md":            fmt.Sprintf("# %s\n\nOne directory under `experiments/` is one job: `tp new NAME`, then `tp submit NAME`.\n", o.Name),
	}
	if _, err := os.Lstat(filepath.Join(root, "README.md")); err == nil {
		delete(files, "README.md")
	}
	if _, err := os.Lstat(filepath.Join(root, ".gitignore")); err != nil {
		files[".gitignore"] = gitignore
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	if err := place(root, files); err != nil {
		return nil, err
	}
	if !o.NoGit && !inGit(root) {
		if err := firstCommit(ctx, root, files); err != nil {
			return nil, fmt.Errorf("the lab is made, but its first commit is not: %w", err)
		}
	}
	return Find(root, Options{})
}

// place writes files aside and moves each top-level entry into root. The
// marker goes last, so that a half-made lab is none.
func place(root string, files map[string]string) error {
	stage, err := os.MkdirTemp(root, ".tp-init-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	top := map[string]bool{}
	for name, text := range files {
		path := filepath.Join(stage, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	delete(top, "tp.toml")
	for name := range top {
		if err := moveNew(filepath.Join(stage, name), filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return moveNew(filepath.Join(stage, "tp.toml"), filepath.Join(root, "tp.toml"))
}

// moveNew renames without replacing. A file is linked, which fails when the
// name is taken; for a directory the name is claimed by mkdir, and rename may
// replace an empty directory.
func moveNew(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.Link(from, to); err != nil {
			return err
		}
		return os.Remove(from)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	return syscall.Rename(from, to) // os.Rename refuses every existing directory
}

// firstCommit begins the repository. Who has no identity in git gets one in
// this repository, from the account.
func firstCommit(ctx context.Context, root string, files map[string]string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fault.New(fault.Usage, "git is not installed").WithHint("install git, or tp init --no-git")
	}
	g := &repo{root: root}
	quiet := func(args ...string) error { return g.run(ctx, args, drain) }
	if err := quiet("init", "--quiet"); err != nil {
		return err
	}
	for _, setting := range [][2]string{{"user.name", accountName()}, {"user.email", accountMail()}} {
		if quiet("config", "--get", setting[0]) == nil {
			continue
		}
		if err := quiet("config", "--local", setting[0], setting[1]); err != nil {
			return err
		}
	}
	add := []string{"add", "--"}
	for name := range files {
		add = append(add, name)
	}
	if err := quiet(add...); err != nil {
		return err
	}
	return quiet("commit", "--quiet", "--no-verify", "-m", "Begin the lab")
}

func accountName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid-" + strconv.Itoa(os.Getuid())
}

func accountMail() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return accountName() + "@" + host
}

// tomlString is a TOML basic string. Names have no control characters.
func tomlString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
