package spec

import (
	"fmt"
	"regexp"
	"strconv"
)

var memoryForm = regexp.MustCompile(`^(\d{1,15})([KMGT])(?:i?B)?$`)

// maxMiB is an exbibyte: more is a typing error, and far from any overflow.
const maxMiB = 1 << 40

// ParseMemory reads memory per node and returns mebibytes, rounded up: 200G,
// 1000000M, 2T, with units of 1024 as in sbatch(1). "0" is 0 and stands for all
// memory of the node. A number without unit is refused: sbatch counts it in
// mebibytes, most people in gibibytes.
func ParseMemory(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	part := memoryForm.FindStringSubmatch(text)
	if part == nil {
		if isCount(text) {
			return 0, fmt.Errorf("%q: the unit is missing: write %sM (what sbatch reads) or %sG", text, text, text)
		}
		return 0, fmt.Errorf(`%q: expected a whole number with K, M, G or T, such as 200G, or 0 for the whole node`, text)
	}
	n, err := strconv.ParseInt(part[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", text, err)
	}
	mib := n
	switch part[2] {
	case "K":
		mib = (n + 1023) / 1024
	case "G":
		mib = n << 10
	case "T":
		mib = n << 20
	}
	switch {
	case n == 0:
		return 0, fmt.Errorf("%q: write 0 without a unit for the whole node", text)
	case n > maxMiB || mib > maxMiB:
		return 0, fmt.Errorf("%q: more than a node can have", text)
	}
	return mib, nil
}
