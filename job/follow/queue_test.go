package follow_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
	"slipway/job/follow"
	"slipway/job/jobtest"
)

// cut is a queue whose every connection for events breaks after some of them.
type cut struct {
	job.Client
	after int
	calls atomic.Int32
}

func (c *cut) Follow(ctx context.Context, id job.ID, wait bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		left := c.after * int(c.calls.Add(1))
		for e, err := range c.Client.Follow(ctx, id, wait) {
			if left--; left < 0 {
				yield(job.Event{}, fmt.Errorf("follow job %s: %w", id, job.ErrUnavailable))
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestJob_Queue follows a job of two attempts on the in-memory queue, over a connection that breaks again and again.
func TestJob_Queue(t *testing.T) {
	for _, after := range []int{1, 2, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			q := jobtest.NewQueue(jobtest.Config{})
			j := &job.Job{ID: job.NewID(), Image: "x", Steps: []job.Step{{Run: "true"}}}
			if err := q.Submit(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); work(t, q) }()
			client := &cut{Client: q, after: after}
			var got []string
			for u, err := range follow.Job(t.Context(), client, j.ID) {
				if err != nil {
					t.Fatal(err)
				}
				switch u := u.(type) {
				case follow.Event:
					got = append(got, fmt.Sprintf("%d.%d", u.Attempt, u.Seq))
				case follow.Ended:
					got = append(got, string(u.Result.Outcome))
				default:
					got = append(got, fmt.Sprintf("%T", u))
				}
			}
			<-done
			if want := "1.1 1.2 1.3 2.1 2.2 2.3 succeeded"; strings.Join(got, " ") != want {
				t.Errorf("broken after %d: got %q, want %q", after, got, want)
			}
			if after == 1 && client.calls.Load() != 6 {
				t.Errorf("%d connections, want one for each event", client.calls.Load())
			}
		})
	}
}

// work runs a job in two attempts, with a pause before each event.
func work(t *testing.T, q *jobtest.Queue) {
	w := q.Consumer("w1")
	for attempt := range 2 {
		l, err := w.Next(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		events := []job.Event{{Kind: job.EventClaimed}, {Kind: job.EventStepStart}, {Kind: job.EventRetry}}
		if attempt == 1 {
			events = events[:2]
		}
		for _, e := range events {
			<-time.After(700 * time.Millisecond)
			if err := l.Emit(t.Context(), []job.Event{e}); err != nil {
				t.Error(err)
			}
		}
		if attempt == 0 {
			err = l.Requeue(t.Context(), job.ClassJob, time.Second, job.Failure{Outcome: job.Failed, Reason: job.ReasonExit})
		} else {
			_, err = l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestJob_QueueUnknown: the queue has never heard of the job.
func TestJob_QueueUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobtest.NewQueue(jobtest.Config{})
		for u, err := range follow.Job(t.Context(), q, job.NewID()) {
			if err == nil {
				t.Errorf("got %#v, want an error", u)
			} else if !strings.Contains(err.Error(), "not found") {
				t.Errorf("got %v, want ErrNotFound", err)
			}
		}
	})
}
