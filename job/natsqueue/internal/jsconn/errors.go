package jsconn

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/job"
)

// Why no connection was made. Dial returns them with job.ErrUnavailable.
var (
	// ErrCredentials: the server does not know the user, or not by these credentials.
	ErrCredentials = errors.New("the server refused the credentials")
	// ErrTLS: the two sides could not agree on TLS.
	ErrTLS = errors.New("no TLS with the server")
)

// PermissionError says which right this connection's account lacks. It is a
// job.ErrUnavailable that does not pass by waiting.
type PermissionError struct {
	// Op is publish or subscribe.
	Op string
	// Subject is the denied subject.
	Subject string
}

// Error names the right.
func (e *PermissionError) Error() string { return fmt.Sprintf("NATS denies %s on %q", e.Op, e.Subject) }

// Hint says where the right can be given.
func (e *PermissionError) Hint() string {
	return "allow it in the role of this connection's user (of its credentials file, or in its URL)"
}

// Is makes the error one of the queue's contract.
func (e *PermissionError) Is(target error) bool { return target == job.ErrUnavailable }

// MissingError is a stream or a consumer that is not there. Setup of the queue makes it.
type MissingError struct {
	// Kind is stream or consumer.
	Kind string
	// Name is its name on the server.
	Name string

	err error
}

// Error names the missing thing.
func (e *MissingError) Error() string { return fmt.Sprintf("look at %s %s: %v", e.Kind, e.Name, e.err) }

// Hint says what makes it.
func (e *MissingError) Hint() string { return "start a worker whose user may make it" }

// Unwrap returns the server's answer.
func (e *MissingError) Unwrap() error { return e.err }

// Codes of the server that nats.go has no names for.
const (
	codeWrongLastConstant = jetstream.ErrorCode(10164) // wrong last sequence, while another write is on its way
	codeNoSuchSequence    = jetstream.ErrorCode(10057) // the message to delete is not there
	codeSequenceNotFound  = jetstream.ErrorCode(10043) // the same, with older messages before it
)

func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// Conflicts reports whether a compare-and-set lost: the subject's last sequence is not the expected one.
func Conflicts(err error) bool {
	switch apiCode(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, codeWrongLastConstant:
		return true
	}
	return false
}

func isMissing(err error) bool {
	switch apiCode(err) {
	case jetstream.JSErrCodeMessageNotFound, codeNoSuchSequence, codeSequenceNotFound:
		return true
	}
	return errors.Is(err, jetstream.ErrMsgNotFound)
}

// The server answered, and the same call would get the same answer. Each text goes on after the server's name.
var (
	errRefused    = errors.New("refused the request")
	errUnreadable = errors.New("gave an answer that can't be read")
)

// Transient reports whether the same call may work a moment later: the server did not answer, or it answered "not now".
func Transient(err error) bool {
	for _, final := range []error{nats.ErrConnectionClosed, job.ErrUnavailable, job.ErrNotSetUp, job.ErrFull, errNoBatch, errRefused, errUnreadable} {
		if errors.Is(err, final) {
			return false
		}
	}
	if errors.Is(err, errPartial) {
		return true
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code >= 500
	}
	return !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, jetstream.ErrMsgNotFound)
}

// noJetStream hints at what to do about a server that runs without JetStream.
func noJetStream(err error) error {
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return hint.With(err, "start nats-server with -js, or enable JetStream for this account")
	}
	return err
}

// apiError reads the error of an answer of the JetStream API, if it holds one.
func apiError(data []byte) error {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}
