package natsqueue_test

import (
	"context"
	"testing"

	"slipway/job"
)

// BenchmarkIdlePickup is the way of one job through an idle queue: submit, claim
// by a waiting worker, commit, result at the reader.
func BenchmarkIdlePickup(b *testing.B) {
	q := setup(b)
	w := q.join(b, "w1")
	leases := make(chan job.Lease)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			l, err := w.Next(ctx)
			if err != nil {
				return
			}
			leases <- l
		}
	}()
	defer func() { cancel(); <-done }()
	for b.Loop() {
		id := q.submit(makeJob())
		q.commit(<-leases)
		if _, err := q.conn.Client().Result(ctx, id); err != nil {
			b.Fatal(err)
		}
	}
}
