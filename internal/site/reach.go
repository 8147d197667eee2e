package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
	"github.com/tuneplane/tp/internal/tomlfile"
)

// Transports are the ways to a cluster, in the order tp tries them.
var Transports = []string{"url", "socket", "child", "cli"}

// CheckTransports refuses what is no way, and a way that comes twice.
func CheckTransports(list []string) error {
	for i, name := range list {
		switch {
		case !slices.Contains(Transports, name):
			text := fmt.Sprintf("%q: expected %s", name, strings.Join(Transports, ", "))
			if near := fault.Nearest(name, Transports); near != "" {
				text += fmt.Sprintf("; %s?", near)
			}
			return fmt.Errorf("%s", text)
		case slices.Contains(list[:i], name):
			return fmt.Errorf("%q comes twice", name)
		}
	}
	return nil
}

// reach lays the keys that say how a fleet is reached over the lower layer's.
// The name in Slurm goes with the token, so another URL takes it away as well.
func (fl *Fleet) reach(o Options, f *tomlfile.File, name string, k fleetKeys) error {
	at := func(key string) []string { return []string{"fleets", name, key} }
	if k.URL != "" && k.URL != fl.URL {
		fl.User = ""
	}
	for _, text := range []struct {
		key, value string
		into       *string
	}{{"user", k.User, &fl.User}, {"cluster", k.Cluster, &fl.Cluster}} {
		if strings.ContainsFunc(text.value, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return f.Errorf(at(text.key), "%q holds blanks or control characters", text.value)
		}
		set(text.into, text.value)
	}
	if k.Slurmrestd != "" {
		path, ok := expand(o, k.Slurmrestd)
		if !ok {
			return f.Errorf(at("slurmrestd"), "%q is no absolute path", k.Slurmrestd)
		}
		fl.Slurmrestd = path
	}
	list, key := k.Transports, "transports"
	if k.Transport != "" {
		if len(list) > 0 {
			return f.Errorf(at("transport"), "transports is set as well; one of them is enough")
		}
		list, key = []string{k.Transport}, "transport"
	}
	if err := CheckTransports(list); err != nil {
		return f.Errorf(at(key), "%w", err)
	}
	if len(list) > 0 {
		fl.Transports = list
	}
	if k.Fallback != nil {
		fl.NoFallback = !*k.Fallback
	}
	return nil
}
