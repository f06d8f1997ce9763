package jsconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/pause"
	"slipway/job"
)

// Bounds of one call to the server.
const (
	// TryTimeout bounds a single request.
	TryTimeout = 5 * time.Second
	// Patience is how long a call is repeated if its context sets no deadline.
	Patience = 15 * time.Second
)

// caller makes the calls of one connection.
type caller struct {
	js      jetstream.JetStream
	where   string
	prefix  string
	streams []StreamName
	denials denials
}

// try is one request to the server.
type try func(context.Context) error

// retrier repeats a request until it is answered: call, or callDuringSetup while the streams are made.
type retrier func(ctx context.Context, op, subject string, one try) error

// call repeats one until the server answers, or ctx ends. subject is what one publishes to: a denial of it ends the call
// at once. So does a server that has none of the streams.
func (c *caller) call(ctx context.Context, op, subject string, one try) error {
	cause := &cause{c: c, subject: subject}
	return c.untilAnswered(ctx, op, func(ctx context.Context) error {
		err := c.tryOnce(ctx, subject, one)
		if err != nil {
			err = cause.explain(ctx, err)
		}
		return err
	})
}

// callDuringSetup is call for the code that makes the streams: there a missing stream is expected.
func (c *caller) callDuringSetup(ctx context.Context, op, subject string, one try) error {
	return c.untilAnswered(ctx, op, func(ctx context.Context) error { return c.tryOnce(ctx, subject, one) })
}

// untilAnswered repeats one while its error is transient and ctx lives.
func (c *caller) untilAnswered(ctx context.Context, op string, one try) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, Patience)
		defer cancel()
	}
	var why error // of the last try that ctx did not cut short: a try that was cut short says nothing
	for backoff := (Backoff{}); ; {
		err := one(ctx)
		if err == nil {
			return nil
		}
		switch {
		case errors.Is(err, errRefused), errors.Is(err, errUnreadable):
			return fmt.Errorf("%s: the NATS server at %s %w", op, c.where, err)
		case !Transient(err):
			return fmt.Errorf("%s: %w", op, err)
		}
		cut := why != nil && ctx.Err() != nil
		if !cut {
			why = err
		}
		if backoff.Wait(ctx) {
			continue
		}
		if cut {
			why = fmt.Errorf("%w (%w)", why, err)
		}
		if errors.Is(why, errPartial) {
			return fmt.Errorf("%s: %w: the NATS server at %s: %w", op, job.ErrUnavailable, c.where, why)
		}
		return fmt.Errorf("%s: %w: no answer from the NATS server at %s: %w", op, job.ErrUnavailable, c.where, why)
	}
}

// tryOnce makes a single request. Its error is a PermissionError if that is why the server did not answer.
func (c *caller) tryOnce(ctx context.Context, subject string, one try) error {
	tryCtx, cancel := context.WithTimeout(ctx, TryTimeout)
	defer cancel()
	tryCtx, done := c.denials.watch(tryCtx, subject)
	defer done()
	err := one(tryCtx)
	var denied *PermissionError
	if err != nil && errors.As(context.Cause(tryCtx), &denied) {
		return denied
	}
	return c.full(subject, err)
}

// probe is a single request that reports what is wrong, for checks: a check that waits until all is well finds nothing.
func (c *caller) probe(ctx context.Context, op, subject string, one try) error {
	err := c.tryOnce(ctx, subject, one)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, job.ErrUnavailable), IsFull(err):
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s (%s): %w", op, subject, noJetStream(err))
}

const (
	firstBackoff = 20 * time.Millisecond
	// LastBackoff is the longest pause between two tries.
	LastBackoff = time.Second
)

// Backoff is the pause between the tries of one call. It doubles from 20 ms to LastBackoff. The zero value is ready.
type Backoff struct{ last time.Duration }

// Wait pauses, and reports whether ctx still runs.
func (b *Backoff) Wait(ctx context.Context) bool {
	b.last = min(max(2*b.last, firstBackoff), LastBackoff)
	return pause.For(ctx, b.last)
}
