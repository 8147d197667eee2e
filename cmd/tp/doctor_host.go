package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tuneplane/tp/internal/site"
	slurmcli "github.com/tuneplane/tp/slurm/cli"
)

// versionOf is what a command says of itself, "" when it says nothing in time.
func versionOf(ctx context.Context, path string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return regexp.MustCompile(`\d+\.\d+(\.\d+)*`).FindString(string(out))
}

// tools are what tp itself runs.
func tools(ctx context.Context) []site.Finding {
	list := make([]site.Finding, 2)
	var group sync.WaitGroup
	for i, name := range []string{"git", "bash"} {
		group.Go(func() { list[i] = program(ctx, name, "install "+name) })
	}
	group.Wait()
	return list
}

func program(ctx context.Context, name, fix string) site.Finding {
	path, err := exec.LookPath(name)
	if err != nil {
		return found(site.Bad, name, fix, "not found")
	}
	version := versionOf(ctx, path, "--version")
	if version == "" {
		return found(site.Warn, name, path+" --version", "%s does not say its version", path)
	}
	return found(site.Good, name, "", "%s %s", path, version)
}

// unpackers are what a job on this machine needs.
func unpackers() []site.Finding {
	var list []site.Finding
	for _, name := range []string{"tar", "zstd", "sha256sum"} {
		path, err := exec.LookPath(name)
		if err != nil {
			list = append(list, found(site.Bad, name, "install "+name+": jobs unpack their code with it", "not found"))
		} else {
			list = append(list, found(site.Good, name, "", "%s", path))
		}
	}
	return list
}

// slurmTools are the commands, which tp can do without, one by one.
func (a *app) slurmTools(ctx context.Context, conf *site.Config) []site.Finding {
	if a.alone(conf) {
		return nil
	}
	missing := map[string]string{
		"sbatch":     "jobs are submitted through slurmrestd only",
		"squeue":     "own jobs are looked up one by one or in accounting",
		"scontrol":   "slurm.conf is not known, and no token can be made here",
		"sacct":      "accounting is asked through slurmrestd only",
		"sacctmgr":   "accounts are asked for through slurmrestd only",
		"slurmrestd": "no private one can be started",
	}
	var list []site.Finding
	var have []string
	dir := ""
	fleet, _ := conf.Fleet(a.cli.Fleet)
	tools := slurmcli.Tools{Dir: fleet.Tools}
	for _, name := range []string{"sbatch", "squeue", "scontrol", "sacct", "sacctmgr", "slurmrestd"} {
		program := tools.Path(name)
		if name == "slurmrestd" {
			program = cmp.Or(fleet.Slurmrestd, name)
		}
		path, err := exec.LookPath(program)
		if err != nil && fleet.Tools != "" && name == "sbatch" {
			list = append(list, found(site.Bad, "slurm tools", fmt.Sprintf("tools under [fleets.%s] in the site file", fleet.Name), "no sbatch in %s", fleet.Tools))
			continue
		}
		if err != nil {
			list = append(list, found(site.Note, "slurm tools", "", "no %s: %s", name, missing[name]))
			continue
		}
		if d := filepath.Dir(path); d != dir {
			dir = d
			name = path
		}
		have = append(have, name)
	}
	if len(have) == 0 {
		return list
	}
	if err := slurmcli.MissingConfig(); err != nil {
		return append(list, found(site.Bad, "slurm tools", "unset SLURM_CONF, or let it name slurm.conf", "%s cannot start: %v", strings.Join(have, " "), err))
	}
	version := versionOf(ctx, have[0], "--version")
	if version == "" {
		return append(list, found(site.Warn, "slurm tools", have[0]+" --version", "%s: what release they are is not known", strings.Join(have, " ")))
	}
	return append([]site.Finding{found(site.Good, "slurm tools", "", "%s %s", strings.Join(have, " "), version)}, list...)
}

// alone reports that jobs run on this machine and nowhere else.
func (a *app) alone(conf *site.Config) bool {
	fleet, err := conf.Fleet(a.cli.Fleet)
	return err == nil && fleet.Kind == site.Local
}

