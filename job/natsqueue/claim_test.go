package natsqueue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
)

// Two tokens of one job that come at the same moment make one claim, whoever gets them.
func TestTwoTokensAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
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
			if first.Delivery().ClaimedAt.Add(fast.Lease / 2).After(l.Delivery().ClaimedAt) {
				t.Errorf("claimed twice: by %s, and as attempt %d by %s (charged %+v)",
					first.Delivery().Worker, l.Delivery().Attempt, l.Delivery().Worker, l.Delivery().Counts)
			}
		case <-time.After(fast.Heartbeat):
			b.commit(first)
		}
	}
	cancel()
	slots.Wait()
}
