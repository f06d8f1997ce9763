package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// errClosed: the consumer left the queue.
var errClosed = errors.New("consumer closed")

// parkTime is how long the server holds one pull open. It alone ends the pull:
// taking one back could lose a message that is on its way.
const parkTime = 1500 * time.Millisecond

// giveBackTime bounds the attempts to return a message that nobody waits for.
const giveBackTime = 5 * time.Second

// lane is the consumer of one class of one queue.
type lane struct {
	queue  string
	class  job.Priority
	cons   jetstream.Consumer
	next   string // subject of its pulls
	weight int
	credit int // of the smooth weighted round robin
	out    int // pulls that wait at the server for this process
}

// weights of the classes: while all have jobs, of twelve turns one is low's.
var weights = map[job.Priority]int{job.PriorityHigh: 8, job.PriorityNormal: 3, job.PriorityLow: 1}

func newLane(c *Conn, cons jetstream.Consumer, queue string, class job.Priority) *lane {
	next := "$JS.API.CONSUMER.MSG.NEXT." + c.names.jobs() + "." + laneName(queue, class)
	return &lane{queue: queue, class: class, cons: cons, next: next, weight: weights[class]}
}

// Next waits for a job and claims it. See job.Consumer.
func (k *Consumer) Next(ctx context.Context) (job.Lease, error) {
	for {
		msg, err := k.take(ctx)
		if err != nil {
			return nil, err
		}
		if msg == nil {
			continue
		}
		if ctx.Err() != nil {
			k.giveBack(ctx, msg)
			return nil, context.Cause(ctx)
		}
		l, err := k.claim(ctx, msg)
		if err != nil {
			// The token comes again by itself; whoever gets it then tries anew.
			k.conn.cfg.OnError(err)
			continue
		}
		if l == nil {
			continue
		}
		if ctx.Err() != nil {
			releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
			err := l.Release(releaseCtx)
			cancel()
			if err != nil {
				k.conn.cfg.OnError(err)
			}
			return nil, context.Cause(ctx)
		}
		return l, nil
	}
}

// take gets one message: first by asking lane after lane, then by waiting at all
// of them. It may return nothing.
func (k *Consumer) take(ctx context.Context) (jetstream.Msg, error) {
	order, err := k.order(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range order {
		msg, err := fetchNow(l)
		if msg != nil {
			return msg, nil
		}
		if err != nil {
			return nil, k.pause(ctx, l, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return k.park(ctx)
}

// order says which lane is asked first, by smooth weighted round robin, so that
// high comes first and low gets its turns. The others follow by their class.
func (k *Consumer) order(ctx context.Context) ([]*lane, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errClosed
	}
	if k.fatal != nil {
		return nil, k.fatal
	}
	first, total := k.lanes[0], 0
	for _, l := range k.lanes {
		l.credit += l.weight
		total += l.weight
		if l.credit > first.credit {
			first = l
		}
	}
	first.credit -= total
	rest := slices.DeleteFunc(slices.Clone(k.lanes), func(l *lane) bool { return l == first })
	slices.SortStableFunc(rest, func(a, b *lane) int { return b.weight - a.weight })
	return append([]*lane{first}, rest...), nil
}

func fetchNow(l *lane) (jetstream.Msg, error) {
	batch, err := l.cons.FetchNoWait(1)
	if err != nil {
		return nil, err
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	return nil, batch.Error()
}

// pause waits before the next try at a server that gave an error instead of an
// answer. It returns one itself if no waiting helps.
func (k *Consumer) pause(ctx context.Context, l *lane, cause error) error {
	if err := k.broken(l); err != nil {
		return err
	}
	k.conn.cfg.OnError(fmt.Errorf("fetch from queue %s: %w: %w", l.queue, job.ErrUnavailable, cause))
	again, t := k.conn.reconnect(), time.NewTimer(lastBackoff)
	defer t.Stop()
	select {
	case <-again:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-k.ctx.Done():
		return errClosed
	}
	return nil
}

// broken remembers, and returns, why l can't be fetched from at all.
func (k *Consumer) broken(l *lane) error {
	denied := k.conn.denials.get(l.next)
	if denied == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fatal = fmt.Errorf("fetch from queue %s: %w", l.queue, denied)
	return k.fatal
}

// park waits at every lane at once, so that an idle worker starts a job of any
// class without delay. The first message is taken; the pulls that are left over
// end by their expiry, and what they still bring goes to another waiting slot, or
// back at once, before anything is done with it.
func (k *Consumer) park(ctx context.Context) (jetstream.Msg, error) {
	k.mu.Lock()
	k.waiting++
	for _, l := range k.lanes {
		if l.out < k.waiting && !k.closed {
			l.out++
			k.wg.Go(func() { k.pull(l) })
		}
	}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()
	// The lanes' order counts again once in a while: a pull that got lost with its
	// server, or a class that waits behind another, is found by asking anew.
	t := time.NewTimer(4 * parkTime)
	defer t.Stop()
	select {
	case msg := <-k.handoff:
		return msg, nil
	case <-t.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-k.ctx.Done():
		return nil, errClosed
	}
}

// pull keeps one pull open at l until it served a slot, or there are more pulls than slots.
func (k *Consumer) pull(l *lane) {
	served := false
	for !k.enough(l, served) {
		batch, err := l.cons.Fetch(1, jetstream.FetchMaxWait(parkTime))
		if err == nil {
			for msg := range batch.Messages() {
				select {
				case k.handoff <- msg:
					served = true
				default:
					k.giveBack(k.ctx, msg)
				}
			}
			err = batch.Error()
		}
		if k.broken(l) == nil && err != nil {
			_ = k.pause(k.ctx, l, err) // the loop's own check ends it
		}
	}
}

// enough reports whether a pull of l is one too many, and counts it off. One that
// served a slot is: the slot may not have been counted off yet.
func (k *Consumer) enough(l *lane, served bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.fatal != nil || served || l.out > k.waiting {
		l.out--
		return true
	}
	return false
}

// giveBack returns an unclaimed message at no cost. If that gets lost, AckWait does it.
func (k *Consumer) giveBack(ctx context.Context, msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := k.conn.nak(ctx, msg, 0); err != nil {
		k.conn.cfg.OnError(err)
	}
}
