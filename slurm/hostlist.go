package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxHosts bounds what [Expand] makes of one expression. The largest Slurm
// clusters have some ten thousand nodes; a longer list is a typing error or
// an attack.
const MaxHosts = 100_000

// Expand writes out a host list: "n[001-003,7],m1" is n001 n002 n003 n7 m1,
// as "scontrol show hostnames" does. Several brackets multiply, in its order:
// see fastest. Duplicates stay.
func Expand(list string) ([]string, error) {
	var out []string
	for _, item := range splitHosts(list) {
		names, err := expandItem(item)
		if err != nil {
			return nil, fmt.Errorf("host list %q: %w", list, err)
		}
		if len(out)+len(names) > MaxHosts {
			return nil, fmt.Errorf("host list %q: more than %d hosts", list, MaxHosts)
		}
		out = append(out, names...)
	}
	return out, nil
}

// splitHosts cuts at the commas and blanks outside brackets and drops empty items.
func splitHosts(list string) []string {
	var out []string
	depth, from := 0, 0
	for i := range len(list) + 1 {
		end := i == len(list)
		switch {
		case end || depth == 0 && strings.IndexByte(", \t\n", list[i]) >= 0:
			if item := strings.TrimSpace(list[from:i]); item != "" {
				out = append(out, item)
			}
			from = i + 1
		case list[i] == '[':
			depth++
		case list[i] == ']':
			depth--
		}
	}
	return out
}

// expandItem expands one name with its brackets.
func expandItem(item string) ([]string, error) {
	var texts []string     // before each bracket
	var numbers [][]string // inside each
	total, rest := 1, item
	for {
		open := strings.IndexAny(rest, "[]")
		if open < 0 {
			break
		}
		if rest[open] == ']' {
			return nil, fmt.Errorf("%q has a ] without its [", item)
		}
		length := strings.IndexAny(rest[open+1:], "[]")
		if length < 0 || rest[open+1+length] == '[' {
			return nil, fmt.Errorf("%q has a [ without its ]", item)
		}
		list, err := expandRanges(rest[open+1 : open+1+length])
		if err != nil {
			return nil, err
		}
		if total *= len(list); total > MaxHosts {
			return nil, fmt.Errorf("more than %d hosts", MaxHosts)
		}
		texts, numbers = append(texts, rest[:open]), append(numbers, list)
		rest = rest[open+length+2:]
	}
	out := make([]string, total)
	at := make([]int, len(numbers))
	for i := range out {
		n := i
		for _, k := range fastest(len(numbers)) {
			at[k], n = n%len(numbers[k]), n/len(numbers[k])
		}
		var b strings.Builder
		for k, text := range texts {
			b.WriteString(text + numbers[k][at[k]])
		}
		out[i] = b.String() + rest
	}
	return out, nil
}

// fastest is the order in which Slurm counts several brackets: the last one runs
// fastest, then the first, the second and so on.
func fastest(brackets int) []int {
	var order []int
	if brackets > 0 {
		order = append(order, brackets-1)
	}
	for k := range brackets - 1 {
		order = append(order, k)
	}
	return order
}

// expandRanges expands "001-003,7", the inside of one bracket.
func expandRanges(ranges string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(ranges, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, okFrom := hostNumber(low)
		to, okTo := hostNumber(high)
		if !okFrom || !okTo || from > to {
			return nil, fmt.Errorf("bad range %q", part)
		}
		if to-from >= MaxHosts || len(out)+int(to-from) >= MaxHosts {
			return nil, fmt.Errorf("range %q has more than %d hosts", part, MaxHosts)
		}
		for n := from; n <= to; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	return out, nil
}

// hostNumber reads up to 18 digits, which always fit.
func hostNumber(digits string) (int64, bool) {
	if digits == "" || len(digits) > 18 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// Compress is the inverse of [Expand]: names that differ in their last number
// share a bracket, sorted and without duplicates.
func Compress(names []string) string {
	numbers := map[string][]string{} // prefix → digits
	var order []string
	for _, name := range names {
		prefix := strings.TrimRight(name, "0123456789")
		digits := name[len(prefix):]
		if _, ok := hostNumber(digits); !ok {
			prefix, digits = name, ""
		}
		if _, seen := numbers[prefix]; !seen {
			order = append(order, prefix)
		}
		numbers[prefix] = append(numbers[prefix], digits)
	}
	var out []string
	for _, prefix := range order {
		digits := numbers[prefix]
		slices.SortFunc(digits, compareDigits)
		digits = slices.Compact(digits)
		if digits[0] == "" {
			out = append(out, prefix)
			digits = digits[1:]
		}
		switch len(digits) {
		case 0:
		case 1:
			out = append(out, prefix+digits[0])
		default:
			out = append(out, prefix+"["+joinRanges(digits)+"]")
		}
	}
	return strings.Join(out, ",")
}

func compareDigits(a, b string) int {
	x, _ := hostNumber(a)
	y, _ := hostNumber(b)
	if x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// joinRanges folds sorted numbers into "001-003,7".
func joinRanges(digits []string) string {
	var parts []string
	for i := 0; i < len(digits); {
		first, _ := hostNumber(digits[i])
		last := i
		for last+1 < len(digits) && digits[last+1] == fmt.Sprintf("%0*d", len(digits[i]), first+int64(last-i)+1) {
			last++
		}
		if last == i {
			parts = append(parts, digits[i])
		} else {
			parts = append(parts, digits[i]+"-"+digits[last])
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}
