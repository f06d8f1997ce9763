package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/sync/wsynctest"
)

func TestPanic(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		other := b.put(jobOf(run("sleep 1m")))
		l := b.do(jobOf(run("panic"), run("say b")))
		b.wantRetry(l, job.ClassInfra, job.ReasonInternal)
		if b.boxes.alive() != 1 {
			t.Errorf("got %d boxes, want that of the other job", b.boxes.alive())
		}
		b.wait(other)
		b.want(other, job.Succeeded, "")
	})
}

func TestPanic_Anywhere(t *testing.T) {
	t.Parallel()
	bad := func(context.Context) error { panic("broken") }
	tests := map[string]func(*bundle, *fakeLease){
		"prepare": func(b *bundle, _ *fakeLease) { b.boxes.prepare = bad },
		"create":  func(b *bundle, _ *fakeLease) { b.boxes.create = bad },
		"start":   func(b *bundle, _ *fakeLease) { b.boxes.start = bad },
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				l := newLease(b, jobOf(run("say a")))
				set(b, l)
				b.start()
				b.queue.leases <- l
				b.wait(l)
				b.wantRetry(l, job.ClassInfra, job.ReasonInternal)
			})
		})
	}
	t.Run("commit", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			l := newLease(b, jobOf(run("say a")))
			l.commit = func(context.Context, *job.Result) (*job.Result, error) { panic("broken") }
			b.start()
			b.queue.leases <- l
			synctest.Wait()
			l.untouched()
			b.want(b.do(jobOf(run("say b"))), job.Succeeded, "")
		})
	})
	t.Run("emit and extend", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			l := newLease(b, jobOf(run("say a; sleep 1h")))
			l.emit, l.extend = bad, bad
			b.start()
			b.queue.leases <- l
			b.wait(l)
			b.wantRetry(l, job.ClassInfra, job.ReasonInternal)
		})
	})
}

// TestSetup: whatever fails on the way to the first step, no box is left, and the reason says what it was.
func TestSetup(t *testing.T) {
	t.Parallel()
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	tests := []struct {
		name   string
		set    func(*fakeProvider)
		retry  bool
		reason job.Reason
	}{
		{"no image", func(p *fakeProvider) { p.prepare = fails(container.ErrImageNotFound) }, false, job.ReasonImageNotFound},
		{"no access", func(p *fakeProvider) { p.prepare = fails(container.ErrImageAuth) }, false, job.ReasonImageAuth},
		{"pull fails", func(p *fakeProvider) { p.prepare = fails(container.ErrImagePull) }, true, job.ReasonImagePull},
		{"pull hangs", func(p *fakeProvider) { p.prepare = hang }, true, job.ReasonImagePull},
		{"engine away", func(p *fakeProvider) { p.prepare = fails(container.ErrEngineUnavailable) }, true, job.ReasonEngineUnavailable},
		{"create fails", func(p *fakeProvider) { p.create = fails(container.ErrEngineUnavailable) }, true, job.ReasonEngineUnavailable},
		{"create hangs", func(p *fakeProvider) { p.create = hang }, true, job.ReasonEngineUnavailable},
		{"unsupported", func(p *fakeProvider) { p.create = fails(container.ErrUnsupported) }, false, job.ReasonPolicyDenied},
		{"start fails", func(p *fakeProvider) { p.start = fails(container.ErrBoxLost) }, true, job.ReasonBoxLost},
		{"start hangs", func(p *fakeProvider) { p.start = hang }, true, job.ReasonEngineUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				tt.set(b.boxes)
				l := b.do(jobOf(run("say a"), always("say b")))
				if tt.retry {
					b.wantRetry(l, job.ClassInfra, tt.reason)
				} else {
					b.want(l, job.Errored, tt.reason)
				}
				b.boxes.empty()
				if tt.name != "no image" && tt.reason == job.ReasonEngineUnavailable && tt.name != "engine away" && len(b.boxes.removed) == 0 {
					t.Error("no removal was asked for: the engine may have made the box after all")
				}
			})
		})
	}
}

func TestSettle_MessageIsBounded(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.prepare = func(context.Context) error {
			return fmt.Errorf("%w: %s", container.ErrImageNotFound, strings.Repeat("x", 1<<20))
		}
		r := b.want(b.do(jobOf(run("say a"))), job.Errored, job.ReasonImageNotFound)
		if n := len(r.Message); n > maxMessage || n < maxMessage/2 {
			t.Errorf("got a message of %d bytes, want up to %d", n, maxMessage)
		}
	})
}

func TestRemoval_Persists(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		fails := 3
		b.boxes.remove = func(context.Context) error {
			if fails--; fails >= 0 {
				return container.ErrEngineUnavailable
			}
			return nil
		}
		b.cfg.Slots = 1
		b.start()
		l := b.put(jobOf(run("say a")))
		next := b.put(jobOf(run("say b")))
		b.wait(l)
		if got := l.result.FinishedAt.Sub(l.result.StartedAt); got != 0 {
			t.Errorf("the result waited %s for the engine", got)
		}
		next.untouched() // the slot is not free before the box is gone
		b.wait(next)
		if b.seen.get("leftover") != 0 || b.seen.get("phase cleanup") != 2 {
			t.Errorf("got %v, want two clean cleanups", b.seen.count)
		}
	})
}

func TestRemoval_GivesUp(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.remove = func(context.Context) error { return container.ErrEngineUnavailable }
		l := b.do(jobOf(run("say a")))
		b.want(l, job.Succeeded, "")
		pass(2 * DefaultCleanupTimeout)
		if b.seen.get("leftover") != 1 || b.seen.get("phase failed cleanup") != 1 {
			t.Errorf("got %v, want one leftover", b.seen.count)
		}
		clear(b.boxes.boxes)
	})
}

// TestPush_Bounded: a store that hangs costs an infrastructure retry, after SyncTimeout.
func TestPush_Bounded(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: 24 * time.Hour})
		j := jobOf(run("touch f"))
		j.Workspace = &job.Workspace{Prefix: "ws"}
		began := time.Now()
		l := b.do(j)
		b.wantRetry(l, job.ClassInfra, job.ReasonWorkspacePush)
		if !strings.Contains(l.failure.Message, "SyncTimeout") || time.Since(began) != DefaultSyncTimeout {
			t.Errorf("got %q after %s, want the setting's name after %s", l.failure.Message, time.Since(began), DefaultSyncTimeout)
		}
	})
}
