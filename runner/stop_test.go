package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

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

// TestKill_EventsHang: events take no more than half of the time for what is said to the queue.
func TestKill_EventsHang(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		l := newLease(b, jobOf(run("say a; sleep 1h")))
		l.emit = hang
		b.queue.leases <- l
		pass(time.Second)
		began := time.Now()
		b.worker.Kill()
		b.halt()
		if got := time.Since(began); !l.released || got > 15*time.Second {
			t.Errorf("released %t after %s, want it released within 15s", l.released, got)
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
	for _, cause := range []error{job.ErrUnavailable, job.ErrNotSetUp} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			queueCantWork(t, cause)
		})
	}
}

func queueCantWork(t *testing.T, cause error) {
	scenario(t, func(b *bundle) {
		var broken atomic.Bool
		b.queue.next = func(context.Context) error {
			if broken.Load() {
				return cause
			}
			return nil
		}
		b.start()
		l := b.put(jobOf(run("sleep 1m")))
		pass(time.Second)
		broken.Store(true)
		b.put(jobOf(run("say a"))) // wakes the second slot, which then meets the error
		pass(time.Second)
		b.stop() // what ended the fetching is the error all the same
		if err := <-b.ended; !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
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

// TestSoftStop_InEndingTime: a step that always runs reacts to a stop of the worker as any other does, with its TERM.
func TestSoftStop_InEndingTime(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.SoftStop = -1
		b.start()
		l := b.put(jobOf(run("sleep 1h"), always("sleep 4m")))
		pass(time.Second)
		l.cancels <- job.Cancel
		pass(time.Second)
		began := time.Now()
		b.halt()
		if got := time.Since(began); got != 0 || !l.released {
			t.Errorf("took %s, released %t; want the job back at once", got, l.released)
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
