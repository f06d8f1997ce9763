package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// Follow yields the events of a job. An event may get lost, so the record alone says whether the job is decided. A decided
// job ends the sequence also if its events are gone: then the last event is made from the result. See job.Client.
func (c *Client) Follow(ctx context.Context, id job.ID, wait bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		f := &follower{c: c, id: id, yield: yield}
		if err := f.run(ctx, wait); err != nil && !errors.Is(err, errEnough) {
			yield(job.Event{}, fmt.Errorf("follow job %s: %w", id, err))
		}
	}
}

// errEnough: the reader stopped.
var errEnough = errors.New("the reader stopped")

// follower is one run of Follow.
type follower struct {
	c     *Client
	id    job.ID
	yield func(job.Event, error) bool

	next     uint64 // sequence in EVENTS
	last     job.Event
	finished int // generation whose EventFinished was yielded
}

func (f *follower) run(ctx context.Context, wait bool) error {
	if err := checkID(f.id); err != nil {
		return err
	}
	news, err := f.c.watchResult(f.id)
	if err != nil {
		return err
	}
	defer news.close()
	stream, err := f.c.q.streams.events.Read(ctx, "read events", f.c.q.names.anyEvent(f.id), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		again := f.c.q.js.Reconnected()
		r, gen, err := f.c.decided(ctx, f.id)
		if err != nil {
			return err
		}
		if r != nil || !wait {
			if err := f.catchUp(ctx, stream); err != nil {
				return err
			}
			if r == nil {
				return nil
			}
			return f.finale(ctx, stream, r, gen)
		}
		if err := f.relay(ctx, stream, news, again, gen); err != nil {
			return err
		}
		if f.finished >= gen && gen > 0 {
			// The event says that the latest generation ended. If the record disagrees, a person put the job back.
			if _, now, err := f.c.decided(ctx, f.id); err != nil || now <= f.finished {
				return err
			}
		}
	}
}

// lateEvents is how long after its decision a job's last event, EventFinished, may come: it alone is sent without waiting
// for a confirmation.
const lateEvents = 2 * time.Second

// finale ends the sequence of a job that is decided. If the decision is fresh, and
// made by a worker, its last event is still on its way.
func (f *follower) finale(ctx context.Context, stream *jsconn.Reader, r *job.Result, gen int) error {
	if r.Attempt > 0 && time.Since(r.FinishedAt).Abs() < 5*lateEvents {
		t := time.NewTimer(lateEvents)
		defer t.Stop()
		for late := false; f.finished < gen && !late; {
			select {
			case msg := <-stream.Messages:
				if err := f.take(msg); err != nil {
					return err
				}
			case <-t.C:
				late = true
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if f.finished >= gen {
		return nil
	}
	return f.conclude(r)
}

// relay yields events until it is time to look at the record.
func (f *follower) relay(ctx context.Context, stream *jsconn.Reader, news *resultWatch, again <-chan struct{}, gen int) error {
	t := time.NewTimer(recheck)
	defer t.Stop()
	for {
		select {
		case msg := <-stream.Messages:
			if err := f.take(msg); err != nil {
				return err
			}
			if f.finished >= gen && f.finished > 0 {
				return nil
			}
		case <-news.ch:
			return nil
		case <-again:
			return nil
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp yields what is stored by now.
func (f *follower) catchUp(ctx context.Context, stream *jsconn.Reader) error {
	end, err := f.c.q.streams.events.Last(ctx, f.c.q.names.anyEvent(f.id))
	if err != nil || end == nil {
		return err
	}
	for f.next <= end.Sequence {
		msg, err := stream.Next(ctx)
		if err != nil {
			return err
		}
		if err := f.take(msg); err != nil {
			return err
		}
	}
	return nil
}

// take yields the events of one message.
func (f *follower) take(msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	if meta.Sequence.Stream < f.next {
		return nil // the reader started anew, and repeats the message
	}
	f.next = meta.Sequence.Stream + 1
	var events []job.Event
	if err := json.Unmarshal(msg.Data(), &events); err != nil {
		return nil //nolint:nilerr // a foreign program's message; the follower can't report it
	}
	for _, e := range events {
		if e.Kind == job.EventFinished && e.Generation <= f.finished {
			continue
		}
		if !f.yield(e, nil) {
			return errEnough
		}
		f.last = e
		if e.Kind == job.EventFinished {
			f.finished = e.Generation
		}
	}
	return nil
}

// conclude yields the last event in place of one that was never sent, or is gone.
func (f *follower) conclude(r *job.Result) error {
	e := job.Event{
		JobID: f.id, Generation: r.Generation, Attempt: r.Attempt, Fence: r.Fence, Seq: 1, Time: r.FinishedAt,
		Kind: job.EventFinished, Outcome: r.Outcome, Reason: r.Reason, Text: r.Message,
	}
	if f.last.Generation == e.Generation && f.last.Attempt == e.Attempt {
		e.Seq = f.last.Seq + 1
	}
	if !f.yield(e, nil) {
		return errEnough
	}
	return nil
}
