package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// QueueDepth is how much lies in one class of one queue.
type QueueDepth struct {
	Queue string
	Class job.Priority
	// Waiting is how many jobs no worker has yet.
	Waiting uint64
	// InFlight is how many run, or wait for the end of a retry's delay.
	InFlight int
	// OldestAge is how long the oldest of the waiting ones has waited. Zero without any.
	OldestAge time.Duration
}

// Depth returns the depth of each class of Config.Queues. Jobs that wait for
// their not_before are in none of them.
func (c *Conn) Depth(ctx context.Context) ([]QueueDepth, error) {
	var all []QueueDepth
	for _, q := range c.cfg.Queues {
		for _, class := range classes {
			d, err := c.depth(ctx, q, class)
			if err != nil {
				return nil, fmt.Errorf("depth of queue %s: %w", q, err)
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func (c *Conn) depth(ctx context.Context, queue string, class job.Priority) (QueueDepth, error) {
	d := QueueDepth{Queue: queue, Class: class}
	api := "$JS.API.CONSUMER.INFO." + c.names.jobs() + "." + laneName(queue, class)
	var info *jetstream.ConsumerInfo
	err := c.retry(ctx, "look at lane "+string(class), api, func(ctx context.Context) error {
		cons, err := c.js.Consumer(ctx, c.names.jobs(), laneName(queue, class))
		if err == nil {
			info = cons.CachedInfo()
		}
		return err
	})
	if err != nil {
		return d, err
	}
	d.Waiting, d.InFlight = info.NumPending, info.NumAckPending
	if d.Waiting == 0 {
		return d, nil
	}
	// Behind the last one that was delivered lies the oldest that was not.
	oldest, err := c.nextFrom(ctx, info.Delivered.Stream+1, c.names.lane(queue, class))
	if err == nil && oldest != nil {
		d.OldestAge = max(0, time.Since(submitted(oldest.Header, oldest.Time)))
	}
	return d, err
}

// nextFrom returns the first message of JOBS at or after seq on a subject, nil if there is none.
func (c *Conn) nextFrom(ctx context.Context, seq uint64, filter string) (*jetstream.RawStreamMsg, error) {
	api := "$JS.API.DIRECT.GET." + c.names.jobs()
	body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q}`, seq, filter)
	var found *jetstream.RawStreamMsg
	err := c.retry(ctx, "read "+filter, api, func(ctx context.Context) error {
		reply, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: api, Data: body})
		if err != nil {
			return err
		}
		found, err = rawMessage(reply)
		return err
	})
	return found, err
}
