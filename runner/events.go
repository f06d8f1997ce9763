package runner

import (
	"context"
	"sync"
	"time"

	"slipway/job"
)

// Sizes and times of the stream of events.
const (
	eventBatch   = 64 << 10 // a batch is sent when it holds this much
	eventDelay   = 100 * time.Millisecond
	eventQueue   = 1 << 20 // what waits beyond this is dropped, never waited for
	eventPiece   = 32 << 10
	eventWeight  = 256 // bytes of an event beside its data
	eventTimeout = 5 * time.Second
)

// events sends news of an attempt in batches, in order, from one goroutine. What
// adds to it never waits: a step must not stand still because a reader is slow.
// All methods are safe for concurrent use.
type events struct {
	lease job.Lease
	obs   Observer
	lost  func() bool // the lease is gone: publish nothing

	mu      sync.Mutex
	pending []job.Event
	weight  int // of pending
	seq     uint64
	dropped int64 // bytes of output since the last event that was admitted
	printed int64 // bytes of output since the last LogBytes
	missed  int64 // those of them that no reader will see

	sending chan struct{} // holds one token while a batch is sent: one at a time, so that they stay in order
	wake    chan struct{}
	full    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
}

// startEvents starts the sender. close ends it.
func startEvents(holdCtx context.Context, lease job.Lease, obs Observer) *events {
	e := &events{
		lease: lease, obs: obs,
		lost:    func() bool { return lostLease(context.Cause(holdCtx)) },
		sending: make(chan struct{}, 1),
		wake:    make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	e.done.Go(func() { e.loop(context.WithoutCancel(holdCtx)) })
	return e
}

// close sends what is left and ends the sender.
func (e *events) close() {
	close(e.quit)
	e.done.Wait()
}

// add queues one event.
func (e *events) add(ev job.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.admit(ev)
	signal(e.wake)
}

// output queues a piece of a step's output, a copy of p.
func (e *events) output(step int, stream string, p []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.printed += int64(len(p))
	for len(p) > 0 {
		piece := p[:min(len(p), eventPiece)]
		p = p[len(piece):]
		if e.weight+len(piece) > eventQueue {
			e.dropped += int64(len(piece))
			e.missed += int64(len(piece))
			continue
		}
		if e.extend(step, stream, piece) {
			continue
		}
		e.admit(job.Event{Kind: job.EventOutput, Step: step, Stream: stream, Data: append([]byte(nil), piece...)})
	}
	signal(e.wake)
}

// extend puts p into the last event, if that is of the same stream: a program
// that prints byte by byte would otherwise make an event of each.
func (e *events) extend(step int, stream string, p []byte) bool {
	if len(e.pending) == 0 || e.dropped > 0 {
		return false
	}
	last := &e.pending[len(e.pending)-1]
	if last.Kind != job.EventOutput || last.Step != step || last.Stream != stream || len(last.Data)+len(p) > eventPiece {
		return false
	}
	last.Data = append(last.Data, p...)
	e.grow(len(p))
	return true
}

// admit numbers ev and queues it, after the news of what was dropped before it.
func (e *events) admit(ev job.Event) {
	if n := e.dropped; n > 0 {
		e.dropped = 0
		e.admit(job.Event{Kind: job.EventDropped, Bytes: n})
	}
	e.seq++
	ev.Seq, ev.Time = e.seq, time.Now()
	e.pending = append(e.pending, ev)
	e.grow(eventWeight + len(ev.Data))
}

func (e *events) grow(n int) {
	if e.weight += n; e.weight >= eventBatch {
		signal(e.full)
	}
}

// loop sends a while after the first event of a batch, or once the batch is full.
func (e *events) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.wake:
		case <-e.quit:
			e.flush(ctx)
			return
		}
		timer.Reset(eventDelay)
		select {
		case <-timer.C:
		case <-e.full:
		case <-e.quit:
		}
		e.flush(ctx)
	}
}

// flush sends everything that waits, and returns when it is sent or given up.
func (e *events) flush(ctx context.Context) {
	e.sending <- struct{}{}
	defer func() { <-e.sending }()
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		batch := e.take()
		if len(batch) == 0 {
			break
		}
		e.send(ctx, batch)
	}
	e.mu.Lock()
	printed, missed := e.printed, e.missed
	e.printed, e.missed = 0, 0
	e.mu.Unlock()
	if printed > 0 || missed > 0 {
		e.obs.LogBytes(printed, missed)
	}
}

// send emits one batch. Events are news, not records: what can't be sent is counted.
func (e *events) send(ctx context.Context, batch []job.Event) {
	if !e.lost() {
		if err := recovered(func() error { return e.lease.Emit(ctx, batch) }); err == nil {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range batch {
		e.missed += int64(len(batch[i].Data))
	}
}

// take removes the next batch from the queue.
func (e *events) take() []job.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dropped > 0 && len(e.pending) == 0 {
		n := e.dropped
		e.dropped = 0
		e.admit(job.Event{Kind: job.EventDropped, Bytes: n})
	}
	n, weight := 0, 0
	for n < len(e.pending) && weight < eventBatch {
		weight += eventWeight + len(e.pending[n].Data)
		n++
	}
	batch := e.pending[:n:n]
	e.pending = e.pending[n:]
	e.weight -= weight
	return batch
}

// signal wakes the one who waits on c, once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
