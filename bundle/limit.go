package bundle

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tuneplane/tp/internal/fault"
)

// Limits of a bundle where [Source] names none: code, not checkpoints.
const (
	DefaultMaxBytes = 2 << 30
	DefaultMaxFiles = 200_000
)

func orDefault[T int | int64](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// tooMany names the directories with the most files.
func tooMany(found []entry, limit int) error {
	count := map[string]int{}
	for _, e := range found {
		count[path.Dir(e.path)]++
	}
	var lines []string
	for _, dir := range largest(count, 10) {
		lines = append(lines, fmt.Sprintf("%7d files in %s", count[dir], dir))
	}
	return fault.New(fault.Usage, "%d files would be packed, more than %d; most are in\n  %s", len(found), limit, strings.Join(lines, "\n  ")).
		WithHint("list what is not code in .gitignore; data goes up with: tp dataset push")
}

// tooLarge names the ten largest files.
func (s *Selection) tooLarge(limit int64) error {
	size := map[string]int64{}
	for _, f := range s.Files {
		size[f.Path] = f.Size
	}
	var lines []string
	for _, name := range largest(size, 10) {
		lines = append(lines, fmt.Sprintf("%8.1f MiB %s", float64(size[name])/(1<<20), name))
	}
	return fault.New(fault.Usage, "%.1f MiB would be packed, more than %.1f MiB; the largest are\n  %s",
		float64(s.Bytes)/(1<<20), float64(limit)/(1<<20), strings.Join(lines, "\n  ")).
		WithHint("list what is not code in .gitignore; data goes up with: tp dataset push")
}

// largest returns the n names with the largest values.
func largest[T int | int64](value map[string]T, n int) []string {
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if value[a] != value[b] {
			if value[a] > value[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names[:min(n, len(names))]
}

// Largest returns the n largest files, for the summary.
func (s *Selection) Largest(n int) []File {
	files := slices.Clone(s.Files)
	slices.SortStableFunc(files, func(a, b File) int { return int(min(max(b.Size-a.Size, -1), 1)) })
	return files[:min(n, len(files))]
}
