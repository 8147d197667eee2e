package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/site"
	"github.com/tuneplane/tp/slurm"
)

// diskAdvice says what to do about a full or closed disk: where the file is
// says which setting names another place. It is "" for any other error.
func (a *app) diskAdvice(err error) string {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	closed := errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
	if !full && !closed {
		return ""
	}
	setting, path := "", ""
	var one *fs.PathError
	var two *os.LinkError
	switch {
	case errors.As(err, &one):
		path = one.Path
	case errors.As(err, &two):
		path = two.New
	}
	if a.conf != nil {
		for _, s := range []struct{ name, dir string }{
			{"state_dir", a.conf.StateDir}, {"run_root", a.conf.RunRoot}, {"path of [objects]", a.conf.Objects.Path},
		} {
			// A directory that could not be made names a parent of ours.
			if s.dir != "" && path != "" && (within(path, s.dir) || within(s.dir, path)) {
				setting = s.name
				break
			}
		}
	}
	switch {
	case full && setting != "":
		return fmt.Sprintf("make room there, or name another place by %s in ~/.config/tp/user.toml; then the same command again", setting)
	case full:
		return "make room there, then the same command again"
	case setting == "state_dir": // the user file may be as closed as the rest of the home directory
		return "XDG_STATE_HOME=DIR with a place that you may write, or state_dir in ~/.config/tp/user.toml"
	case setting != "":
		return fmt.Sprintf("name a place that you may write by %s in ~/.config/tp/user.toml; tp config show says what it is now", setting)
	}
	return ""
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// refusedToken makes a refused token a fault that names where it comes from;
// nil when the error is about something else.
func refusedToken(err error, f site.Fleet) error {
	var auth *slurm.AuthError
	if !errors.As(err, &auth) {
		return nil
	}
	found := fault.New(fault.Refused, "%w", err)
	switch {
	case f.TokenFile != "":
		return found.WithHint("scontrol token >%s", f.TokenFile)
	case len(f.TokenCommand) > 0:
		return found.WithHint("%s, which has to print a token that cluster %s takes", strings.Join(f.TokenCommand, " "), f.Name)
	case os.Getenv("SLURM_JWT") != "":
		return found.WithHint("export $(scontrol token)")
	}
	return found.WithHint("scontrol token, which has to print one that cluster %s takes", f.Name)
}
