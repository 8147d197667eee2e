package rest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// dialect is the NN of /slurm/v0.0.NN. What it changes in a request is in the
// table of encode.go; what it changes in answers is, but for the few questions
// below, absorbed by the decoders.
type dialect int

// Slurm 22.05 to 26.05 serve these; each release three or four of them.
const (
	oldest dialect = 38
	newest dialect = 45
)

func (d dialect) String() string { return fmt.Sprintf("v0.0.%d", int(d)) }

// parseDialect reads "v0.0.42"; unknown text gives 0.
func parseDialect(s string) dialect {
	digits, ok := strings.CutPrefix(s, "v0.0.")
	n, err := strconv.Atoi(digits)
	if d := dialect(n); ok && err == nil && d >= oldest && d <= newest {
		return d
	}
	return 0
}

// servers are the releases that speak a dialect.
var servers = map[dialect]string{
	38: "22.05 to 23.11", 39: "23.02 to 24.05", 40: "23.11 to 25.05", 41: "24.05 to 25.11",
	42: "24.11 to 26.05", 43: "25.05 and newer", 44: "25.11 and newer", 45: "26.05 and newer",
}

// serves names the releases that speak d, for messages.
func (d dialect) serves() string { return "Slurm " + servers[d] }

// bareNumbers: v0.0.39 wants times and memory as plain numbers.
func (d dialect) bareNumbers() bool { return d == 39 }

// jobUserFilter: accounting filters jobs by user from v0.0.40 on.
func (d dialect) jobUserFilter() bool { return d >= 40 }

// skipSteps: accounting can leave out the job steps, half of the answer.
func (d dialect) skipSteps() bool { return d >= 42 }

// silentCancel: DELETE answers 200 without a word for a job that does not
// exist (seen on 24.11.5: .40 and .41; from .42 on there is a status list).
func (d dialect) silentCancel() bool { return d >= 39 && d <= 41 }

// jobStates: slurmctld tells states alone for a list of ids (from 23.11.5 on).
func (d dialect) jobStates() bool { return d >= 40 }

// idList is a query for many ids. v0.0.38 takes them with commas between, the
// later ones only one by one (a comma is "not RFC7320 compliant" to 24.11.5 and
// 26.05.5).
func (d dialect) idList(key string, ids []slurm.JobID) string {
	var b strings.Builder
	for i, id := range ids {
		switch {
		case i == 0:
			b.WriteString(key + "=")
		case d < 39:
			b.WriteString("%%2C") // the path is a format
		default:
			b.WriteString("&" + key + "=")
		}
		b.WriteString(id.String())
	}
	return b.String()
}
