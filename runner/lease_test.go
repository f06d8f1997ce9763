package runner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

func TestLeaseLost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		extend func(context.Context) error
		after  time.Duration
		seen   string
	}{
		{"told", func(context.Context) error { return job.ErrLeaseLost }, 15 * time.Second, "lease lost"},
		{"refused", func(context.Context) error { return job.ErrUnavailable }, 45 * time.Second, "fenced"},
		{"hangs", hang, 45 * time.Second, "fenced"},
		{"hangs for good", func(context.Context) error { pass(time.Hour); return nil }, 45 * time.Second, "fenced"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.start()
				j := jobOf(job.Step{Run: "stubborn 1h", Grace: ptr(job.Duration(10 * time.Minute))}, always("say c"))
				j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
				j.Timeout = job.Duration(24 * time.Hour)
				l := newLease(b, j)
				l.extend = tt.extend
				b.queue.leases <- l
				pass(tt.after - time.Second)
				if b.boxes.alive() != 1 {
					t.Fatal("the box is not there")
				}
				pass(time.Second + time.Millisecond)
				synctest.Wait()
				b.boxes.empty()
				pass(2 * time.Hour)
				l.untouched()
				if b.seen.get(tt.seen) != 1 {
					t.Errorf("got %v, want one %q", b.seen.count, tt.seen)
				}
				if keys := b.store.Keys(""); len(keys) != 0 {
					t.Errorf("a lost attempt wrote %v", keys)
				}
			})
		})
	}
}

// TestLease_ConfirmedBeforePush: without the queue nothing is saved, since no result could stand beside it.
func TestLease_ConfirmedBeforePush(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"short outage": 30 * time.Second, "long outage": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.start()
				j := jobOf(run("touch a"))
				j.Workspace = &job.Workspace{Prefix: "ws"}
				l := newLease(b, j)
				back := time.Now().Add(outage)
				l.extend = func(context.Context) error {
					if time.Now().Before(back) {
						return job.ErrUnavailable
					}
					return nil
				}
				b.queue.leases <- l
				pass(29 * time.Second)
				if keys := b.store.Keys(""); len(keys) != 0 {
					t.Errorf("saved without a confirmed lease: %v", keys)
				}
				pass(2 * time.Minute)
				b.boxes.empty()
				if outage < time.Minute {
					b.want(l, job.Succeeded, "")
					return
				}
				l.untouched()
				if keys := b.store.Keys(""); len(keys) != 0 {
					t.Errorf("a fenced attempt wrote %v", keys)
				}
			})
		})
	}
}

func newLease(b *bundle, j *job.Job) *fakeLease {
	b.t.Helper()
	j.Image = "docker.io/library/alpine"
	spec, err := job.Encode(j)
	if err != nil {
		b.t.Fatal(err)
	}
	return newFakeLease(b.t, spec)
}

// TestLease_CountsFromTheClaim: a claim that took long leaves less of its lease.
func TestLease_CountsFromTheClaim(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := newLease(b, jobOf(run("sleep 1h")))
		l.delivery.ClaimedAt = time.Now()
		l.extend = hang
		pass(14 * time.Second)
		b.start()
		b.queue.leases <- l
		pass(31*time.Second + time.Millisecond)
		synctest.Wait()
		b.boxes.empty()
		l.untouched()
		if b.seen.get("fenced") != 1 {
			t.Errorf("got %v, want one attempt fenced", b.seen.count)
		}
	})
}

// TestLease_LostForEver: a job that loses its lease each time must come to an end.
func TestLease_LostForEver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		infra, budget int
		reason        job.Reason
	}{{10, 0, ""}, {11, 0, job.ReasonInfraBudget}, {0, -1, ""}, {1, -1, job.ReasonInfraBudget}} {
		t.Run(fmt.Sprintf("%d of %d", tt.infra, tt.budget), func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.cfg.InfraBudget = tt.budget
				l := newLease(b, jobOf(run("say a")))
				l.delivery.Counts.Infra = tt.infra
				b.start()
				b.queue.leases <- l
				b.wait(l)
				b.want(l, tt.reason.Outcome(), tt.reason)
			})
		})
	}
}

func TestLease_SurvivesALostHeartbeat(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := newLease(b, jobOf(run("sleep 10m")))
		n := 0
		l.extend = func(context.Context) error {
			if n++; n%3 != 0 {
				return job.ErrUnavailable
			}
			return nil
		}
		b.queue.leases <- l
		b.wait(l)
		b.want(l, job.Succeeded, "")
	})
}

