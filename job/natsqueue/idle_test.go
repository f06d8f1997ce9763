package natsqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"slipway/internal/pause"
	"slipway/job"
	"slipway/test/eventually"
)

// wait has n slots of a worker wait for jobs until stop is called. It passes on what they get.
func (b *bundle) wait(worker string, n int) (leases <-chan job.Lease, stop func()) {
	b.t.Helper()
	w := b.join(b.t, worker)
	ctx, cancel := context.WithCancel(b.t.Context())
	got := make(chan job.Lease, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			l, err := w.Next(ctx)
			if err == nil {
				got <- l
			} else if !errors.Is(err, context.Canceled) {
				b.t.Errorf("Next: %v", err)
			}
		})
	}
	return got, func() { cancel(); wg.Wait() }
}

// TestIdleSlots: a worker without jobs asks no more often with many slots than with one. Sixteen slots made 40 requests a
// second.
func TestIdleSlots(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	nc, _ := b.raw()
	pulls := subscribe(t, nc, "$JS.API.CONSUMER.MSG.NEXT."+b.cfg.Prefix+"-JOBS.>")
	_, stop := b.wait("w1", 16)
	defer stop()
	const during = 8 * time.Second
	pause.For(t.Context(), during/4) // all slots have asked once
	count := func() int {
		n, _, err := pulls.Pending()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	pause.For(t.Context(), during)
	// Three lanes, each held open by a pull of 1.5 s, and asked once in 6 s. A slow machine asks less often.
	if got := count() - before; got > 30 {
		t.Errorf("idle requests within %s: got %d, want about 20", during, got)
	}
}

// TestBurstOnIdleSlots: jobs that come all at once wake every slot that waits, though one pull waits for all of them.
func TestBurstOnIdleSlots(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	const n = 16
	leases, stop := b.wait("w1", n)
	defer stop()
	for range 3 { // idle at first, busy at last
		pause.For(t.Context(), 100*time.Millisecond)
		for range n / 4 {
			b.submit(makeJob())
		}
	}
	for range n / 4 {
		j := makeJob()
		j.Priority = job.PriorityLow
		b.submit(j)
	}
	began := time.Now()
	eventually.True(t, b.bound(20*time.Second), "every slot has a job", func() bool { return len(leases) == n })
	// A slot that was not woken asks by itself only after 6 s.
	if took := time.Since(began); took > b.bound(4*time.Second) {
		t.Errorf("the last job began after %s, want it at once", took)
	}
}
