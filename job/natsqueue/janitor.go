package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/pause"
	"slipway/job/natsqueue/internal/jsconn"
)

// janitorKey is held by the one worker that repairs. No worker's name can start with its first character.
const janitorKey = "_janitor"

// janitorEvery is how often the janitor looks, in AckWaits: a message between two
// streams arrives within a few.
const janitorEvery = 5

// janitor repairs records that wait or run while no stream holds a message of
// their job. A person's requeue that was cut off leaves such a record; so do an operator who
// deletes messages, and a store that lost its last writes. One worker at a time is the janitor,
// elected by a key that expires.
type janitor struct {
	q    *Conn
	boot string
}

func (j *janitor) run(ctx context.Context) {
	every := janitorEvery * j.q.cfg.Timing.AckWait
	var s *sweep
	for pause.For(ctx, every) {
		s = j.tend(ctx, s, every)
	}
}

// tend looks once, if this worker is the janitor. It returns the sweep to go on with, nil if another worker is the janitor.
func (j *janitor) tend(ctx context.Context, s *sweep, every time.Duration) *sweep {
	// The look and the wait after it take a period each at most before the next election; the third is spare.
	mine, err := j.elected(ctx, 3*every)
	if err != nil {
		// Unknown, so this round is skipped, and the sweep's progress kept. Without the right to the key there is no janitor.
		if ctx.Err() == nil && !jsconn.Conflicts(err) {
			j.q.cfg.OnError(fmt.Errorf("elect the janitor: %w", err))
		}
		return s
	}
	if !mine {
		return nil
	}
	if s == nil {
		s = newSweep(j.q)
	}
	lookCtx, cancel := context.WithTimeout(ctx, every) // the next look does what this one leaves
	defer cancel()
	if err := s.look(lookCtx); err != nil && ctx.Err() == nil {
		j.q.cfg.OnError(fmt.Errorf("look for lost tokens: %w", err))
	}
	return s
}

// elected takes or keeps the janitor's key for a while. It reports false if another worker holds it.
func (j *janitor) elected(ctx context.Context, period time.Duration) (bool, error) {
	holder, seq, err := j.q.streams.workers.Get(ctx, janitorKey)
	if err != nil || (holder != nil && string(holder) != j.boot) {
		return false, err
	}
	msg := nats.NewMsg(j.q.streams.workers.Key(janitorKey))
	msg.Data = []byte(j.boot)
	_, err = j.q.js.Replace(ctx, "become janitor", msg, seq, jetstream.WithMsgTTL(max(time.Second, period.Truncate(time.Second))))
	return err == nil, err
}
