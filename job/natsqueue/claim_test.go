package natsqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// Two tokens of one job that come at the same moment make one claim, also if two slots get them.
func TestTwoTokensAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried) // a lease that is not extended must not be lost here
	w1, w2 := b.join(t, "w1"), b.join(t, "w2")
	ctx, cancel := context.WithCancel(t.Context())
	leases := make(chan job.Lease, 100)
	var slots sync.WaitGroup
	for _, w := range []*natsqueue.Consumer{w1, w1, w1, w2, w2} {
		slots.Go(func() {
			for {
				l, err := w.Next(ctx)
				if err != nil {
					return
				}
				leases <- l
			}
		})
	}
	for range 8 {
		j := makeJob()
		spec, err := job.Encode(j)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			b.publish(b.token(j.ID), spec)
		}
		first := <-leases
		select { // a claim of another's claim comes at once, if it comes
		case l := <-leases:
			t.Errorf("claimed twice: by %s, and as attempt %d by %s (charged %+v)",
				first.Delivery().Worker, l.Delivery().Attempt, l.Delivery().Worker, l.Delivery().Counts)
		case <-time.After(b.bound(fast.Heartbeat)):
			b.commit(first)
		}
	}
	cancel()
	slots.Wait()
}

// A claim that decides settles also if the events can't be read. Otherwise the result is late by an AckWait,
// and the claim holds up a slot until it ends.
func TestClaimSettlesWithoutEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, unhurried)
	dead := b.join(t, "dead")
	j := makeJob()
	id := b.submit(j)
	b.mustNext(dead)
	if _, err := b.conn.Client().Cancel(t.Context(), id, job.Cancel); err != nil {
		t.Fatal(err)
	}
	dead.Kill()
	_, js := b.raw()
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-EVENTS"); err != nil {
		t.Fatal(err)
	}
	b.publish("$KV."+b.cfg.Prefix+"-workers.dead", nil) // instead of waiting until it expires
	spec, err := job.Encode(j)
	if err != nil {
		t.Fatal(err)
	}
	b.publish(b.token(id), spec)
	w, got := b.join(t, "w2"), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, err := w.Next(ctx); got <- err }()
	eventually.True(t, b.bound(40*time.Second), "the result is there", func() bool { return len(b.stored("RESULTS", b.cfg.Prefix+".R.>")) == 1 })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Next: got %v, want no job", err)
	}
}
