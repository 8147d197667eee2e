package ledger

import "strings"

// MaxSlug bounds a slug, in bytes: experiment names may have 255, but a path
// has several parts and Slurm's own limit for a path is 1,024.
const MaxSlug = 100

// Slug makes a directory name of any text: every character outside
// [A-Za-z0-9._+@=-] becomes "_", as does a leading dot or dash. It is not
// injective and need not be, for below it are run ids.
func Slug(s string) string {
	var b strings.Builder
	for i, r := range s {
		if b.Len() == MaxSlug {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_+@=", r),
			i > 0 && (r == '.' || r == '-'):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}
