package natsqueue

import (
	"context"
	"fmt"
	"time"

	"slipway/job"
)

// QueueDepth is how much lies in one lane: the jobs of one priority in one queue.
type QueueDepth struct {
	Queue    string
	Priority job.Priority
	// Waiting is how many jobs wait for a worker.
	Waiting uint64
	// InFlight is how many run, or wait for the end of a retry's delay.
	InFlight int
	// OldestAge is how long the oldest of the waiting jobs has waited. Zero if none waits.
	OldestAge time.Duration
}

// Depth returns the depth of each lane of Config.Queues. Jobs that wait for
// their not_before are in no lane.
func (c *Conn) Depth(ctx context.Context) ([]QueueDepth, error) {
	var all []QueueDepth
	for _, q := range c.cfg.Queues {
		for _, p := range priorities {
			d, err := c.depth(ctx, q, p)
			if err != nil {
				return nil, fmt.Errorf("depth of queue %s: %w", q, err)
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func (c *Conn) depth(ctx context.Context, queue string, priority job.Priority) (QueueDepth, error) {
	d := QueueDepth{Queue: queue, Priority: priority}
	info, err := c.streams.jobs.ConsumerInfo(ctx, laneName(queue, priority))
	if err != nil {
		return d, err
	}
	d.Waiting, d.InFlight = info.NumPending, info.NumAckPending
	if d.Waiting == 0 {
		return d, nil
	}
	// The oldest waiting message is the next one after the last that was delivered.
	oldest, err := c.streams.jobs.NextFrom(ctx, info.Delivered.Stream+1, c.names.lane(queue, priority))
	if err == nil && oldest != nil {
		d.OldestAge = max(0, time.Since(submitted(oldest.Header, oldest.Time)))
	}
	return d, err
}
