package natsqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// restartable is a server that can go away and come back with its store and address.
type restartable struct {
	t    *testing.T
	dir  string
	addr string
	srv  *natsserver.Server
}

func startRestartable(t *testing.T) *restartable {
	t.Helper()
	r := &restartable{t: t, dir: t.TempDir(), addr: "127.0.0.1:0"}
	r.start()
	r.addr = r.srv.Addr().String()
	t.Cleanup(func() { r.srv.Close() })
	return r
}

func (r *restartable) start() {
	r.t.Helper()
	// The port may be taken for a moment by the connections of the server before.
	var err error
	for range 50 {
		if r.srv, err = natsserver.Start(natsserver.Options{Dir: r.dir, Addr: r.addr}); err == nil {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	r.t.Fatal(err)
}

func (r *restartable) restart(down time.Duration) {
	r.t.Helper()
	r.srv.Close()
	<-time.After(down)
	r.start()
}

// setupOn makes a fresh queue on a server of its own.
func setupOn(t *testing.T, r *restartable, edits ...func(*natsqueue.Config)) *bundle {
	return setup(t, append([]func(*natsqueue.Config){func(c *natsqueue.Config) { c.URL = r.srv.ClientURL() }}, edits...)...)
}

// The server goes away and comes back while a job runs: once for a moment, once
// for longer than a lease, so that the token is handed out again.
func TestServerRestartWhileLeased(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		timing job.Timing
		down   time.Duration // zero: longer than AckWait
	}{
		{"short", patient, 300 * time.Millisecond},
		{"longer than AckWait", fast, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := startRestartable(t)
			b := setupOn(t, r, func(c *natsqueue.Config) { c.Timing = tt.timing })
			timing, short := b.cfg.Timing, tt.down != 0
			if !short {
				tt.down = timing.AckWait + 500*time.Millisecond
			}
			w := b.join(t, "w1")
			id := b.submit(makeJob())
			held := &holder{lease: b.mustNext(w), timing: timing}
			held.start(t.Context())
			r.restart(tt.down)
			var wg sync.WaitGroup
			ctx, cancel := context.WithTimeout(t.Context(), b.bound(40*time.Second))
			defer cancel()
			wg.Go(func() { // a free slot of the same worker, and of another: they get the tokens that are delivered again
				for ctx.Err() == nil {
					if l, err := w.Next(ctx); err == nil {
						// Not with ctx: it ends when the result can be read, which is before the commit has settled.
						if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Succeeded}); err != nil {
							t.Errorf("Commit of the second attempt: %v", err)
						}
					}
				}
			})
			if short {
				<-time.After(timing.AckWait)
			}
			if fenced := held.stop(); !fenced {
				b.commit(held.lease)
			} else if short {
				t.Error("the lease was not confirmed in time although the server was back soon")
			}
			res, err := b.conn.Client().Result(ctx, id)
			if err != nil || res.Outcome != job.Succeeded {
				t.Fatalf("Result: got %+v, %v; want succeeded", res, err)
			}
			if short && res.Attempt != 1 {
				t.Errorf("attempt: got %d, want the first, for its lease held", res.Attempt)
			}
			cancel()
			wg.Wait()
			if got := b.stored("RESULTS", b.cfg.Prefix+".R.>"); len(got) != 1 {
				t.Errorf("results: got %v, want one", got)
			}
		})
	}
}

// After an outage the entries of the living workers are gone. No worker takes
// a job over before its owner's lease can have run out.
func TestNoTakeOverRightAfterAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(makeJob())
	w1, w2 := b.join(t, "w1"), b.join(t, "w2")
	b.mustNext(w1)
	w1.Kill()
	<-time.After(b.cfg.Timing.AckWait - b.bound(200*time.Millisecond))
	back := time.Now() // before: the worker's own clock starts when the connection is there
	if err := w2.Reconnect(); err != nil {
		t.Fatal(err)
	}
	d := b.mustNext(w2).Delivery()
	// Not ClaimedAt: that is the start of the claim, and the claim looks at the owner later.
	if took := time.Since(back); d.Attempt != 2 || took < b.cfg.Timing.Lease {
		t.Errorf("got attempt %d, %s after the outage; want the second, not before %s", d.Attempt, took, b.cfg.Timing.Lease)
	}
}

