// Package exit holds the exit codes of slipway's programs. Only here does an outcome or
// an error become a number.
package exit

import (
	"errors"
	"fmt"

	"slipway/job"
)

// The exit codes. They are part of the programs' interface.
const (
	OK       = 0   // it worked; the job succeeded
	Failed   = 1   // the job's own command failed; for doctor: a check failed
	Usage    = 2   // the request is wrong: flags, settings, an invalid spec, an unknown job, another job's id, a queue that is not set up
	Errored  = 3   // slipway or its surroundings failed (a queue that is full or does not answer, among others), or the job's outcome is errored
	Partial  = 4   // submit logs: part of what the job printed is not shown, which was said
	TimedOut = 124 // the job's or a step's timeout ran out
	Canceled = 130 // the job was canceled, or the program was interrupted
)

// Help describes the codes, for --help.
const Help = `Exit codes:
  0    the job succeeded, or the command did what it should
  1    the job failed: one of its commands ended with a code other than 0
  2    the request makes no sense: flags, settings, an invalid job, an unknown job id,
       an id that another job has, a queue that was not set up
  3    slipway or its surroundings failed, such as a queue that is full or does not answer,
       or the job's outcome is errored
  124  the job timed out (its own timeout or that of a step)
  130  the job was canceled, or this program was interrupted`

// Error is an error with an exit code.
type Error struct {
	Code int
	// Err is what to print. It is nil if everything was printed already.
	Err error
}

// Error returns the text of Err.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// UsageError gives err the exit code Usage: the caller made the mistake.
func UsageError(err error) error { return &Error{Code: Usage, Err: err} }

// Usagef formats a usage error.
func Usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }

// Silent returns an error that ends the program with code and prints nothing. It is nil for OK.
func Silent(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code}
}

// Outcome returns the code of a job's outcome.
func Outcome(o job.Outcome) int {
	switch o {
	case job.Succeeded:
		return OK
	case job.Failed:
		return Failed
	case job.TimedOut:
		return TimedOut
	case job.Canceled:
		return Canceled
	default:
		return Errored
	}
}

// Code returns the exit code of err and the error to print, which is nil if nothing is to be printed.
func Code(err error) (int, error) {
	var known *Error
	switch {
	case err == nil:
		return OK, nil
	case errors.As(err, &known):
		if known.Err == nil && err == error(known) { //nolint:errorlint // an error that is joined with another one has a text to print
			return known.Code, nil
		}
		return known.Code, err
	case errors.Is(err, job.ErrNotFound), errors.Is(err, job.ErrNotSetUp), errors.Is(err, job.ErrOtherJob):
		return Usage, err
	default:
		return Errored, err
	}
}
