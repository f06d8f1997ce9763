package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
)

// takes is how many jobs each rival takes out of a queue.
const takes = 300

// benchClaim measures how long a worker with one slot waits for its next job while many wait, nothing else being in flight.
// The rivals are raw pulls of a stream as JOBS was until it had a first message that stays: the server then looks through
// the subjects of all messages for each pull.
func benchClaim(ctx context.Context, sizes []int) error {
	fmt.Printf("%-32s %10s %12s %12s %12s\n", "next job of a long queue", "jobs", "p50", "p99", "p50 of ack")
	for _, n := range sizes {
		if err := claimOf(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func claimOf(ctx context.Context, n int) error {
	r, err := newRig(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	for _, floor := range []bool{false, true} {
		if err := r.rawTakes(ctx, n, floor); err != nil {
			return err
		}
	}
	return r.slipwayTakes(ctx, n)
}

// rawTakes takes jobs of a stream like JOBS. floor says whether it has a first message that no consumer takes.
func (r *rig) rawTakes(ctx context.Context, n int, floor bool) error {
	const name = "RAW"
	s, err := r.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{"raw.*.*.*"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxMsgs: 2_000_000, AllowDirect: true})
	if err != nil {
		return err
	}
	defer func() { _ = r.js.DeleteStream(context.WithoutCancel(ctx), name) }()
	c, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "lane", FilterSubject: "raw.default.normal.*", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: -1})
	if err != nil {
		return err
	}
	row := "raw pull"
	if floor {
		row = "raw pull behind a first message"
		if _, err := r.js.Publish(ctx, "raw._._._", nil); err != nil {
			return err
		}
	}
	if err := r.fillJobs(ctx, n, "raw.default.normal."); err != nil {
		return err
	}
	var took, acked []time.Duration
	for range takes {
		begun := time.Now()
		msg, err := c.Next(jetstream.FetchMaxWait(time.Minute))
		if err != nil {
			return err
		}
		took, begun = append(took, time.Since(begun)), time.Now()
		if err := msg.DoubleAck(ctx); err != nil {
			return err
		}
		acked = append(acked, time.Since(begun))
	}
	printTakes(row, n, took, acked)
	return nil
}

// slipwayTakes is the same through the package: pull and claim, then commit.
func (r *rig) slipwayTakes(ctx context.Context, n int) error {
	if err := r.fillJobs(ctx, n, "slipway.J.default.normal."); err != nil {
		return err
	}
	consumer, err := r.conn.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "bench"})
	if err != nil {
		return err
	}
	defer func() { _ = consumer.Close(context.WithoutCancel(ctx)) }()
	var took, acked []time.Duration
	for range takes {
		begun := time.Now()
		lease, err := consumer.Next(ctx)
		if err != nil {
			return err
		}
		took, begun = append(took, time.Since(begun)), time.Now()
		if _, err := lease.Commit(ctx, &job.Result{Outcome: job.Succeeded}); err != nil {
			return err
		}
		acked = append(acked, time.Since(begun))
	}
	printTakes("slipway: pull, claim; commit", n, took, acked)
	return nil
}

func (r *rig) fillJobs(ctx context.Context, n int, prefix string) error {
	spec, err := job.Encode(aJob())
	if err != nil {
		return err
	}
	return r.fill(ctx, n, func(int) *nats.Msg {
		msg := nats.NewMsg(prefix + string(job.NewID()))
		msg.Data = spec
		return msg
	})
}

func printTakes(name string, n int, took, acked []time.Duration) {
	fmt.Printf("%-32s %10d %12s %12s %12s\n", name, n, ms(quantile(took, 0.5)), ms(quantile(took, 0.99)), ms(quantile(acked, 0.5)))
}

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
