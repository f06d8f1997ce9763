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
	// firstLook bounds the first look at the first stream. While that has no leader nobody answers, and the call itself may
	// find another server meanwhile. Each look that gets no answer doubles the bound for the next, up to TryTimeout: the
	// answer of a busy server is late, and without it the caller would hear of a silent server instead of a wrong prefix.
	firstLook = 500 * time.Millisecond
	// lookEvery spares the server a look for each try of a call.
	lookEvery = 500 * time.Millisecond
)

// cause finds out why one call fails, if streams that are not there may be the reason.
type cause struct {
	c         *caller
	subject   string        // of the call
	lookedAt  time.Time     // zero before the first look
	lookTime  time.Duration // bound of the next look
	noStreams bool          // by the last look
}

// explain makes err a job.ErrNotSetUp if the server has none of the streams. A publish or a read then gets no answer.
// The same happens while a stream has no leader, which passes. A look at the first stream that Setup makes tells the two
// apart: only a server that knows all streams says that there is none.
func (f *cause) explain(ctx context.Context, err error) error {
	silent := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
	if !silent && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if f.lookedAt.IsZero() || time.Since(f.lookedAt) > lookEvery {
		f.look(ctx)
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
	return fmt.Errorf("%w: the NATS server at %s has no streams of prefix %s; a worker that starts with it makes them: %w",
		job.ErrNotSetUp, c.where, c.prefix, err)
}

// look asks for the first stream, and notes whether the server says that it is missing. An account without the right to
// look finds nothing: its call waits.
func (f *cause) look(ctx context.Context) {
	api := streamInfo + f.c.streams[0].Name
	if f.c.denials.get(api) != nil {
		return
	}
	f.lookTime = min(max(2*f.lookTime, firstLook), TryTimeout)
	ctx, cancel := context.WithTimeout(ctx, f.lookTime)
	defer cancel()
	f.noStreams = errors.Is(f.c.tryOnce(ctx, api, func(ctx context.Context) error {
		_, err := f.c.js.Stream(ctx, f.c.streams[0].Name)
		return err
	}), jetstream.ErrStreamNotFound)
	f.lookedAt = time.Now()
}

// streamOf is the stream that a message on subject is for, or that a call of the server's API is about.
func (c *caller) streamOf(subject string) string {
	parts := strings.Split(subject, ".")
	for _, s := range c.streams {
		if slices.Contains(parts, s.Name) || strings.HasPrefix(subject, s.Subjects) {
			return s.Name
		}
	}
	return subject
}