// An outage that is longer than a lease ends the lease of a worker that lives. Whoever takes the job over charges the
// infrastructure's budget for that, however often it happens: the job killed no worker.
func TestOutageIsNoCrash(t *testing.T) {
	t.Parallel()
	r := startRestartable(t)
	b := setupOn(t, r, func(c *natsqueue.Config) { c.CrashBudget = -1 })
	workers := []*natsqueue.Consumer{b.join(t, "w1"), b.join(t, "w2")}
	b.submit(makeJob())
	l := b.mustNext(workers[0])
	for outage := 1; outage <= 2; outage++ {
		held := &holder{lease: l, timing: b.cfg.Timing}
		held.start(t.Context())
		r.restart(b.cfg.Timing.AckWait + 500*time.Millisecond)
		<-held.done
		if !held.stop() {
			t.Fatal("the lease outlived an outage that is longer than it")
		}
		l = b.mustNext(workers[outage%2]) // the other worker
		d := l.Delivery()
		if want := (job.Counts{Infra: outage}); d.Counts != want || d.Attempt != outage+1 {
			t.Fatalf("after outage %d: got attempt %d, charged %+v; want attempt %d, charged %+v", outage, d.Attempt, d.Counts, outage+1, want)
		}
	}
	b.commit(l)
}

// holder keeps a lease as a worker does: extends it, and gives it up by itself
// when no confirmation comes in time.
type holder struct {
	lease  job.Lease
	timing job.Timing
	quit   context.CancelFunc
	done   chan struct{}
	fenced bool
}

func (h *holder) start(ctx context.Context) {
	ctx, h.quit = context.WithCancel(ctx)
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		confirmed := time.Now()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.timing.Heartbeat):
			}
			began := time.Now()
			tryCtx, cancel := context.WithDeadline(ctx, confirmed.Add(h.timing.Lease))
			err := h.lease.Extend(tryCtx)
			cancel()
			if err == nil {
				confirmed = began
			}
			if errors.Is(err, job.ErrLeaseLost) || time.Since(confirmed) >= h.timing.Lease {
				h.fenced = true
				return
			}
		}
	}()
}

// stop ends the loop and reports whether the lease is lost.
func (h *holder) stop() bool {
	h.quit()
	<-h.done
	return h.fenced
}

// TestGivenBackBeforeAStop: a job that was given back right before the server stopped is handed out once it is there again,
// not after AckWait.
func TestGivenBackBeforeAStop(t *testing.T) {
	t.Parallel()
	r := startRestartable(t)
	b := setupOn(t, r, func(c *natsqueue.Config) { c.Timing = job.DefaultTiming() })
	id := b.submit(makeJob())
	w := b.join(t, "w1")
	l := b.mustNext(w)
	w.Kill() // it takes no job any more
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.restart(0)
	if d := b.mustNext(b.join(t, "w2")).Delivery(); d.ID != id || d.Attempt != 2 || d.Counts != (job.Counts{}) {
		t.Errorf("delivery: got %+v, want the second attempt of %s, at no cost", d, id)
	}
}

// TestRestartOfAKilledWorker: a worker that was killed comes back under its name at once, and takes what waits. Its entry
// stays for DeadMan, which it waited for.
func TestRestartOfAKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *natsqueue.Config) { c.Timing = job.DefaultTiming() })
	lost := b.submit(makeJob())
	w := b.join(t, "w1")
	l := b.mustNext(w)
	w.Kill()
	began := time.Now()
	waits := b.submit(makeJob())
	again := b.join(t, "w1")
	if d := b.mustNext(again).Delivery(); d.ID != waits {
		t.Errorf("delivery: got %s, want %s", d.ID, waits)
	}
	if took, limit := time.Since(began), b.cfg.Timing.DeadMan/2; took > limit {
		t.Errorf("the next process had its first job after %s, want it at once", took)
	}
	// The box of the process before may still run. So a second token of its job starts none beside it.
	b.publish(b.token(lost), l.Delivery().Spec)
	b.nothing(again, time.Second)
}
