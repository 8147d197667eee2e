package view

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// tailBytes is how much of metrics.jsonl is read from its end: the last few
// lines, and nothing of a file that has grown for days.
const tailBytes = 32 << 10

// Metrics is the last line of the run's out/metrics.jsonl as "name value"
// pairs, the step first; "" when there is none.
func Metrics(dir string) string {
	f, err := os.OpenFile(filepath.Join(dir, "out", "metrics.jsonl"), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		f.Seek(-tailBytes, io.SeekEnd)
	}
	var last map[string]any
	lines := bufio.NewScanner(io.LimitReader(f, tailBytes))
	for lines.Scan() {
		var m map[string]any
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.UseNumber()
		if dec.Decode(&m) == nil && len(m) > 0 {
			last = m
		}
	}
	var parts []string
	for name, v := range last {
		if n, ok := v.(json.Number); ok && name != "time" {
			text := n.String()
			if f, err := n.Float64(); err == nil && strings.ContainsAny(text, ".eE") {
				text = fmt.Sprintf("%.4g", f)
			}
			parts = append(parts, name+" "+text)
		}
	}
	slices.SortFunc(parts, func(a, b string) int {
		if sa, sb := strings.HasPrefix(a, "step "), strings.HasPrefix(b, "step "); sa != sb {
			if sa {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return strings.Join(parts[:min(len(parts), 8)], ", ")
}
