package jobtest_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"slipway/job"
	"slipway/job/jobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	timing := job.Timing{DeadMan: 100 * time.Millisecond, Lease: 300 * time.Millisecond, AckWait: 500 * time.Millisecond, Heartbeat: 100 * time.Millisecond}
	jobtest.Run(t, func(*testing.T) jobtest.Harness {
		q := jobtest.NewQueue(jobtest.Config{Timing: timing, CrashBudget: 1})
		return jobtest.Harness{
			Client: q, Timing: timing, CrashBudget: 1, Kill: q.Kill,
			Evict: func(id job.ID) { q.Evict(id, math.MaxInt) },
			Join:  func(_ testing.TB, worker string) job.Consumer { return q.Consumer(worker) },
		}
	})
}

func submit(t *testing.T, q *jobtest.Queue) job.ID {
	t.Helper()
	j := &job.Job{ID: job.NewID(), Image: "busybox", Steps: []job.Step{{Run: "true"}}}
	if err := q.Submit(t.Context(), j); err != nil {
		t.Fatalf("Submit: %v", err)
	}
	return j.ID
}

func next(t *testing.T, c job.Consumer) job.Lease {
	t.Helper()
	l, err := c.Next(t.Context())
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return l
}

// A minute of the production clocks passes in no time inside a bubble.
func TestTakeoverTakesAckWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobtest.NewQueue(jobtest.Config{})
		submit(t, q)
		next(t, q.Consumer("w1"))
		q.Kill("w1")
		began := time.Now()
		l := next(t, q.Consumer("w2"))
		if took := time.Since(began); took != time.Minute {
			t.Errorf("taken over after %s, want AckWait, 1m", took)
		}
		if c := l.Delivery().Counts.Crash; c != 1 {
			t.Errorf("crashes: got %d, want 1", c)
		}
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobtest.NewQueue(jobtest.Config{})
		c := q.Consumer("w1")
		id := submit(t, q)
		l := next(t, c)

		c.FailExtend(job.ErrUnavailable, nil)
		if err := l.Extend(t.Context()); !errors.Is(err, job.ErrUnavailable) {
			t.Errorf("first Extend: got %v, want the injected error", err)
		}
		for range 2 {
			if err := l.Extend(t.Context()); err != nil {
				t.Errorf("Extend: got %v, want none", err)
			}
		}

		q.LoseLease(id)
		if err := l.Extend(t.Context()); !errors.Is(err, job.ErrLeaseLost) {
			t.Errorf("Extend of a lost lease: got %v, want ErrLeaseLost", err)
		}
		l = next(t, c)
		c.FailCommit(job.ErrUnavailable)
		if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded}); !errors.Is(err, job.ErrUnavailable) {
			t.Errorf("Commit: got %v, want the injected error", err)
		}
		if n := q.Published(id); n != 0 {
			t.Errorf("results after a failed commit: got %d, want none", n)
		}
		l = next(t, c) // after AckWait
		if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded}); err != nil {
			t.Errorf("Commit: %v", err)
		}
		if n := q.Published(id); n != 1 {
			t.Errorf("results: got %d, want 1", n)
		}
	})
}

func TestFull(t *testing.T) {
	q := jobtest.NewQueue(jobtest.Config{MaxJobs: 1})
	submit(t, q)
	j := &job.Job{ID: job.NewID(), Image: "busybox", Steps: []job.Step{{Run: "true"}}}
	if err := q.Submit(t.Context(), j); !errors.Is(err, job.ErrFull) {
		t.Errorf("Submit to a full queue: got %v, want ErrFull", err)
	}
}

func TestKillEndsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := jobtest.NewQueue(jobtest.Config{})
		c := q.Consumer("w1")
		got := make(chan error, 1)
		go func() { _, err := c.Next(context.WithoutCancel(t.Context())); got <- err }()
		synctest.Wait()
		q.Kill("w1")
		if err := <-got; err == nil {
			t.Error("Next of a killed worker: got no error, want one")
		}
	})
}
