package live

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"slipway/job"
)

// Clocks of the look whether the queue still answers.
const (
	linkEvery   = 5 * time.Second // of silence; an event proves as much
	linkTimeout = 5 * time.Second
)

// link tells whether the queue answers. A queue that is away is waited for, without an error that anybody would see.
type link struct {
	heard  atomic.Bool // an event came since the last look
	states chan bool
	lost   bool // as the printer was told; only for who receives from states
}

// watch looks until ctx ends.
func (l *link) watch(ctx context.Context, client job.Client, id job.ID) {
	for sleep(ctx, linkEvery) == nil {
		answers := l.heard.Swap(false) || reachable(ctx, client, id)
		if ctx.Err() != nil {
			return
		}
		select {
		case l.states <- answers:
		case <-ctx.Done():
			return
		}
	}
}

func reachable(ctx context.Context, client job.Client, id job.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	_, err := client.Status(ctx, id)
	return ctx.Err() == nil && !errors.Is(err, job.ErrUnavailable)
}

// tell says what has changed, once.
func (l *link) tell(answers bool, p Printer) {
	switch {
	case !answers && !l.lost:
		p.Note("connection to the queue lost; reconnecting")
	case answers && l.lost:
		p.Note("connection to the queue is back")
	}
	l.lost = !answers
}