// checkRunRoot makes a run directory's parent and looks at its file system.
func (a *app) checkRunRoot() []site.Finding {
	const topic, fix = "run root", "run_root in ~/.config/tp/user.toml"
	l, err := a.ledger()
	if err != nil {
		return []site.Finding{found(site.Bad, topic, fix, "%v", err)}
	}
	root := a.conf.RunRoot
	if err := l.Probe(); err != nil {
		return []site.Finding{found(site.Bad, topic, fix, "%s: %v", root, err)}
	}
	kind, shared := fileSystem(root)
	list := []site.Finding{found(site.Good, topic, "", "%s takes exclusive files (%s)", root, kind)}
	if !shared && !a.alone(a.conf) {
		list = append(list, found(site.Note, topic, "", "%s is local to this host: all nodes of a cluster must see the same directory", kind))
	}
	for part := range strings.SplitSeq(strings.ToLower(root), "/") {
		if strings.Contains(part, "scratch") || strings.Contains(part, "purge") || part == "tmp" {
			list = append(list, found(site.Warn, topic, fix, "%s: the name %q suggests that old files are deleted there, and with them the record of runs", root, part))
			break
		}
	}
	return append(list, space(topic, root)...)
}

// checkPlaces looks at umask, home and state directory.
func (a *app) checkPlaces(conf *site.Config) []site.Finding {
	old := syscall.Umask(0)
	syscall.Umask(old)
	level := site.Good
	if old&0o700 != 0 {
		level = site.Bad
	}
	list := []site.Finding{found(level, "umask", "", "%04o; files of runs are 0600 whatever it is", old)}
	for _, d := range []struct{ topic, dir, fix string }{
		{"home", os.Getenv("HOME"), "state_dir in the site file: tp needs no home"},
		{"state dir", conf.StateDir, "state_dir in ~/.config/tp/user.toml"},
	} {
		dir := d.dir
		if dir == "" {
			list = append(list, found(site.Note, d.topic, "", "HOME is not set"))
			continue
		}
		for errors.Is(syscall.Access(dir, 0), fs.ErrNotExist) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir) // made when it is needed
		}
		kind, _ := fileSystem(dir)
		if err := syscall.Access(dir, 2); err != nil { // W_OK
			list = append(list, found(site.Warn, d.topic, d.fix, "%s cannot be written to: %v", d.dir, err))
			continue
		}
		list = append(list, found(site.Good, d.topic, "", "%s can be written to (%s)", d.dir, kind))
		list = append(list, space(d.topic, dir)...)
	}
	return list
}

// fileSystems by their magic number (statfs(2) and the sources of Lustre, GPFS
// and BeeGFS), and whether several hosts can mount one.
var fileSystems = map[uint32]struct {
	name   string
	shared bool
}{
	0x6969: {"NFS", true}, 0xbd00bd0: {"Lustre", true}, 0x47504653: {"GPFS", true}, 0x19830326: {"BeeGFS", true},
	0xc36400: {"Ceph", true}, 0xff534d42: {"CIFS", true}, 0xfe534d42: {"SMB", true}, 0x5346414f: {"AFS", true}, 0x1161970: {"GFS2", true},
	0x65735546: {"FUSE", true}, 0x6a656a63: {"virtiofs", true}, 0x2030528: {"OrangeFS", true},
	0xef53: {"ext4", false}, 0x58465342: {"XFS", false}, 0x9123683e: {"btrfs", false}, 0x1021994: {"tmpfs", false},
	0x2fc12fc1: {"ZFS", false}, 0x794c7630: {"overlay", false}, 0xf2f52010: {"f2fs", false},
}

// fileSystem names the file system of a path. One that is not in the list is
// taken for shared: nothing is said against it.
func fileSystem(path string) (name string, shared bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return err.Error(), true
	}
	magic := uint32(st.Type)
	if f, ok := fileSystems[magic]; ok {
		return f.name, f.shared
	}
	return fmt.Sprintf("file system 0x%x", magic), true
}

// What a place should have left: a bundle of the usual size, and files enough
// for a few runs.
const (
	leastBytes = 1 << 30
	leastFiles = 1000
)

// space warns of a place that is almost full. Quotas show here where the file
// system reports them by statfs(2), as Lustre, CephFS and NFS do for directories.
func space(topic, path string) []site.Finding {
	var st syscall.Statfs_t
	if syscall.Statfs(path, &st) != nil {
		return nil
	}
	left := st.Bavail * uint64(max(st.Bsize, 1))
	switch {
	case st.Blocks > 0 && left < leastBytes:
		return []site.Finding{found(site.Warn, topic, "df -h "+path+", quota -s", "%s has %d MiB left", path, left>>20)}
	case st.Files > 0 && st.Ffree < leastFiles:
		return []site.Finding{found(site.Warn, topic, "df -i "+path, "%s has room for %d files", path, st.Ffree)}
	}
	return nil
}
