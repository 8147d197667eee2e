package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// ParseGRES reads generic resources in every spelling that Slurm prints:
//
//	gpu:h200:8(S:0-1)                        node, configured
//	gpu:h100:3(IDX:0-2),gpu:l4:0(IDX:N/A)    node, in use
//	gres:gpu:h200:2   gres/gpu:h200:2        job, per node
//	cpu=1,mem=1000M,gres/gpu=2,gres/gpu:h200=2   TRES list
//
// Entries that count nothing, and TRES other than GRES, are left out. In a
// TRES list gres/gpu is the sum over all types; it appears in the result only
// as far as the typed entries do not account for it.
func ParseGRES(text string) []GRES {
	var out []GRES
	total := map[string]int{} // untyped TRES totals
	var totals []string
	for _, item := range splitGRES(text) {
		g, isTRES, ok := parseGRESItem(item)
		switch {
		case !ok || g.Count <= 0:
		case isTRES && g.Type == "":
			if _, seen := total[g.Name]; !seen {
				totals = append(totals, g.Name)
			}
			total[g.Name] += g.Count
		default:
			out = addGRES(out, g)
		}
	}
	for _, name := range totals {
		if left := total[name] - Count(out, name, ""); left > 0 {
			out = addGRES(out, GRES{Name: name, Count: left})
		}
	}
	return out
}

// String is the form of sbatch --gres: gpu:h200:8.
func (g GRES) String() string {
	if g.Type == "" {
		return g.Name + ":" + strconv.Itoa(g.Count)
	}
	return g.Name + ":" + g.Type + ":" + strconv.Itoa(g.Count)
}

func addGRES(list []GRES, g GRES) []GRES {
	at := slices.IndexFunc(list, func(have GRES) bool { return have.Name == g.Name && have.Type == g.Type })
	if at < 0 {
		return append(list, g)
	}
	list[at].Count = min(list[at].Count+g.Count, maxGRES)
	return list
}

// maxGRES keeps sums of nonsense counts from overflowing; Slurm's own counts
// have 64 bits, no device count has.
const maxGRES = 1 << 40

// splitGRES cuts at commas outside parentheses: IDX lists hold commas.
func splitGRES(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth <= 0
	})
}

func parseGRESItem(item string) (g GRES, isTRES, ok bool) {
	item, _, _ = strings.Cut(strings.TrimSpace(item), "(")
	item, isGRES := cutAnyPrefix(item, "gres/", "gres:")
	item, count, isTRES := strings.Cut(item, "=")
	if isTRES && !isGRES {
		return g, true, false // cpu=1, license/matlab=2
	}
	parts := strings.Split(item, ":")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "no_consume" })
	if len(parts) == 0 || parts[0] == "" || parts[0] == "N/A" {
		return g, isTRES, false
	}
	g.Name, g.Count = parts[0], 1
	if isTRES {
		parts = append(parts, count)
	}
	switch len(parts) {
	case 1:
		return g, isTRES, true
	case 2: // gpu:8 or gpu:h200
		if n, isCount := gresCount(parts[1]); isCount {
			g.Count = n
		} else {
			g.Type = parts[1]
		}
		return g, isTRES, true
	}
	g.Type = parts[1]
	g.Count, ok = gresCount(parts[2])
	return g, isTRES, ok
}

func cutAnyPrefix(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok {
			return rest, true
		}
	}
	return s, false
}

// gresCount reads "8" and "4K": gres.conf(5) allows K, M, G, T, P, powers of 1024.
func gresCount(s string) (int, bool) {
	shift := 0
	if s != "" {
		if unit := strings.IndexByte("KMGTP", s[len(s)-1]&^0x20); unit >= 0 {
			s, shift = s[:len(s)-1], 10*(unit+1)
		}
	}
	n, err := strconv.ParseUint(s, 10, 40)
	if err != nil {
		return 0, false
	}
	if n<<shift>>shift != n {
		return maxGRES, true
	}
	return int(min(n<<shift, maxGRES)), true
}
