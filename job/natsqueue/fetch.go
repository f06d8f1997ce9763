package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// errClosed: the consumer left the queue.
var errClosed = errors.New("consumer closed")

const (
	// parkTime is how long the server holds one pull open. The server alone ends the pull: a pull that is taken back could
	// lose a message that is on its way. A worker that stops waits for it.
	parkTime = 1500 * time.Millisecond
	// askEvery is how often a worker without jobs asks its lanes anew, in their order. That finds a job whose pull got lost
	// with its server, and one of a priority that waits behind another.
	askEvery = 4 * parkTime
)

// giveBackTime bounds the attempts to return a message for which no slot waits.
const giveBackTime = 5 * time.Second

// fetcher gets messages from the lanes of one worker: one message for each slot that waits, none ahead. While no job comes,
// one pull waits at each lane for all slots together: sixteen idle slots, each with pulls of its own, made 40 requests a
// second. The slot that gets a message wakes the next one, which then asks the lanes in their order.
type fetcher struct {
	js      *jsconn.Conn
	onError func(error)
	ctx     context.Context // ends with the consumer
	wg      sync.WaitGroup
	handoff chan jetstream.Msg // from a pull to a waiting slot
	awake   chan struct{}      // holds one wish that a waiting slot ask the lanes
	healer  *healer

	mu      sync.Mutex
	lanes   []*lane
	waiting int       // slots that wait for a pull
	asked   time.Time // when a slot last asked the lanes
	fatal   error     // why nothing can be fetched at all
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
			f.wake()
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

// park waits at every lane at once, so that an idle worker starts a job of any priority without delay. It returns the first
// message, or nothing when it is time to ask the lanes. The pulls that are left over end by their expiry. A message that
// they still bring goes to another waiting slot, or back to the queue at once and unclaimed.
func (f *fetcher) park(ctx context.Context) (jetstream.Msg, error) {
	f.arrive()
	defer f.depart()
	for rest := askEvery; rest > 0; rest = f.untilAsking() {
		t := time.NewTimer(rest)
		select {
		case msg := <-f.handoff:
			t.Stop()
			return msg, nil
		case <-f.awake:
			t.Stop()
			return nil, nil
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		case <-f.ctx.Done():
			t.Stop()
			return nil, errClosed
		}
	}
	return nil, nil
}

// arrive counts one more slot that waits, and sees to it that a pull waits at every lane.
func (f *fetcher) arrive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting++
	for _, l := range f.lanes {
		if !l.pulled && !f.closed {
			l.pulled = true
			f.wg.Go(func() { f.pull(l) })
		}
	}
}

func (f *fetcher) depart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	if f.waiting == 0 {
		select {
		case <-f.awake: // the wish was this slot's
		default:
		}
	}
}

// untilAsking is how long the lanes need not be asked: one waiting slot asks for all of them.
func (f *fetcher) untilAsking() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fatal != nil {
		return 0 // every slot has to hear of it
	}
	rest := askEvery - time.Since(f.asked)
	if rest <= 0 {
		f.asked = time.Now() // this slot is about to ask
	}
	return rest
}

// wake has a waiting slot ask the lanes, if there is one: where a message came from there may be more.
func (f *fetcher) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 {
		return
	}
	select {
	case f.awake <- struct{}{}:
	default:
	}
}

// pull keeps a pull open at l until a message came, or no slot waits. After a message the slots that still wait ask the
// lanes in their order first: a lane that only has pulls would be served more often than its weight says.
func (f *fetcher) pull(l *lane) {
	for f.wanted(l) {
		batch, err := l.consumer.Fetch(1, jetstream.FetchMaxWait(parkTime))
		if err == nil {
			for msg := range batch.Messages() {
				f.deliver(l, msg)
				return
			}
			err = batch.Error()
		}
		if f.broken(l) == nil && err != nil {
			_ = f.pause(f.ctx, l, err) // the loop's own check ends it
		}
	}
}

// wanted reports whether a slot waits for a pull of l. If none does, the next one that waits makes a pull.
func (f *fetcher) wanted(l *lane) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.pulled = !f.closed && f.fatal == nil && f.waiting > 0
	return l.pulled
}

// deliver hands what a pull of l brought to a waiting slot, or back. The pull is over before that: a slot that begins to
// wait after it makes a new one, and one that waits already is woken, and makes it when it waits again.
func (f *fetcher) deliver(l *lane, msg jetstream.Msg) {
	f.mu.Lock()
	l.pulled = false
	f.mu.Unlock()
	select {
	case f.handoff <- msg:
	default:
		f.giveBack(f.ctx, msg)
	}
	f.wake()
}

// giveBack returns an unclaimed message at no cost. If that gets lost, the message comes back after AckWait.
func (f *fetcher) giveBack(ctx context.Context, msg jetstream.Msg) { f.giveBackLater(ctx, msg, 0) }

// giveBackLater is giveBack for a message that is to come again after delay.
func (f *fetcher) giveBackLater(ctx context.Context, msg jetstream.Msg, delay time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := f.js.Nak(ctx, msg, delay); err != nil {
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
