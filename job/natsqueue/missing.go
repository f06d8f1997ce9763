package natsqueue

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
	// lookTime bounds a look at JOBS. While that has no leader nobody answers, and the call itself
	// may find another server meanwhile.
	lookTime = 500 * time.Millisecond
	// lookEvery spares the server a look for each try of a call.
	lookEvery = 500 * time.Millisecond
)

// missing explains the errors of one call that may come from streams that are not there.
type missing struct {
	c       *Conn
	subject string    // of the call
	at      time.Time // of the last look
	none    bool      // what it found: no streams at all
}

// explain makes err a job.ErrNotSetUp if the server has none of the streams. To publish or read, nobody answers
// then; nor does anybody while a stream has no leader, which passes. A look at JOBS, the first stream that Setup
// makes, tells the two apart: only a server that knows all streams says that there is none.
func (m *missing) explain(ctx context.Context, err error) error {
	silent := errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse)
	if !silent && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if m.at.IsZero() || time.Since(m.at) > lookEvery {
		m.none = m.c.hasNone(ctx)
		m.at = time.Now()
	}
	switch c := m.c; {
	case m.none:
		return c.notSetUp(err)
	case silent:
		return err
	default:
		return fmt.Errorf("%w: %s, which a worker that starts makes: %w", errPartial, c.streamOf(m.subject), err)
	}
}

func (c *Conn) notSetUp(err error) error {
	return fmt.Errorf("%w: the NATS server at %s has no streams of prefix %s (setting Prefix); a worker that starts with it makes them: %w",
		job.ErrNotSetUp, c.where(), c.cfg.Prefix, err)
}

// hasNone looks at JOBS, and reports whether the server says that it is missing. An account that may not look has to wait and see.
func (c *Conn) hasNone(ctx context.Context) bool {
	api := "$JS.API.STREAM.INFO." + c.names.jobs()
	if c.denials.get(api) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return errors.Is(c.once(ctx, api, func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, c.names.jobs())
		return err
	}), jetstream.ErrStreamNotFound)
}

// streamOf is the stream that a call of the server's API is about.
func (c *Conn) streamOf(subject string) string {
	parts := strings.Split(subject, ".")
	for _, s := range c.streams() {
		if slices.Contains(parts, s.Name) {
			return s.Name
		}
	}
	return subject
}
