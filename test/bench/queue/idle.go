package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"slipway/internal/pause"
	"slipway/job/natsqueue"
)

// idleFor is how long the requests of idle workers are counted: several rounds of asking.
const idleFor = 24 * time.Second

// benchIdle counts the messages that a worker without jobs sends to its server.
func benchIdle(ctx context.Context, slots []int) error {
	fmt.Printf("%-32s %10s %12s\n", "idle worker, one queue", "slots", "requests/s")
	for _, n := range slots {
		if err := idleOf(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func idleOf(ctx context.Context, slots int) error {
	r, err := newRig(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	consumer, err := r.conn.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "bench", Slots: slots})
	if err != nil {
		return err
	}
	defer func() { _ = consumer.Close(context.WithoutCancel(ctx)) }()
	var wg sync.WaitGroup
	defer wg.Wait()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	for range slots {
		wg.Go(func() { _, _ = consumer.Next(waiting) }) // no job comes
	}
	if !pause.For(ctx, 3*time.Second) { // all slots have asked once
		return context.Cause(ctx)
	}
	before, err := r.received()
	if err != nil {
		return err
	}
	if !pause.For(ctx, idleFor) {
		return context.Cause(ctx)
	}
	after, err := r.received()
	if err != nil {
		return err
	}
	fmt.Printf("%-32s %10d %12.1f\n", "", slots, float64(after-before)/idleFor.Seconds())
	return nil
}

// received is how many messages the server has got from its clients.
func (r *rig) received() (int64, error) {
	v, err := r.srv.Varz(nil)
	if err != nil {
		return 0, err
	}
	return v.InMsgs, nil
}
