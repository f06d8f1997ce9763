package runner

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/box"
	"slipway/sync/wsynctest"
)

// TestBoxLife_OutlivesEveryClock: a job that uses every clock to its end, one after the other, does so in one life of its box.
func TestBoxLife_OutlivesEveryClock(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.SyncTimeout, b.cfg.CleanupTimeout = 20*time.Minute, 10*time.Minute
		nearly := func(d time.Duration) time.Duration { return d - time.Second }
		var made, gone time.Time
		b.boxes.create = func(context.Context) error { made = time.Now(); pass(nearly(box.CreateTimeout)); return nil }
		b.boxes.remove = func(context.Context) error { pass(nearly(b.cfg.CleanupTimeout)); gone = time.Now(); return nil }
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Delay: nearly(b.cfg.SyncTimeout)})
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: nearly(b.cfg.SyncTimeout)})
		grace := job.Duration(job.MaxGrace)
		j := jobOf(
			job.Step{Run: "touch f; stubborn 24h", Grace: &grace},
			job.Step{Run: "stubborn 24h", Grace: &grace, If: job.IfAlways},
		)
		j.Timeout = job.Duration(3 * time.Hour)
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := b.do(j)
		r := b.want(l, job.TimedOut, job.ReasonJobTimeout)
		if r.Workspace.FilesPushed != 1 {
			t.Errorf("got workspace %+v, want one file pushed", r.Workspace)
		}
		pass(b.cfg.CleanupTimeout)
		synctest.Wait()
		lived, lifetime := gone.Sub(made), b.boxes.specs[0].Lifetime
		if lived > lifetime || lived < lifetime-job.MaxGrace {
			t.Errorf("the box was needed for %s, its lifetime is %s", lived, lifetime)
		}
	})
}

// TestBoxLife_Expiry: the time of a box counts from when it was made, not from when its image was asked for.
func TestBoxLife_Expiry(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.prepare = func(context.Context) error { pass(9 * time.Minute); return nil }
		var made time.Time
		b.boxes.create = func(context.Context) error { made = time.Now(); return nil }
		b.want(b.do(jobOf(run("say a"))), job.Succeeded, "")
		spec := b.boxes.specs[0]
		expires, err := strconv.ParseInt(spec.Labels[container.LabelExpires], 10, 64)
		if err != nil || time.Unix(expires, 0).Before(made.Add(spec.Lifetime)) {
			t.Errorf("it expires at %d (%v), before the end of its lifetime", expires, err)
		}
	})
}

// TestBoxLife_EarlierAttempts: an engine that can't list its boxes costs no attempt: the reaper removes what is left.
func TestBoxLife_EarlierAttempts(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.listing = func(context.Context) error { return errors.New("odd") }
		b.want(b.do(jobOf(run("say a"))), job.Succeeded, "")
	})
}

// TestReaper_Bounded: an engine that does not answer holds no round of the reaper for ever.
func TestReaper_Bounded(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		rounds := 0
		b.boxes.listing = func(ctx context.Context) error { rounds++; return hang(ctx) }
		b.start()
		pass(2*(reapTimeout+reapInterval) + time.Second)
		synctest.Wait()
		if rounds != 3 {
			t.Errorf("got %d rounds, want 3", rounds)
		}
	})
}

// TestReaper_LeavesABoxThatIsBeingMade: it is the attempt's from before the engine is asked for it.
func TestReaper_LeavesABoxThatIsBeingMade(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		name := ""
		b.cfg.Slots = 1
		b.boxes.create = func(context.Context) error {
			b.boxes.show(container.Info{Name: name, State: container.StateCreated, CreatedAt: time.Now().Add(-time.Hour)})
			pass(box.CreateTimeout - time.Second)
			return nil
		}
		b.start()
		pass(reapInterval / 2)
		l := newLease(b, jobOf(run("say a")))
		name = boxName(l.delivery)
		b.queue.leases <- l
		pass(box.CreateTimeout - 2*time.Second)
		if len(b.boxes.removed) != 0 {
			t.Errorf("removed %v", b.boxes.removed)
		}
		b.wait(l)
		b.want(l, job.Succeeded, "")
		b.boxes.show()
	})
}

func TestBoxName(t *testing.T) {
	t.Parallel()
	d := job.Delivery{ID: "01ABC", Generation: 1, Attempt: 3}
	if got, want := boxName(d), "slipway-01abc-3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	d.Generation = 2
	if got, want := boxName(d), "slipway-01abc-3-g2"; got != want {
		t.Errorf("second generation: got %q, want %q: attempts are counted anew", got, want)
	}
}
