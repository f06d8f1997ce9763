package natsqueue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// lane is the consumer of one priority of one queue.
type lane struct {
	queue    string
	priority job.Priority
	consumer jetstream.Consumer
	pulls    string // subject of its pulls
	weight   int
	credit   int  // of the smooth weighted round robin
	pulled   bool // a pull waits at the server for this process
}

// weights of the priorities: while all have jobs, one of twelve turns is low's.
var weights = map[job.Priority]int{job.PriorityHigh: 8, job.PriorityNormal: 3, job.PriorityLow: 1}

// weightOf is the weight of a lane: its queue's share, parted among the priorities.
func weightOf(queues map[string]int, queue string, p job.Priority) int {
	return max(1, queues[queue]) * weights[p]
}

// order says in which order the lanes are asked: by their credit after the turn's earnings. At equal credit a higher
// priority comes first.
func (f *fetcher) order(ctx context.Context) ([]*lane, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	if f.fatal != nil {
		return nil, f.fatal
	}
	f.asked = time.Now()
	order := slices.Clone(f.lanes)
	slices.SortStableFunc(order, func(a, b *lane) int {
		return cmp.Or((b.credit+b.weight)-(a.credit+a.weight), b.weight-a.weight)
	})
	return order, nil
}

// charge makes the lane that delivered pay for its turn, by smooth weighted round robin among the lanes that may have jobs.
// An empty lane pays nothing, and saves nothing up: else the lanes that share a worker with it would not be served by
// their weights (50:10 for two queues of equal weight was seen), or it would take all turns once it has jobs again.
func (f *fetcher) charge(empty []*lane, delivered *lane) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range empty {
		l.credit = 0
	}
	for _, l := range f.lanes {
		if !slices.Contains(empty, l) {
			l.credit += l.weight
			delivered.credit -= l.weight
		}
	}
}
