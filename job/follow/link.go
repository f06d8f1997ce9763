package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

// The clocks of the probes.
const (
	probeEvery   = 5 * time.Second // without an event, which proves as much as an answer
	probeTimeout = 5 * time.Second
)

// link is what the reader of events has learned about the connection since the last probe.
type link struct {
	mu       sync.Mutex
	came     bool  // an event
	failures int   // of the client's Follow, after the last event
	err      error // of the last failure
}

// heard notes an event.
func (l *link) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.came, l.failures = true, 0
}

// failed notes a failure of the client's Follow.
func (l *link) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.err = err
}

// take returns what was noted since the last call. One failure is no lost connection: the reader may have
// connected again at once, and wait for an event.
func (l *link) take() (event bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures > 1 {
		err = l.err
	}
	event, l.came, l.failures = l.came, false, 0
	return event, err
}

// event reports whether an event came since the last take.
func (l *link) event() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.came
}

// probe finds out whether the queue answers, until the follower stops.
func (f *follower) probe(ctx context.Context) {
	for pause.For(ctx, probeEvery) {
		event, err := f.link.take()
		if err == nil && !event {
			if err = f.ask(ctx); err != nil && f.link.event() {
				err = nil // it came while the question waited for its answer
			}
		}
		if ctx.Err() != nil {
			return // a question that was cut short proves nothing
		}
		select {
		case f.states <- err:
		case <-ctx.Done():
			return
		}
	}
}

// ask returns an error if the queue does not answer.
func (f *follower) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, err := f.client.Status(ctx, f.id)
	switch {
	case errors.Is(err, job.ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: no answer within %s", job.ErrUnavailable, probeTimeout)
	}
	return nil // any other error is an answer
}
