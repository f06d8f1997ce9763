package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/job"
)

// switched is an engine that a test turns off and on.
type switched struct {
	off   atomic.Bool
	asked atomic.Int64
}

func (s *switched) check(context.Context) error {
	s.asked.Add(1)
	if s.off.Load() {
		return container.ErrEngineUnavailable
	}
	return nil
}

// TestEngine_Away: a worker without an engine takes one job at each slot at most, gives it back at no cost, and fetches
// no other until the engine answers.
func TestEngine_Away(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var e switched
		b.boxes.check, b.boxes.prepare = e.check, e.check
		e.off.Store(true)
		b.start()
		var jobs []*fakeLease
		for range 5 {
			jobs = append(jobs, b.put(jobOf(run("say a"))))
		}
		pass(10 * time.Minute)
		synctest.Wait()
		back := 0
		for _, l := range jobs {
			l.mu.Lock()
			if l.failure != nil || l.result != nil {
				t.Errorf("got failure %+v, result %+v; want the job untouched or given back at no cost", l.failure, l.result)
			}
			if l.released {
				back++
			}
			l.mu.Unlock()
		}
		if back == 0 || back > b.cfg.Slots || len(b.queue.leases) != len(jobs)-back {
			t.Errorf("%d jobs were given back and %d wait, want one for each of %d slots at most", back, len(b.queue.leases), b.cfg.Slots)
		}
		if n := len(b.boxes.removed); n != 0 {
			t.Errorf("%d removals were asked for, want none: nothing was made", n)
		}
		e.off.Store(false)
		pass(engineMaxBackoff + time.Minute)
		synctest.Wait()
		for _, l := range jobs {
			if !l.released {
				b.want(l, job.Succeeded, "")
			}
		}
	})
}

// TestEngine_DiesInAnAttempt: a job that had begun is charged, for it may be the cause, and no other job is.
func TestEngine_DiesInAnAttempt(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var e switched
		b.cfg.Slots = 1
		b.boxes.check = e.check
		b.boxes.create = func(context.Context) error {
			e.off.Store(true)
			return container.ErrEngineUnavailable
		}
		b.start()
		first, second := b.put(jobOf(run("say a"))), b.put(jobOf(run("say b")))
		pass(10 * time.Minute)
		synctest.Wait()
		b.wantRetry(first, job.ClassInfra, job.ReasonEngineUnavailable)
		if second.released || second.failure != nil || len(b.queue.leases) != 1 {
			t.Error("the second job was fetched, want it left in the queue")
		}
		b.boxes.create = nil
		e.off.Store(false)
		b.wait(second)
		b.want(second, job.Succeeded, "")
	})
}

// TestEngine_AskedSeldom: a busy worker does not ask for each job.
func TestEngine_AskedSeldom(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var e switched
		b.boxes.check = e.check
		b.start()
		for range 50 {
			b.wait(b.put(jobOf(run("say a"))))
		}
		if n := e.asked.Load(); n != 1 {
			t.Errorf("asked %d times for 50 jobs at once, want once", n)
		}
		pass(engineFresh)
		b.wait(b.put(jobOf(run("say a"))))
		if n := e.asked.Load(); n != 2 {
			t.Errorf("asked %d times, want once more after %s", n, engineFresh)
		}
	})
}

// TestEngine_Hangs: a question without an answer ends by itself; one that the worker's end cuts short says nothing.
func TestEngine_Hangs(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.check = hang
		b.start()
		l := b.put(jobOf(run("say a")))
		began := time.Now()
		b.wait(l)
		if took := time.Since(began); !l.released || took < engineTimeout || took > engineTimeout+time.Second {
			t.Errorf("released %t after %s, want it given back after %s", l.released, took, engineTimeout)
		}
		w := &engine{check: hang, log: b.worker.log}
		ctx, cancel := context.WithCancel(b.t.Context())
		cancel()
		if err := w.ready(ctx); !errors.Is(err, context.Canceled) || w.suspect() {
			t.Errorf("got %v, suspect %t; want a question that was given up to say nothing", err, w.suspect())
		}
	})
}
