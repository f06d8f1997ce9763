package follow

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slipway/internal/pause"
	"slipway/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty is a client whose queue misbehaves as told.
type faulty struct {
	job.Client

	// What each call of Follow yields before it fails with its error; nil: it ends. The
	// last one stands for all further calls.
	calls []call
	made  int
	open  atomic.Int32 // calls of Follow and Result that have not returned

	silent   bool          // Follow never ends by itself: the last event got lost
	lastIn   time.Duration // before the last event of a call
	result   *job.Result
	resultIn time.Duration
	failing  int   // so many calls of Result fail with ErrUnavailable first
	err      error // of Result
	away     atomic.Bool
	state    job.State
	status   error // of Status
}

type call struct {
	events []job.Event
	err    error
}

func (q *faulty) Follow(ctx context.Context, _ job.ID, wait bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		var c call
		if len(q.calls) > 0 {
			c = q.calls[min(q.made, len(q.calls)-1)]
		}
		q.made++
		q.open.Add(1)
		defer q.open.Add(-1)
		for i, e := range c.events {
			if i == len(c.events)-1 && !pause.For(ctx, q.lastIn) {
				break
			}
			if !yield(e, nil) {
				return
			}
		}
		if c.err != nil {
			yield(job.Event{}, c.err)
			return
		}
		if wait && q.silent {
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			yield(job.Event{}, context.Cause(ctx))
		}
	}
}

func (q *faulty) Result(ctx context.Context, _ job.ID) (*job.Result, error) {
	q.open.Add(1)
	defer q.open.Add(-1)
	if q.failing > 0 {
		q.failing--
		return nil, fmt.Errorf("read result: %w", job.ErrUnavailable)
	}
	if !pause.For(ctx, q.resultIn) {
		return nil, context.Cause(ctx)
	}
	return q.result, q.err
}

func (q *faulty) Status(ctx context.Context, _ job.ID) (job.Status, error) {
	if q.away.Load() {
		<-ctx.Done()
		return job.Status{}, fmt.Errorf("read: %w: no answer", job.ErrUnavailable)
	}
	return job.Status{State: q.state}, q.status
}

// event makes one of the first attempt.
func event(seq uint64, kind job.EventKind) job.Event { return eventOf(1, 1, seq, kind) }

func eventOf(generation, attempt int, seq uint64, kind job.EventKind) job.Event {
	return job.Event{Generation: generation, Attempt: attempt, Seq: seq, Kind: kind}
}

// whole is what a job of one step sends.
func whole() []job.Event {
	return []job.Event{
		event(1, job.EventClaimed), event(2, job.EventStepStart), event(3, job.EventOutput), event(4, job.EventStepEnd), event(5, job.EventFinished),
	}
}

func succeeded() *job.Result { return &job.Result{Outcome: job.Succeeded} }

// words collects a sequence, one word for each update: an event is its attempt and number.
func words(updates iter.Seq2[Update, error]) (out []string, err error) {
	for u, err := range updates {
		if err != nil {
			return out, err
		}
		out = append(out, word(u))
	}
	return out, nil
}

func word(u Update) string {
	switch u := u.(type) {
	case Event:
		return fmt.Sprintf("%d.%d", u.Attempt, u.Seq)
	case Gap:
		return fmt.Sprintf("gap(%d in %d)", u.Missing, u.Attempt)
	case Waiting:
		if u.Err != nil {
			return "waiting: " + u.Err.Error()
		}
		return "waiting: " + string(u.Status.State)
	case Disconnected:
		return "disconnected"
	case Reconnected:
		return "reconnected"
	case Ended:
		return string(u.Result.Outcome)
	}
	return fmt.Sprintf("%T", u)
}
