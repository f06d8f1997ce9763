package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

const (
	// healEvery spares the server a look for each pull that fails.
	healEvery = time.Second
	// goneFor is how long a stream has to be missing, by each look, before its worker gives up. A server of a cluster that
	// just started may not know all streams yet.
	goneFor = 10 * time.Second
)

// healer finds out why lanes don't answer pulls. Without it, a worker whose stream was deleted would ask for jobs for ever,
// and look alive.
type healer struct {
	jobs   jsconn.Stream // that the lanes belong to
	remake func(ctx context.Context, queue string, p job.Priority) error

	mu       sync.Mutex
	lookedAt time.Time
	goneAt   time.Time // when the stream was first found missing; zero: it is there, as far as is known
}

// heal makes the lane's consumer anew if it was deleted. It returns job.ErrNotSetUp once the stream has been missing for
// goneFor: what was in it is lost, and a new one must not be made behind the back of whoever deleted it.
func (h *healer) heal(ctx context.Context, l *lane) error {
	if !h.mu.TryLock() {
		return nil // another pull has it looked at
	}
	defer h.mu.Unlock()
	if time.Since(h.lookedAt) < healEvery {
		return nil
	}
	h.lookedAt = time.Now()
	_, err := h.jobs.ProbeConsumer(ctx, laneName(l.queue, l.priority))
	var missing *jsconn.MissingError
	switch {
	case !errors.As(err, &missing):
		if err == nil {
			h.goneAt = time.Time{}
		}
		return nil // no answer says nothing about the stream
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		h.goneAt = time.Time{}
		return h.remake(ctx, l.queue, l.priority)
	case h.goneAt.IsZero():
		h.goneAt = time.Now()
		return nil
	case time.Since(h.goneAt) < goneFor:
		return nil
	}
	return fmt.Errorf("%w any more: stream %s was deleted while this worker ran", job.ErrNotSetUp, h.jobs.Name())
}
