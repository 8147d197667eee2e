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

func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		prev := row[0]
		row[0] = i + 1
		for j := range b {
			cur := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j+1]+1, row[j]+1, prev+cost)
			prev = cur
		}
	}
	return row[len(b)]
}
