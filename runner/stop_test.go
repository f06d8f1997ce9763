package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
	"slipway/sync/wsynctest"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		j := jobOf(run("touch f; sleep 1h"), run("say b"), always("say c; sleep 1m"))
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := b.put(j)
		pass(10 * time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		r := b.want(l, job.Canceled, job.ReasonCanceledByUser)
		want := []job.StepStatus{job.StepCanceled, job.StepSkipped, job.StepSucceeded}
		if got := statuses(r); !slices.Equal(got, want) {
			t.Errorf("got steps %v, want %v", got, want)
		}
		if r.Workspace.FilesPushed != 1 || r.Workspace.Commit == "" {
			t.Errorf("got workspace %+v, want one file pushed", r.Workspace)
		}
		if got := r.FinishedAt.Sub(r.StartedAt); got != 70*time.Second {
			t.Errorf("took %s, want 10s and the always-step's minute", got)
		}
	})
}

func TestCancel_InSetup(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.prepare = hang
		b.start()
		l := b.put(jobOf(run("say a"), always("say b")))
		pass(time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		if r := b.want(l, job.Canceled, job.ReasonCanceledByUser); len(r.Steps) != 0 {
			t.Errorf("got steps %v, want none: no box was there", statuses(r))
		}
	})
}

func TestAbort(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		j := jobOf(job.Step{Run: "touch f; stubborn 1h", Grace: ptr(job.Duration(10 * time.Minute))}, always("say c"))
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := b.put(j)
		pass(time.Second)
		l.cancels <- job.Cancel
		pass(time.Second)
		l.cancels <- job.Abort
		b.wait(l)
		r := b.want(l, job.Canceled, job.ReasonCanceledByUser)
		if got := r.FinishedAt.Sub(r.StartedAt); got != 2*time.Second {
			t.Errorf("took %s, want 2s: an abort waits for no grace", got)
		}
		if got := statuses(r); !slices.Equal(got, []job.StepStatus{job.StepCanceled, job.StepSkipped}) {
			t.Errorf("got steps %v, want canceled and skipped", got)
		}
		if keys := b.store.Keys(""); len(keys) != 0 || r.Workspace.NotSaved != "ended before the push" {
			t.Errorf("an aborted job wrote %v, and says of it %q", keys, r.Workspace.NotSaved)
		}
	})
}

// TestStop_BeforePush: the attempt is ended between its last step and its push. A
// success would claim that the files are saved.
func TestStop_BeforePush(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		step  string
		stop  func(*bundle, *fakeLease)
		check func(*bundle, *fakeLease)
	}{
		{"abort", "touch f", (*bundle).abort, func(b *bundle, l *fakeLease) { b.want(l, job.Canceled, job.ReasonCanceledByUser) }},
		{"kill", "touch f", func(b *bundle, _ *fakeLease) { b.worker.Kill() }, wantReleased},
		{"kill after a failure", "exit 3", func(b *bundle, _ *fakeLease) { b.worker.Kill() }, wantReleased},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				j := jobOf(run(tt.step))
				j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
				l := newLease(b, j)
				b.seen.phase = func(phase string) {
					if phase == phaseSteps {
						tt.stop(b, l)
						synctest.Wait()
					}
				}
				b.start()
				b.queue.leases <- l
				b.wait(l)
				tt.check(b, l)
				if keys := b.store.Keys(""); len(keys) != 0 {
					t.Errorf("got %v in the store, want nothing", keys)
				}
			})
		})
	}
}

func (b *bundle) abort(l *fakeLease) { l.cancels <- job.Abort }

func wantReleased(b *bundle, l *fakeLease) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released {
		b.t.Errorf("got result %+v, failure %+v; want the job given back", l.result, l.failure)
	}
}

func TestSoftStop_LetsAttemptsFinish(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := b.put(jobOf(run("sleep 1m")))
		pass(time.Second)
		b.halt()
		b.want(l, job.Succeeded, "")
		if b.seen.get("draining") != 1 {
			t.Error("nobody was told that the worker drains")
		}
	})
}

func TestSoftStop_GivesJobsBack(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.SoftStop = 30 * time.Second
		b.start()
		polite := b.put(jobOf(run("sleep 1h"), always("say no")))
		stubborn := b.put(jobOf(job.Step{Run: "stubborn 1h", Grace: ptr(job.Duration(10 * time.Minute))}))
		waiting := b.put(jobOf(run("say never")))
		pass(time.Second)
		began := time.Now()
		b.halt()
		if got, want := time.Since(began), 30*time.Second+stopGrace; got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		if !polite.released || !stubborn.released {
			t.Errorf("released: got %t, %t; want both", polite.released, stubborn.released)
		}
		waiting.untouched()
		if b.seen.get("retried shutdown") != 2 {
			t.Errorf("got %d jobs given back, want 2", b.seen.get("retried shutdown"))
		}
	})
}

