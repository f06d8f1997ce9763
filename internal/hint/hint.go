// Package hint keeps what to do about an error apart from what went wrong. The error's text says the latter; a hint is for
// people, and is shown beside it: on a line of its own by the programs, as a field in JSON, behind the text in a result.
//
//	leaf       return hint.With(err, "check the worker's credentials for %s", domain)
//	command    return hint.With(err, "Set --nats-url or SLIPWAY_NATS_URL")      replaces the leaf's: it knows the setting's name
//	main       print(err.Error()); print(hint.Of(err))
//
// An error type may also have a method Hint() string of its own; this package is not needed for that. A hint is one or more
// sentences for people, without a period at the end; empty means that there is none.
package hint

import (
	"errors"
	"fmt"
)

// With returns err with a hint. Its text and all else that it is stay as they are; a hint that it has is replaced. Nil
// stays nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// Of returns the hint of err or of the outermost error in it that has one. Empty means that there is no hint.
func Of(err error) string {
	var h interface {
		error
		Hint() string
	}
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// Text is the text of err with its hint behind it, for where there is room for one text only.
func Text(err error) string {
	if h := Of(err); h != "" {
		return err.Error() + "; " + h
	}
	return err.Error()
}

type hinted struct {
	error
	hint string
}

// Hint returns the hint.
func (h *hinted) Hint() string { return h.hint }

// Unwrap returns the error without the hint.
func (h *hinted) Unwrap() error { return h.error }
