package jsconn

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// FullError says that there is no room for a message or a stream. It is a job.ErrFull: the server answered, and stored nothing.
type FullError struct {
	// Stream is the stream that was to take it.
	Stream string
	// Store says that the stream has room by its own limits, but the store of the server or of the account has none.
	Store bool
	// Detail says how much of what is used, for people. It may be empty.
	Detail string

	err error // the server's answer; nil: the request was not made
}

// Error says what is full.
func (e *FullError) Error() string {
	what := "stream " + e.Stream + " is at its limit"
	if e.Store {
		what = "the NATS server's store, or the account's share of it, has no room for stream " + e.Stream
	}
	if e.Detail != "" {
		what += " (" + e.Detail + ")"
	}
	text := job.ErrFull.Error() + ": " + what
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// Is makes the error one of the queue's contract.
func (e *FullError) Is(target error) bool { return target == job.ErrFull }

// Unwrap returns the server's answer.
func (e *FullError) Unwrap() error { return e.err }

// IsFull reports whether err says that there was no room. Then nothing was stored.
func IsFull(err error) bool { return errors.Is(err, job.ErrFull) }

// Codes of the server for what has no room. nats.go has no names for them.
const (
	codeAccountFull  = jetstream.ErrorCode(10002) // the account's store, for a message
	codeServerFull   = jetstream.ErrorCode(10023) // the server's store, for a message
	codeMemoryFull   = jetstream.ErrorCode(10028) // the memory of account or server, for a stream
	codeUnreservable = jetstream.ErrorCode(10047) // the store of account or server, for a stream with a limit in bytes
	codeStoreFailed  = jetstream.ErrorCode(10077) // the stream did not store a message; its text says why
)

// full is err as a FullError if the server refused for lack of room, or else err. subject is that of the request.
func (c *caller) full(subject string, err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) || IsFull(err) {
		return err
	}
	e := &FullError{Stream: c.streamOf(subject), err: err}
	switch api.ErrorCode {
	case codeAccountFull, codeServerFull, codeMemoryFull, codeUnreservable:
		e.Store = true
		return e
	case codeStoreFailed:
		// The code stands for each error of a store. Another one, such as "store is closed" of a server that stops, passes.
		// It has no code of its own, so there is but its text to tell it by.
		if strings.HasPrefix(api.Description, "maximum ") {
			return e
		}
	}
	return err
}
