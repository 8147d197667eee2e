package fault

// Nearest is the candidate with the smallest edit distance to name, or "" when
// none is near enough to be meant (more than a third of its letters differ).
func Nearest(name string, candidates []string) string {
	best, bestDist := "", len([]rune(name))/3+2
	for _, c := range candidates {
		if d := distance([]rune(name), []rune(c)); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance counts edits, two letters swapped ("tiem") as one: the commonest
// slip of the fingers.
func distance(a, b []rune) int {
	var before []int // the row before the last
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
