package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tuneplane/tp/slurm"
)

// Slurm error numbers that change what tp does (slurm_errno.h).
const (
	ErrProtocolAuth   = 1007 // SLURM_PROTOCOL_AUTHENTICATION_ERROR
	ErrAuthExpired    = 6001 // ESLURM_AUTH_EXPIRED
	ErrInvalidJobID   = 2017 // ESLURM_INVALID_JOB_ID
	ErrZeroBytes      = 5005 // SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT
	ErrNoDBConnection = 7000 // ESLURM_DB_CONNECTION
	ErrParsing        = 9001 // "Failure during parsing", always after the real reason
	ErrEmptyResult    = 9003 // ESLURM_REST_EMPTY_RESULT
)

// Envelope is what every answer has around its payload.
type Envelope struct {
	Meta struct {
		// v0.0.38 and .39 write Slurm; encoding/json matches either case.
		Slurm struct {
			Release Text `json:"release"`
			Cluster Text `json:"cluster"` // from v0.0.40
		} `json:"slurm"`
	} `json:"meta"`
	Errors   []Message `json:"errors"`
	Warnings []Message `json:"warnings"`
}

// Message is one entry of errors[] or warnings[].
type Message struct {
	Description Text `json:"description"`
	Text        Text `json:"error"`
	Number      Num  `json:"error_number"`
	Code        Num  `json:"error_code"` // v0.0.38, submit
	Errno       Num  `json:"errno"`      // v0.0.38, nodes and partitions
	Source      Text `json:"source"`
}

func (m Message) number() int {
	return cmp.Or(m.Number.Int(), m.Code.Int(), m.Errno.Int())
}

// noise are phrases that say nothing beside a real reason.
var noise = []string{
	"Unspecified error", "Failure during parsing", "Batch job submission failed", "No error", "Nothing found",
}

// Describe joins what the entries say, each thing once, and picks the first
// number that names a reason.
func Describe(list []Message) (number int, words string) {
	var parts, dull []string
	for _, m := range list {
		if n := m.number(); n > 0 && (number == 0 || number == ErrParsing) {
			number = n
		}
		for _, s := range []Text{m.Text, m.Description} {
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

// Has reports whether an entry carries the number.
func (e *Envelope) Has(number int) bool {
	return slices.ContainsFunc(e.Errors, func(m Message) bool { return m.number() == number })
}

// Notes are the warnings, and the errors of an accepted request, verbatim.
func (e *Envelope) Notes() []string {
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

// Refusal makes an error of errors[]; status is that of HTTP, 0 for a command.
func (e *Envelope) Refusal(op string, status int) *slurm.Error {
	number, words := Describe(e.Errors)
	if words == "" {
		_, words = Describe(e.Warnings) // a wrong type is only warned of
	}
	if words == "" {
		words = "refused without a reason"
	}
	return &slurm.Error{Op: op, Number: number, Text: words, HTTP: status}
}