func TestSoftStop_None(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.SoftStop = -1
		b.start()
		l := b.put(jobOf(run("sleep 1h")))
		pass(time.Second)
		began := time.Now()
		b.halt()
		if !l.released || time.Since(began) != 0 {
			t.Errorf("released %t after %s, want at once", l.released, time.Since(began))
		}
	})
}

func TestKill(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"running", "draining", "stopping"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.start()
				l := b.put(jobOf(job.Step{Run: "stubborn 1h", Grace: ptr(job.Duration(10 * time.Minute))}))
				pass(time.Second)
				switch when {
				case "draining":
					b.stop()
					pass(time.Second)
				case "stopping":
					b.stop()
					pass(DefaultSoftStop + time.Second)
				}
				began := time.Now()
				b.worker.Kill()
				b.worker.Kill()
				b.halt()
				if !l.released || time.Since(began) != 0 {
					t.Errorf("released %t after %s, want at once", l.released, time.Since(began))
				}
			})
		})
	}
}

// TestKill_Bounded: nothing that hangs keeps a killed worker for long.
func TestKill_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, queue: newFakeQueue(), boxes: newFakeProvider(t), seen: newObserved()}
		b.cfg = Config{Queue: b.queue, Provider: b.boxes, Slots: 1, Observer: b.seen}
		b.boxes.remove = hang
		b.start()
		b.put(jobOf(run("sleep 1h")))
		pass(time.Second)
		began := time.Now()
		b.worker.Kill()
		if err := <-b.ended; err != nil {
			t.Errorf("got %v", err)
		}
		if got := time.Since(began); got > killSettle {
			t.Errorf("took %s, want at most %s", got, killSettle)
		}
		if b.seen.get("leftover") != 1 {
			t.Errorf("got %d leftovers, want 1", b.seen.get("leftover"))
		}
	})
}

func TestRun_Twice(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		synctest.Wait()
		if err := b.worker.Run(t.Context()); !errors.Is(err, ErrRunTwice) {
			t.Errorf("got %v, want ErrRunTwice", err)
		}
	})
}

func TestRun_QueueCantWork(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var broken atomic.Bool
		b.queue.next = func(context.Context) error {
			if broken.Load() {
				return job.ErrUnavailable
			}
			return nil
		}
		b.start()
		l := b.put(jobOf(run("sleep 1m")))
		pass(time.Second)
		broken.Store(true)
		b.put(jobOf(run("say a"))) // wakes the second slot, which then meets the error
		if err := <-b.ended; !errors.Is(err, job.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		b.stop()
		b.stop = nil
		b.want(l, job.Succeeded, "")
	})
}

func TestRun_NextFailsForATime(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		fails := 3
		b.cfg.Slots = 1
		b.queue.next = func(context.Context) error {
			if fails--; fails >= 0 {
				return errOdd
			}
			return nil
		}
		began := time.Now()
		b.want(b.do(jobOf(run("say a"))), job.Succeeded, "")
		if got := time.Since(began); got != 7*time.Second {
			t.Errorf("took %s, want 1s + 2s + 4s", got)
		}
	})
}

// TestRun_FetchBackoff: the delay grows to a bound, and begins anew once the queue gave a job.
func TestRun_FetchBackoff(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var asked []time.Time
		b.cfg.Slots = 1
		b.queue.next = func(context.Context) error {
			asked = append(asked, time.Now())
			if n := len(asked); n <= 8 || n == 10 {
				return errOdd
			}
			return nil
		}
		b.want(b.do(jobOf(run("say a"))), job.Succeeded, "")
		b.want(b.do(jobOf(run("say b"))), job.Succeeded, "")
		if got := asked[8].Sub(asked[7]); got != maxFetchBackoff {
			t.Errorf("got a delay of %s after many errors, want %s", got, maxFetchBackoff)
		}
		if got := asked[10].Sub(asked[9]); got != fetchBackoff {
			t.Errorf("got a delay of %s after a job, want %s", got, fetchBackoff)
		}
	})
}

func TestSoftStop_InSetup(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.prepare, b.cfg.SoftStop = hang, time.Second
		b.start()
		l := b.put(jobOf(run("say a")))
		pass(time.Second)
		b.halt()
		if !l.released {
			t.Error("the job was not given back")
		}
	})
}

// TestCancel_InPush: what is nearly done is finished.
func TestCancel_InPush(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: time.Minute})
		b.start()
		j := jobOf(run("touch f"))
		j.Workspace = &job.Workspace{Prefix: "ws"}
		l := b.put(j)
		pass(time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		if r := b.want(l, job.Succeeded, ""); r.Workspace.FilesPushed != 1 {
			t.Errorf("got %+v, want one file pushed", r.Workspace)
		}
	})
}
