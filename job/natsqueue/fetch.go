package natsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// errClosed: the consumer left the queue.
var errClosed = errors.New("consumer closed")

// parkTime is how long the server holds one pull open. The server alone ends the pull: a pull that is taken back could lose
// a message that is on its way.
const parkTime = 1500 * time.Millisecond

// giveBackTime bounds the attempts to return a message for which no slot waits.
const giveBackTime = 5 * time.Second

// lane is the consumer of one priority of one queue.
type lane struct {
	queue    string
	priority job.Priority
	consumer jetstream.Consumer
	pulls    string // subject of its pulls
	weight   int
	credit   int // of the smooth weighted round robin
	out      int // pulls that wait at the server for this process
}

// weights of the priorities: while all have jobs, one of twelve turns is low's.
var weights = map[job.Priority]int{job.PriorityHigh: 8, job.PriorityNormal: 3, job.PriorityLow: 1}

// weightOf is the weight of a lane: its queue's share, parted among the priorities.
func weightOf(queues map[string]int, queue string, p job.Priority) int {
	return max(1, queues[queue]) * weights[p]
}

// fetcher gets messages from the lanes of one worker: one message for each slot that waits, none ahead.
type fetcher struct {
	js      *jsconn.Conn
	onError func(error)
	ctx     context.Context // ends with the consumer
	wg      sync.WaitGroup
	handoff chan jetstream.Msg // from a pull to a waiting slot
	healer  *healer

	mu      sync.Mutex
	lanes   []*lane
	waiting int   // slots that wait for a pull
	fatal   error // why nothing can be fetched at all
	closed  bool
}

// take gets one message: first by asking lane after lane, then by waiting at all
// of them. It may return nothing.
func (f *fetcher) take(ctx context.Context) (jetstream.Msg, error) {
	order, err := f.order(ctx)
	if err != nil {
		return nil, err
	}
	for i, l := range order {
		msg, err := fetchNow(l)
		if msg != nil {
			f.charge(order[:i], l)
			return msg, nil
		}
		if err != nil {
			return nil, f.pause(ctx, l, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return f.park(ctx)
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

func fetchNow(l *lane) (jetstream.Msg, error) {
	batch, err := l.consumer.FetchNoWait(1)
	if err != nil {
		return nil, err
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	return nil, batch.Error()
}

// pause waits before the next try at a server that gave an error instead of an
// answer. It returns an error itself if no waiting helps.
func (f *fetcher) pause(ctx context.Context, l *lane, cause error) error {
	if err := f.broken(l); err != nil {
		return err
	}
	f.onError(fmt.Errorf("fetch from queue %s: %w: %w", l.queue, job.ErrUnavailable, cause))
	if err := f.healer.heal(ctx, l); err != nil {
		if errors.Is(err, job.ErrNotSetUp) {
			return f.end(l, err)
		}
		f.onError(fmt.Errorf("fetch from queue %s: %w", l.queue, err))
	}
	again, t := f.js.Reconnected(), time.NewTimer(jsconn.LastBackoff)
	defer t.Stop()
	select {
	case <-again:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.ctx.Done():
		return errClosed
	}
	return nil
}

// broken remembers, and returns, why l can't be fetched from at all.
func (f *fetcher) broken(l *lane) error {
	if denied := f.js.Denied(l.pulls); denied != nil {
		return f.end(l, denied)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fatal
}

// end has nothing fetched any more because of err, found at l.
func (f *fetcher) end(l *lane, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fatal = fmt.Errorf("fetch from queue %s: %w", l.queue, err)
	return f.fatal
}

// park waits at every lane at once, so that an idle worker starts a job of any priority without delay. It takes the first
// message. The pulls that are left over end by their expiry. A message that they still bring goes to another waiting slot,
// or back to the queue at once and unclaimed.
func (f *fetcher) park(ctx context.Context) (jetstream.Msg, error) {
	f.mu.Lock()
	f.waiting++
	for _, l := range f.lanes {
		if l.out < f.waiting && !f.closed {
			l.out++
			f.wg.Go(func() { f.pull(l) })
		}
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
	}()
	// After a while all lanes are asked anew, in their order. That finds a job whose pull got lost with its server, and
	// one of a priority that waits behind another.
	t := time.NewTimer(4 * parkTime)
	defer t.Stop()
	select {
	case msg := <-f.handoff:
		return msg, nil
	case <-t.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-f.ctx.Done():
		return nil, errClosed
	}
}

// pull keeps one pull open at l until it served a slot, or there are more pulls than slots.
func (f *fetcher) pull(l *lane) {
	served := false
	for !f.enough(l, served) {
		batch, err := l.consumer.Fetch(1, jetstream.FetchMaxWait(parkTime))
		if err == nil {
			for msg := range batch.Messages() {
				select {
				case f.handoff <- msg:
					served = true
				default:
					f.giveBack(f.ctx, msg)
				}
			}
			err = batch.Error()
		}
		if f.broken(l) == nil && err != nil {
			_ = f.pause(f.ctx, l, err) // the loop's own check ends it
		}
	}
}

// enough reports whether a pull of l is one too many, and then no longer counts it. A pull that served a slot is one too
// many: the slot may still be counted as waiting.
func (f *fetcher) enough(l *lane, served bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.fatal != nil || served || l.out > f.waiting {
		l.out--
		return true
	}
	return false
}

// giveBack returns an unclaimed message at no cost. If that gets lost, the message comes back after AckWait.
func (f *fetcher) giveBack(ctx context.Context, msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := f.js.Nak(ctx, msg, 0); err != nil {
		f.onError(err)
	}
}

// close lets nothing be fetched any more, and reports whether it was the first call. Pulls end by their expiry; the caller
// waits for wg.
func (f *fetcher) close() (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = !f.closed
	f.closed = true
	return first
}
