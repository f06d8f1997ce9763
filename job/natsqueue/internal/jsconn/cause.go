package jsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// errPartial: a stream is missing beside others of its prefix. That passes: somebody is making them.
var errPartial = errors.New("a stream is missing")

const (
	// lookTime bounds a look at the first stream. While that has no leader nobody answers, and the call itself may find
	// another server meanwhile.
	lookTime = 500 * time.Millisecond
	// lookEvery spares the server a look for each try of a call.
	lookEvery = 500 * time.Millisecond
)

// cause finds out why one call fails, if streams that are not there may be the reason.
type cause struct {
	c         *caller
	subject   string    // of the call
	lookedAt  time.Time // zero before the first look
	noStreams bool      // what the last look found
}

// explain makes err a job.ErrNotSetUp if the server has none of the streams. A publish or a read then gets no answer. It
// gets none either while a stream has no leader, which passes. A look at the first stream that Setup makes tells the two
// apart: only a server that knows all streams says that there is none.
func (f *cause) explain(ctx context.Context, err error) error {
	silent := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
	if !silent && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if f.lookedAt.IsZero() || time.Since(f.lookedAt) > lookEvery {
		f.noStreams = f.c.hasNoStreams(ctx)
		f.lookedAt = time.Now()
	}
	switch {
	case f.noStreams:
		return f.c.notSetUp(err)
	case silent:
		return err
	default:
		return fmt.Errorf("%w: %s, which a worker that starts makes: %w", errPartial, f.c.streamOf(f.subject), err)
	}
}

// NotSetUp is the error for a server that has none of the streams.
func (c *Conn) NotSetUp() error { return c.calls.notSetUp(jetstream.ErrStreamNotFound) }

func (c *caller) notSetUp(err error) error {
	return fmt.Errorf("%w: the NATS server at %s has no streams of prefix %s (setting Prefix); a worker that starts with it makes them: %w",
		job.ErrNotSetUp, c.where, c.prefix, err)
}

// hasNoStreams looks at the first stream, and reports whether the server says that it is missing. An account without the
// right to look gets false: its call waits.
func (c *caller) hasNoStreams(ctx context.Context) bool {
	api := streamInfo + c.streams[0]
	if c.denials.get(api) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return errors.Is(c.tryOnce(ctx, api, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, c.streams[0])
		return err
	}), jetstream.ErrStreamNotFound)
}

// streamOf is the stream that a call of the server's API is about.
func (c *caller) streamOf(subject string) string {
	parts := strings.Split(subject, ".")
	for _, s := range c.streams {
		if slices.Contains(parts, s) {
			return s
		}
	}
	return subject
}
