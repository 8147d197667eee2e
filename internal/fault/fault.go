// Package fault is the error a user can act on: what went wrong and what to
// type next. Anything else that reaches the top is a bug or an I/O failure.
//
//	return fault.New(fault.Usage, "unknown series %q", name).WithHint("tp fleet show")
package fault

import (
	"errors"
	"fmt"
)

// Code is the exit code of the process.
type Code int

// Exit codes, one table for the whole program (docs/reference.md).
const (
	OK          Code = 0
	Internal    Code = 1   // internal or I/O
	Usage       Code = 2   // flags, files, names
	Blocked     Code = 3   // a gate says no
	Changed     Code = 4   // the plan is not what was shown
	Refused     Code = 5   // the cluster says no
	Unreachable Code = 6   // the cluster does not answer
	Partly      Code = 7   // a sweep was queued in part
	RunFailed   Code = 8   // --wait: the run failed
	Interrupted Code = 130 // SIGINT
)

// Error is a finished message for the user.
type Error struct {
	Code Code
	Gate string // the gate that refused, "" if none did
	Msg  string // lower case, no period; may have several lines
	Hint string // the next command to type, or one sentence; may be empty
	Err  error  // cause, for errors.Is; its text is already in Msg
}

// New makes an error; arguments that are errors are kept as cause with %w.
func New(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// Gate makes a refusal by a gate.
func Gate(gate, format string, args ...any) *Error {
	e := New(Blocked, format, args...)
	e.Gate = gate
	return e
}

// WithHint adds what to type next.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string {
	if e.Gate != "" {
		return e.Gate + ": " + e.Msg
	}
	return e.Msg
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the exit code an error asks for; Internal when it asks for none.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return Internal
}
