package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
)

// benchFair counts whose jobs a worker takes while two lanes have more than enough and the others are empty. The rival asks
// the lanes as package natsqueue once did: the lane whose turn it is pays, whether it has a job or not, and the others follow
// by their priority.
func benchFair(ctx context.Context, sizes []int) error {
	fmt.Printf("%-32s %10s %12s %12s\n", "whose jobs are taken", "jobs", "slipway", "the old way")
	for _, n := range sizes {
		for _, f := range []fairness{
			{"two queues, 1:1", map[string]int{"a": 1, "b": 1}, [2]string{"a.normal", "b.normal"}},
			{"two queues, 3:1", map[string]int{"a": 3, "b": 1}, [2]string{"a.normal", "b.normal"}},
			{"normal and low, no high", map[string]int{"a": 1}, [2]string{"a.normal", "a.low"}},
		} {
			if err := f.run(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// fairness is one comparison: the lanes of some queues, of which two have jobs.
type fairness struct {
	name   string
	queues map[string]int // and their shares
	full   [2]string      // queue.priority
}

func (f fairness) run(ctx context.Context, n int) error {
	r, err := newRig(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	taken, err := f.slipway(ctx, r, n)
	if err != nil {
		return err
	}
	before, err := f.old(ctx, r, n)
	if err != nil {
		return err
	}
	fmt.Printf("%-32s %10d %12s %12s\n", f.name, n, f.text(taken), f.text(before))
	return nil
}

func (f fairness) text(taken map[string]int) string {
	return fmt.Sprintf("%d:%d", taken[f.full[0]], taken[f.full[1]])
}

func (f fairness) slipway(ctx context.Context, r *rig, n int) (map[string]int, error) {
	cfg := natsqueue.ConsumerConfig{Worker: "bench", Weights: f.queues}
	for q := range f.queues {
		cfg.Queues = append(cfg.Queues, q)
	}
	slices.Sort(cfg.Queues)
	consumer, err := r.conn.Consumer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = consumer.Close(context.WithoutCancel(ctx)) }()
	lanes := map[job.ID]string{} // of the jobs
	for _, lane := range f.full {
		queue, priority, _ := strings.Cut(lane, ".")
		for range n {
			j := aJob()
			j.Queue, j.Priority = queue, job.Priority(priority)
			if err := r.conn.Client().Submit(ctx, j); err != nil {
				return nil, err
			}
			lanes[j.ID] = lane
		}
	}
	taken := map[string]int{}
	for range n {
		lease, err := consumer.Next(ctx)
		if err != nil {
			return nil, err
		}
		taken[lanes[lease.Delivery().ID]]++
		if _, err := lease.Commit(ctx, &job.Result{Outcome: job.Succeeded}); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// rival is a lane as it was: high, normal and low of one queue weigh 8, 3 and 1.
type rival struct {
	name           string
	consumer       jetstream.Consumer
	weight, credit int
}

func (f fairness) old(ctx context.Context, r *rig, n int) (map[string]int, error) {
	s, err := r.js.CreateStream(ctx, jetstream.StreamConfig{Name: "RAW", Subjects: []string{"raw.*.*.*"}, Retention: jetstream.WorkQueuePolicy})
	if err != nil {
		return nil, err
	}
	lanes, err := f.rivals(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, lane := range f.full {
		if err := r.fillJobs(ctx, n, "raw."+lane+"."); err != nil {
			return nil, err
		}
	}
	taken := map[string]int{}
	for done := 0; done < n; {
		for _, l := range oldOrder(lanes) {
			batch, err := l.consumer.FetchNoWait(1)
			if err != nil {
				return nil, err
			}
			msg, ok := <-batch.Messages()
			if !ok {
				continue // the lane is empty
			}
			if err := msg.DoubleAck(ctx); err != nil {
				return nil, err
			}
			taken[l.name]++
			done++
			break
		}
	}
	return taken, nil
}

func (f fairness) rivals(ctx context.Context, s jetstream.Stream) (lanes []*rival, err error) {
	weights := []struct {
		priority string
		weight   int
	}{{"high", 8}, {"normal", 3}, {"low", 1}}
	for _, queue := range []string{"a", "b"} {
		if f.queues[queue] == 0 {
			continue
		}
		for _, w := range weights {
			name := queue + "." + w.priority
			c, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
				Durable: strings.ReplaceAll(name, ".", "-"), FilterSubject: "raw." + name + ".*", AckPolicy: jetstream.AckExplicitPolicy,
			})
			if err != nil {
				return nil, err
			}
			lanes = append(lanes, &rival{name: name, consumer: c, weight: w.weight})
		}
	}
	return lanes, nil
}

func oldOrder(lanes []*rival) []*rival {
	first, total := lanes[0], 0
	for _, l := range lanes {
		l.credit += l.weight
		total += l.weight
		if l.credit > first.credit {
			first = l
		}
	}
	first.credit -= total
	rest := slices.DeleteFunc(slices.Clone(lanes), func(l *rival) bool { return l == first })
	slices.SortStableFunc(rest, func(a, b *rival) int { return b.weight - a.weight })
	return append([]*rival{first}, rest...)
}
