package slurm

import (
	"strings"
	"unicode/utf8"
)

// FilterableName reports whether accounting can be asked for jobs of this name:
// slurmrestd and sacct split names at commas and strip quotes, and slurmdbd
// 22.05 fails on other alphabets (MariaDB error 1267).
func FilterableName(name string) bool {
	return name != "" && name == strings.TrimSpace(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r >= 0x7f || strings.ContainsRune("\"'`,\\", r)
	})
}

// Named reports whether the job is this user's and has this name. It compares
// exactly where the controller reports the name; accounting stores it changed.
func (j Job) Named(user, name string) bool {
	if j.User != user && j.User != "" {
		return false
	}
	if j.FromDB {
		return asStored(j.Name) == asStored(name)
	}
	return j.Name == name
}

// asStored folds a name the way slurmdbd may have changed it: " becomes `, and
// on a database without UTF-8 a letter becomes one or more question marks.
func asStored(name string) string {
	var b strings.Builder
	unknown := false
	for _, r := range name {
		switch {
		case r == '?' || r >= utf8.RuneSelf:
			if !unknown {
				b.WriteByte('?')
			}
			unknown = true
			continue
		case r == '"':
			r = '`'
		}
		unknown = false
		b.WriteRune(r)
	}
	return b.String()
}
