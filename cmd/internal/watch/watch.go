// Package watch shows a job on a display.Printer while it runs, and turns the
// interrupts of the person in front of it into cancels.
//
//	follow.Job ──► updates ──► Job ──► display.Printer
//	Ctrl-C     ──► Interruptible ──► job.Client.Cancel: cancel, abort, detach
package watch

import (
	"context"
	"errors"
	"time"

	"slipway/cmd/internal/display"
	"slipway/job"
	"slipway/job/follow"
)

// Job prints the events of the job id as they come, then its result, which it
// returns. A remark tells what keeps the job waiting, what is missing, and when the queue
// goes away and comes back. Job ends without a result for the reasons that end follow.Job early.
func Job(ctx context.Context, client job.Client, id job.ID, p display.Printer) (*job.Result, error) {
	return After(ctx, client, id, job.Event{}, p)
}

// After is Job for a reader who has the events up to last.
func After(ctx context.Context, client job.Client, id job.ID, last job.Event, p display.Printer) (*job.Result, error) {
	s := screen{Printer: p}
	for u, err := range follow.After(ctx, client, id, last) {
		if err != nil {
			return nil, err
		}
		s.show(u)
		if end, ok := u.(follow.Ended); ok {
			return end.Result, nil
		}
	}
	return nil, errNoEnd
}

// Result returns the result of the job id and prints neither it nor the events: only
// remarks tell what keeps the job waiting, and when the queue goes away and comes back.
func Result(ctx context.Context, client job.Client, id job.ID, p display.Printer) (*job.Result, error) {
	s := screen{Printer: p}
	for u, err := range follow.Job(ctx, client, id) {
		if err != nil {
			return nil, err
		}
		switch u := u.(type) {
		case follow.Event, follow.Gap:
		case follow.Ended:
			return u.Result, nil
		default:
			s.show(u)
		}
	}
	return nil, errNoEnd
}

// errNoEnd is for a sequence that breaks the promise of follow.Job.
var errNoEnd = errors.New("the job's events ended without a result")

// screen prints the updates of one job.
type screen struct {
	display.Printer
	back string // what to print once a lost connection is back
}

func (s *screen) show(u follow.Update) {
	switch u := u.(type) {
	case follow.Event:
		s.Event(u.Event)
	case follow.Gap:
		s.Note("%s", display.Gap(u))
	case follow.Waiting:
		s.waiting(u)
	case follow.Disconnected:
		s.lost(u.Err)
	case follow.Reconnected:
		s.Note("%s", s.back)
	case follow.Ended:
		s.Result(u.Result)
	}
}

func (s *screen) waiting(w follow.Waiting) {
	switch st := w.Status; {
	case w.Err != nil:
		s.Note("no news yet: %v", w.Err)
	case st.State == job.StateScheduled:
		s.Note("waits for its time, %s", st.EligibleAt.Local().Format(time.RFC3339))
	case st.State == job.StateQueued:
		s.Note("still waiting for a worker: is one running that serves queue %s, with a free slot?", st.Queue)
	}
}

func (s *screen) lost(err error) {
	if errors.Is(err, job.ErrUnavailable) {
		s.back = "connection to the queue is back"
		s.Note("connection to the queue lost; reconnecting")
		return
	}
	s.back = "the events can be read again"
	s.Note("the events can't be read: %v; trying again", err)
}
