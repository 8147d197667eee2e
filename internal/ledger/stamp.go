package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A stamp is the lengths of a run's event files and the change time of its
// directory: event files only grow, and a new one changes the directory. It
// reads no clock but the file server's own, and costs two to three stats.
//
//	"1733000000123456789 events.jsonl:1024 events.login2.jsonl:88"
func stampOf(dir string, others []string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	b := strconv.AppendInt(nil, info.ModTime().UnixNano(), 10)
	for i, name := range append([]string{mainEvents}, others...) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil && (i == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
		var size int64
		if err == nil {
			size = info.Size()
		}
		b = append(append(append(b, ' '), name...), ':')
		b = strconv.AppendInt(b, size, 10)
	}
	return string(b), nil
}

// fresh reports whether the stamp still holds for dir.
func fresh(dir, stamp string) bool {
	fields := strings.Fields(stamp)
	if len(fields) < 2 {
		return false
	}
	var others []string
	for _, f := range fields[2:] {
		name, _, _ := strings.Cut(f, ":")
		others = append(others, name)
	}
	now, err := stampOf(dir, others)
	return err == nil && now == stamp
}
