package runner

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

// slowly makes the removal of a box take d.
func slowly(d time.Duration) func(context.Context) error {
	return func(context.Context) error { pass(d); return nil }
}

// TestSettle_NeverBesideTheBox: the next attempt may begin as soon as the job is back, so the box is gone before.
func TestSettle_NeverBesideTheBox(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		step string
		end  func(*bundle)
	}{
		{"requeue", "lost", func(*bundle) {}},
		{"release", "sleep 1h", (*bundle).halt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.cfg.SoftStop = -1
				b.boxes.remove = slowly(30 * time.Second)
				b.start()
				l := newLease(b, jobOf(run(tt.step)))
				boxes := -1
				l.back = func() { boxes = b.boxes.alive() }
				b.queue.leases <- l
				pass(time.Second)
				tt.end(b)
				b.wait(l)
				if boxes != 0 {
					t.Errorf("got %d boxes when the job went back, want 0", boxes)
				}
			})
		})
	}
}

// TestSettle_EventsBeforeTheEnd: what the attempt has to tell is told before the queue's own event of the end.
func TestSettle_EventsBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for step, last := range map[string]job.EventKind{"say a": job.EventStepEnd, "lost": job.EventRetry} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				l := newLease(b, jobOf(run(step)))
				var told []job.Event
				note := func() {
					l.mu.Lock()
					defer l.mu.Unlock()
					told = slices.Clone(l.events)
				}
				l.back = note
				l.commit = func(_ context.Context, r *job.Result) (*job.Result, error) { note(); return r, nil }
				b.start()
				b.queue.leases <- l
				b.wait(l)
				if len(told) == 0 || told[len(told)-1].Kind != last {
					t.Errorf("got %d events before the end, want the last one to be %s", len(told), last)
				}
			})
		})
	}
}

// waitFor makes a commit that takes d, unless its context ends first.
func waitFor(d time.Duration) func(context.Context, *job.Result) (*job.Result, error) {
	return func(ctx context.Context, r *job.Result) (*job.Result, error) {
		if !pause.For(ctx, d) {
			return nil, job.ErrUnavailable
		}
		return r, nil
	}
}

// TestSettle_OutlivesTheWorker: a commit that is under way is not ended by a worker that stops.
func TestSettle_OutlivesTheWorker(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.SoftStop = time.Second
		l := newLease(b, jobOf(run("say a")))
		l.commit = waitFor(30 * time.Second)
		b.start()
		b.queue.leases <- l
		pass(time.Second)
		b.halt()
		b.want(l, job.Succeeded, "")
	})
}

// TestSettle_WaitsWithTheLease: a queue that has no room for a result is waited for as long as it confirms the lease, with
// the box gone. The job is not run again.
func TestSettle_WaitsWithTheLease(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := newLease(b, jobOf(run("say a")))
		l.commit = waitFor(time.Hour)
		b.start()
		b.queue.leases <- l
		pass(30 * time.Minute)
		if got := b.boxes.alive(); got != 0 {
			t.Errorf("got %d boxes while the result waits, want 0", got)
		}
		b.wait(l)
		b.want(l, job.Succeeded, "")
	})
}

// TestSettle_EndsWithTheLease: no result is offered any more once the queue confirms the lease no longer.
func TestSettle_EndsWithTheLease(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Slots = 1
		l := newLease(b, jobOf(run("say a")))
		l.commit = waitFor(time.Hour)
		l.extend = func(context.Context) error { return errOdd }
		b.start()
		b.queue.leases <- l
		next := b.put(jobOf(run("say b")))
		b.wait(next)
		r := b.want(next, job.Succeeded, "")
		l.untouched()
		if got := r.Steps[0].StartedAt.Sub(l.delivery.SubmittedAt) - 3*time.Second; got != job.DefaultTiming().Lease {
			t.Errorf("the slot was free after %s, want %s", got, job.DefaultTiming().Lease)
		}
		if b.seen.get("fenced") != 1 {
			t.Errorf("got %v, want a lease that the worker gave up", b.seen.count)
		}
	})
}

