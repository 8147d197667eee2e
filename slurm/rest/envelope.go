package rest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Slurm error numbers that change what tp does (slurm_errno.h).
const (
	errProtocolAuth   = 1007 // SLURM_PROTOCOL_AUTHENTICATION_ERROR
	errInvalidJobID   = 2017 // ESLURM_INVALID_JOB_ID
	errZeroBytes      = 5005 // SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT
	errAuthExpired    = 1017 // ESLURM_AUTH_EXPIRED
	errEmptyResult    = 9003 // ESLURM_REST_EMPTY_RESULT
	errParsing        = 9001 // "Failure during parsing", always after the real reason
	errNoDBConnection = 7000 // ESLURM_DB_CONNECTION
)

// envelope is what every answer has around its payload.
type envelope struct {
	Meta struct {
		// v0.0.38 and .39 write Slurm; encoding/json matches either case.
		Slurm struct {
			Release text `json:"release"`
			Cluster text `json:"cluster"` // from v0.0.40
		} `json:"slurm"`
	} `json:"meta"`
	Errors   []message `json:"errors"`
	Warnings []message `json:"warnings"`
}

// message is one entry of errors[] or warnings[].
type message struct {
	Description text `json:"description"`
	Text        text `json:"error"`
	Number      num  `json:"error_number"`
	Code        num  `json:"error_code"` // v0.0.38, submit
	Errno       num  `json:"errno"`      // v0.0.38, nodes and partitions
	Source      text `json:"source"`
}

func (m message) number() int {
	return cmp.Or(m.Number.int(), m.Code.int(), m.Errno.int())
}

// noise are phrases that say nothing beside a real reason.
var noise = []string{
	"Unspecified error", "Failure during parsing", "Batch job submission failed", "No error", "Nothing found",
}

// describe joins what the entries say, each thing once, and picks the first
// number that names a reason.
func describe(list []message) (number int, words string) {
	var parts, dull []string
	for _, m := range list {
		if n := m.number(); n > 0 && (number == 0 || number == errParsing) {
			number = n
		}
		for _, s := range []text{m.Text, m.Description} {
			s := strings.TrimSpace(string(s))
			switch {
			case s == "":
			case slices.Contains(noise, s):
				dull = append(dull, s)
			case !slices.ContainsFunc(parts, func(have string) bool { return strings.Contains(have, s) }):
				// "unable to kill JobId=9: Invalid job id specified" says more
				// than the "Invalid job id specified" before it.
				parts = slices.DeleteFunc(parts, func(have string) bool { return strings.Contains(s, have) })
				parts = append(parts, s)
			}
		}
	}
	if len(parts) == 0 {
		parts = slices.Compact(dull)
	}
	return number, strings.Join(parts, "; ")
}

// has reports whether an entry carries the number.
func (e *envelope) has(number int) bool {
	return slices.ContainsFunc(e.Errors, func(m message) bool { return m.number() == number })
}

// notes are the warnings, and the errors of an accepted request, verbatim.
func (e *envelope) notes() []string {
	var out []string
	for _, m := range slices.Concat(e.Warnings, e.Errors) {
		s := string(cmp.Or(m.Description, m.Text))
		if m.Text != "" && !strings.Contains(s, string(m.Text)) {
			s += ": " + string(m.Text)
		}
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// refusal makes an error of errors[].
func (e *envelope) refusal(op string, status int) *slurm.Error {
	number, words := describe(e.Errors)
	if words == "" {
		_, words = describe(e.Warnings) // a wrong type is only warned of
	}
	if words == "" {
		words = "refused without a reason"
	}
	return &slurm.Error{Op: op, Number: number, Text: words, HTTP: status}
}
