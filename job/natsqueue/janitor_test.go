package natsqueue_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// A requeue that was cut off after the record is finished by the janitor; a job
// whose message was deleted gets a result that says so.
func TestJanitor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	id := b.submit(makeJob())
	l := b.mustNext(w)
	if err := l.Requeue(t.Context(), job.ClassInfra, time.Hour, job.Failure{}); err != nil {
		t.Fatal(err)
	}
	s := b.conn.NewSweep()
	look(t, s, 3)
	if st, err := b.conn.Client().Status(t.Context(), id); err != nil || st.State != job.StateScheduled {
		t.Fatalf("a healthy job: got %+v, %v; want it untouched", st, err)
	}
	if err := b.stream("SCHED").Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	look(t, s, 2)
	r, err := b.conn.Client().Result(t.Context(), id)
	if err != nil || r.Outcome != job.Errored || r.Reason != job.ReasonInternal {
		t.Errorf("result: got %+v, %v; want errored/internal", r, err)
	}
}

func look(t *testing.T, s *natsqueue.Sweep, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), standstill)
	defer cancel()
	for range times {
		if err := s.Look(ctx); err != nil {
			t.Fatalf("Look: %v", err)
		}
	}
}

// unhurried keeps the workers' own janitors from looking during a test.
func unhurried(c *natsqueue.Config) { c.Timing = job.DefaultTiming() }

// A job that is decided, or has its token, costs the janitor nothing.
func TestJanitorReadsNoDecidedRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	for range 20 {
		b.submit(makeJob())
		b.commit(b.mustNext(w))
	}
	b.submit(makeJob())
	b.mustNext(w)
	nc, _ := b.raw()
	reads := subscribe(t, nc, "$JS.API.DIRECT.GET.KV_"+b.cfg.Prefix+"-jobs.>")
	s := b.conn.NewSweep()
	look(t, s, 3)
	if got := pending(t, nc, reads); got != 3 {
		t.Errorf("reads of the records in 3 looks: got %d, want one a look, for their end", got)
	}
	if open := s.Open(); open != 1 {
		t.Errorf("jobs to look after: got %d, want the one that runs", open)
	}
}

// A dead job that is put back is undecided again, and looked after if its token gets lost.
func TestJanitorOfARequeuedJob(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	id := b.submit(makeJob())
	if _, err := b.mustNext(w).Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget}); err != nil {
		t.Fatal(err)
	}
	s := b.conn.NewSweep()
	look(t, s, 1)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.conn.Client().RequeueDead(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	jobs := b.stream("JOBS")
	msg, err := jobs.GetLastMsgForSubject(t.Context(), b.token(id))
	if err == nil {
		err = jobs.DeleteMsg(t.Context(), msg.Sequence)
	}
	if err != nil {
		t.Fatal(err)
	}
	look(t, s, 2)
	if st, err := b.conn.Client().Status(t.Context(), id); err != nil || st.State != job.StateErrored || st.Generation != 2 {
		t.Errorf("status: got %+v, %v; want generation 2 given up", st, err)
	}
}

// A look ends with its share of the election's time, and the next goes on where it stopped.
func TestJanitorStopsInTime(t *testing.T) {
	t.Parallel()
	var late atomic.Bool
	b := setup(t, unhurried, func(c *natsqueue.Config) {
		c.OnError = func(err error) {
			if errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "look for lost tokens") {
				late.Store(true)
			}
		}
	})
	w := b.join(t, "w1")
	b.submit(makeJob())
	b.mustNext(w)
	s := w.Tend(nil, time.Nanosecond)
	if s == nil || !late.Load() {
		t.Fatalf("Tend: got %v, in time: %t; want a sweep that was cut short", s, !late.Load())
	}
	// The key of the first round is short; it may go away in the middle of the second.
	eventually.True(t, b.bound(20*time.Second), "the janitor looked again", func() bool {
		if again := w.Tend(s, time.Minute); again != s {
			t.Fatalf("Tend: got %v, want the sweep to go on", again)
		}
		return s.Open() == 1
	})
	if other := b.join(t, "w2").Tend(nil, time.Minute); other != nil {
		t.Error("a second worker became janitor beside the first")
	}
}

// A worker that can't tell whether it is the janitor keeps its sweep. Reading all again would cost most when the server has
// least to spare.
func TestJanitorKeepsItsSweep(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	w := b.join(t, "w1")
	s := w.Tend(nil, time.Minute)
	if s == nil {
		t.Fatal("Tend: got nil, want the only worker to be janitor")
	}
	w.Kill()
	if again := w.Tend(s, time.Minute); again != s {
		t.Errorf("Tend without an election: got %v, want the sweep", again)
	}
}

// A worker that can't be janitor says why: where no worker can, nobody repairs. A worker that finds
// another janitor is silent.
func TestJanitorWithoutTheRight(t *testing.T) {
	t.Parallel()
	connect := roleServer(t)
	contains(t, connect("nojanitor:j", "").Check(t.Context()), "$KV.slipway-workers._janitor")
	var mu sync.Mutex
	var faults []error
	for _, tt := range []struct{ user, name, want string }{
		{"nojanitor:j", "w1", "elect the janitor: become janitor: NATS denies publish"},
		{"admin:a", "w2", ""},
		{"admin:a", "w3", ""}, // w2 is the janitor
	} {
		conn := connect(tt.user, "", unhurried, func(c *natsqueue.Config) {
			c.OnError = func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(err.Error(), "elect the janitor") {
					faults = append(faults, err)
				}
			}
		})
		w, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: tt.name})
		if err != nil {
			t.Fatal(err)
		}
		w.Tend(nil, time.Minute)
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		mu.Lock()
		switch {
		case tt.want == "" && len(faults) > 0:
			t.Errorf("worker %s as %s: OnError heard %v, want nothing", tt.name, tt.user, faults)
		case tt.want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), tt.want)):
			t.Errorf("worker %s as %s: OnError heard %v, want %q", tt.name, tt.user, faults, tt.want)
		}
		faults = nil
		mu.Unlock()
	}
}