// TestSettle_Bounded: a queue that answers no commit holds a worker that stops up for CleanupTimeout or AckWait, no longer.
func TestSettle_Bounded(t *testing.T) {
	t.Parallel()
	for cleanup, want := range map[time.Duration]time.Duration{time.Second: time.Minute, 5 * time.Minute: 5 * time.Minute} {
		t.Run(cleanup.String(), func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.cfg.CleanupTimeout, b.cfg.SoftStop = cleanup, -1
				l := newLease(b, jobOf(run("say a")))
				l.commit = waitFor(time.Hour)
				b.start()
				b.queue.leases <- l
				pass(30 * time.Minute)
				began := time.Now()
				b.halt()
				l.untouched()
				if got := time.Since(began); got != want {
					t.Errorf("the worker stopped after %s, want %s", got, want)
				}
			})
		})
	}
}

// TestSettle_LeaseOutlivesTheBox: an attempt that gives its job back keeps the lease for as long as its box takes to
// go, though the worker stops. After a commit there is no lease any more, however long the box takes.
func TestSettle_LeaseOutlivesTheBox(t *testing.T) {
	t.Parallel()
	const removal = 5 * time.Minute
	tests := []struct {
		name string
		step string
		want int
	}{
		{"given back", "sleep 1h", int(removal / (15 * time.Second))},
		{"committed", "say a", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.cfg.SoftStop, b.cfg.CleanupTimeout = -1, 2*removal
				b.boxes.remove = slowly(removal)
				b.start()
				l := b.put(jobOf(run(tt.step)))
				pass(time.Second)
				b.halt()
				if got := l.heartbeats(); got < tt.want || tt.want == 0 && got > 0 {
					t.Errorf("got %d heartbeats, want %d", got, tt.want)
				}
				if b.seen.get("fenced") != 0 {
					t.Error("the lease was lost while the box was removed")
				}
			})
		})
	}
}

// TestSettle_PanicKeepsTheSlot: a defect in the queue's code does not free the slot before the box is gone.
func TestSettle_PanicKeepsTheSlot(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Slots = 1
		b.boxes.remove = slowly(30 * time.Second)
		l := newLease(b, jobOf(run("say a")))
		l.commit = func(context.Context, *job.Result) (*job.Result, error) { panic("broken") }
		b.start()
		b.queue.leases <- l
		next := b.put(jobOf(run("say b")))
		pass(29 * time.Second)
		if got := b.boxes.alive(); got != 1 {
			t.Errorf("got %d boxes in one slot, want 1", got)
		}
		b.wait(next)
		b.want(next, job.Succeeded, "")
		pass(time.Minute)
		synctest.Wait()
	})
}

// TestSettle_LostAfterTheSteps: what came of the work is not offered to a queue that has given the job to another worker.
func TestSettle_LostAfterTheSteps(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := newLease(b, jobOf(run("say a")))
		l.extend = func(context.Context) error { return job.ErrLeaseLost }
		b.seen.phase = func(phase string) {
			if phase == phaseSteps {
				pass(16 * time.Second) // a heartbeat
			}
		}
		b.start()
		b.queue.leases <- l
		pass(time.Minute)
		l.untouched()
		if b.seen.get("lease lost") != 1 {
			t.Errorf("got %v, want one lease lost", b.seen.count)
		}
	})
}

func TestWaited(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	tests := []struct {
		name string
		d    job.Delivery
		want time.Duration
	}{
		{"since it was eligible", job.Delivery{SubmittedAt: at(0), EligibleAt: at(60)}, 40 * time.Second},
		{"since it was submitted", job.Delivery{SubmittedAt: at(90)}, 10 * time.Second},
		{"unknown", job.Delivery{}, 0},
		{"clocks that differ", job.Delivery{SubmittedAt: at(200)}, 0},
	}
	for _, tt := range tests {
		if got := waited(tt.d, at(100)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
