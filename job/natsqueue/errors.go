package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// PermissionError says which right this connection's account lacks. It is a
// job.ErrUnavailable that no waiting mends.
type PermissionError struct {
	// Op is publish or subscribe.
	Op string
	// Subject is what was denied.
	Subject string
}

// Error says what to do about it.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("NATS denies %s on %q: allow it in the role of this connection's user (setting CredsFile, or the user in URL)", e.Op, e.Subject)
}

// Is makes the error one of the queue's contract.
func (e *PermissionError) Is(target error) bool { return target == job.ErrUnavailable }

// Codes of the server that nats.go has no names for.
const (
	codeWrongLastConstant = jetstream.ErrorCode(10164) // wrong last sequence, while another write is on its way
	codeNoResources       = jetstream.ErrorCode(10023) // the server's store limit
	codeStoreFailed       = jetstream.ErrorCode(10077) // the stream's own limit
)

func apiCode(err error) jetstream.ErrorCode {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode
	}
	return 0
}

// conflicts reports whether a compare-and-set lost: the subject's last sequence is another one.
func conflicts(err error) bool {
	switch apiCode(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, codeWrongLastConstant:
		return true
	}
	return false
}

func isFull(err error) bool {
	code := apiCode(err)
	return code == codeStoreFailed || code == codeNoResources
}

func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrMsgNotFound) || apiCode(err) == jetstream.JSErrCodeMessageNotFound
}

// transient reports whether the same call may work a moment later: no answer, or
// an answer that says "not now".
func transient(err error) bool {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, job.ErrUnavailable) || errors.Is(err, job.ErrNotSetUp) {
		return false
	}
	if errors.Is(err, errPartial) {
		return true
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code >= 500 && !isFull(err)
	}
	return !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, jetstream.ErrMsgNotFound)
}

// Bounds of one call to the server.
const (
	tryTimeout = 5 * time.Second
	// patience is how long a call goes on trying if its context sets no deadline.
	patience     = 15 * time.Second
	firstBackoff = 20 * time.Millisecond
	lastBackoff  = time.Second
)

// retry calls try until it gets an answer, or ctx ends. subject is what try
// publishes to: a denial of it ends the wait at once. So does a queue that is not set up.
func (c *Conn) retry(ctx context.Context, op, subject string, try func(context.Context) error) error {
	m := &missing{c: c, subject: subject}
	return c.insist(ctx, op, func(ctx context.Context) error {
		err := c.once(ctx, subject, try)
		if err != nil {
			err = m.explain(ctx, err)
		}
		return err
	})
}

// attempt is retry, or what Setup has in its place, for which a missing stream is none of the unexpected.
type attempt func(ctx context.Context, op, subject string, try func(context.Context) error) error

// retryPlain is retry for who makes the streams.
func (c *Conn) retryPlain(ctx context.Context, op, subject string, try func(context.Context) error) error {
	return c.insist(ctx, op, func(ctx context.Context) error { return c.once(ctx, subject, try) })
}

// insist calls try until its error is none that passes, or ctx ends.
func (c *Conn) insist(ctx context.Context, op string, try func(context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	var why error // of the last try that ctx did not cut short: one that it did says nothing
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !transient(err) {
			return fmt.Errorf("%s: %w", op, err)
		}
		cut := why != nil && ctx.Err() != nil
		if !cut {
			why = err
		}
		if wait(ctx, backoff) {
			continue
		}
		if cut {
			why = fmt.Errorf("%w (%w)", why, err)
		}
		if errors.Is(why, errPartial) {
			return fmt.Errorf("%s: %w: the NATS server at %s: %w", op, job.ErrUnavailable, c.where(), why)
		}
		return fmt.Errorf("%s: %w: no answer from the NATS server at %s: %w", op, job.ErrUnavailable, c.where(), why)
	}
}

// once calls try a single time, and returns a PermissionError if that is why it got no answer.
func (c *Conn) once(ctx context.Context, subject string, try func(context.Context) error) error {
	tryCtx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	tryCtx, done := c.denials.watch(tryCtx, subject)
	defer done()
	err := try(tryCtx)
	var denied *PermissionError
	if err != nil && errors.As(context.Cause(tryCtx), &denied) {
		return denied
	}
	return err
}

// wait sleeps for d and reports whether ctx still runs.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// maxDenials bounds what is remembered: some subjects hold the name of a job, or one that is used once.
const maxDenials = 256

// denials remembers what the server refused. It says so by a message of its own,
// after which the refused request just times out.
type denials struct {
	mu      sync.Mutex
	seen    map[string]*PermissionError
	waiting map[string]map[*context.CancelCauseFunc]struct{}
}

// The server's wording; it gives no other form.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// note takes an asynchronous error and returns it as a PermissionError if it is one.
func (d *denials) note(err error) error {
	m := violation.FindStringSubmatch(err.Error())
	if !errors.Is(err, nats.ErrPermissionViolation) || m == nil {
		return err
	}
	denied := &PermissionError{Op: "publish", Subject: m[2]}
	if m[1] == "Subscription" || m[1] == "subscription" {
		denied.Op = "subscribe"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil || len(d.seen) >= maxDenials {
		d.seen = map[string]*PermissionError{} // who still asks for one is denied again
	}
	d.seen[denied.Subject] = denied
	for cancel := range d.waiting[denied.Subject] {
		(*cancel)(denied)
	}
	return denied
}

// get returns the denial of subject, if there was one.
func (d *denials) get(subject string) *PermissionError {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[subject]
}

// watch returns a context that ends when subject is denied.
func (d *denials) watch(ctx context.Context, subject string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string]map[*context.CancelCauseFunc]struct{}{}
	}
	if d.waiting[subject] == nil {
		d.waiting[subject] = map[*context.CancelCauseFunc]struct{}{}
	}
	d.waiting[subject][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting[subject], &cancel)
		if len(d.waiting[subject]) == 0 {
			delete(d.waiting, subject)
		}
	}
}