// TestLease_CommitNeedsIt: a commit that hangs ends with the lease.
func TestLease_CommitNeedsIt(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := newLease(b, jobOf(run("say a")))
		l.extend = func(context.Context) error { return job.ErrUnavailable }
		l.commit = func(ctx context.Context, r *job.Result) (*job.Result, error) { return nil, hang(ctx) }
		b.queue.leases <- l
		pass(46 * time.Second)
		synctest.Wait()
		l.untouched()
		if b.seen.get("fenced") != 1 {
			t.Errorf("got %v, want one fenced", b.seen.count)
		}
	})
}

// TestGhost: an engine that makes the box although nobody waits for it any more.
func TestGhost(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.create = func(context.Context) error { pass(time.Minute); return nil }
		b.boxes.start = hang
		b.start()
		l := newLease(b, jobOf(run("say a")))
		l.extend = func(context.Context) error { return job.ErrLeaseLost }
		b.queue.leases <- l
		pass(2 * time.Minute)
		synctest.Wait()
		l.untouched()
		b.boxes.empty()
		if len(b.boxes.removed) == 0 {
			t.Error("the box was never removed")
		}
	})
}

// TestLease_CountsFromTheCall: the server may answer at once, and the answer be late. The lease counts from the call.
func TestLease_CountsFromTheCall(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := newLease(b, jobOf(run("sleep 1h")))
		const late = 10 * time.Second
		l.extend = func(ctx context.Context) error {
			if l.heartbeats() > 1 {
				return hang(ctx)
			}
			pass(late)
			return nil
		}
		b.start()
		b.queue.leases <- l
		timing := job.DefaultTiming()
		pass(timing.Heartbeat + timing.Lease - time.Millisecond)
		if b.boxes.alive() != 1 {
			t.Fatal("the box is not there any more")
		}
		pass(2 * time.Millisecond)
		synctest.Wait()
		b.boxes.empty()
		l.untouched()
		if b.seen.get("fenced") != 1 {
			t.Errorf("got %v, want one attempt fenced", b.seen.count)
		}
	})
}

// TestLease_AnswerAfterTheFence: an answer that comes when the worker has given the lease up changes nothing any more.
func TestLease_AnswerAfterTheFence(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.remove = slowly(50 * time.Second)
		l := newLease(b, jobOf(run("sleep 1h")))
		l.extend = func(context.Context) error { pass(50 * time.Second); return nil }
		b.start()
		b.queue.leases <- l
		pass(5 * time.Minute)
		l.untouched()
		if got := l.heartbeats(); got != 1 || b.seen.get("fenced") != 1 {
			t.Errorf("got %d heartbeats and %v; want one heartbeat, and one attempt fenced", got, b.seen.count)
		}
	})
}

// TestHold_StopIsNoFailedHeartbeat: an extension that the end of the attempt cuts short says nothing about the queue.
func TestHold_StopIsNoFailedHeartbeat(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := newLease(b, jobOf(run("say a")))
		timing := job.DefaultTiming()
		l.extend = func(ctx context.Context) error {
			if l.heartbeats() > 1 {
				return hang(ctx)
			}
			return nil
		}
		h := startHold(b.t.Context(), l, timing, time.Now(), b.seen)
		pass(2*timing.Heartbeat + time.Second) // the second extension is on its way
		h.stop()
		h.release()
		if got := b.seen.get("heartbeat"); l.heartbeats() != 2 || got != 1 {
			t.Errorf("got %d extensions, and told of %d; want two, and told of the first", l.heartbeats(), got)
		}
		if h.ctx.Err() == nil {
			t.Error("the contexts of a hold that was released go on")
		}
	})
}

// TestLease_TakenBeforePush: an attempt that has lost its lease and does not know it yet saves nothing.
func TestLease_TakenBeforePush(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := jobOf(run("touch f"))
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := newLease(b, j)
		l.extend = func(context.Context) error { return job.ErrLeaseLost }
		b.start()
		b.queue.leases <- l
		pass(time.Second) // less than to the first heartbeat: only the push has asked
		synctest.Wait()
		l.untouched()
		b.boxes.empty()
		if keys := b.store.Keys(""); len(keys) != 0 || b.seen.get("lease lost") != 1 {
			t.Errorf("got %v in the store and %v; want nothing saved and one lease lost", keys, b.seen.count)
		}
	})
}
