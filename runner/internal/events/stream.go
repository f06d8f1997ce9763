package events

import (
	"context"
	"sync"
	"time"

	"slipway/job"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
)

// Sizes and times of the stream of events.
const (
	batchSize   = 64 << 10 // a batch is sent when it holds this much
	batchDelay  = 100 * time.Millisecond
	queueSize   = 1 << 20 // what waits beyond this is dropped, never waited for
	pieceSize   = 32 << 10
	eventWeight = 256 // bytes of an event beside its data
	sendTimeout = 5 * time.Second
)

// Stream sends the events of an attempt in batches, in order, from one goroutine. Add and Output never wait: a step
// must not stand still because a reader is slow. All methods are safe for concurrent use.
type Stream struct {
	to   Sink
	lost func() bool // the lease is gone: publish nothing

	mu      sync.Mutex
	pending []job.Event
	weight  int // of pending
	seq     uint64
	dropped int64 // bytes of output since the last event that was admitted
	printed int64 // bytes of output since the last Count
	missed  int64 // those of them that no reader will see

	sending chan struct{} // holds one token while a batch is sent: one at a time, so that they stay in order
	wake    chan struct{}
	full    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
}

// Sink is where a Stream ends.
type Sink struct {
	// Emit sends one batch. It is called by one goroutine at a time. What it can't send is counted, not sent again.
	Emit func(ctx context.Context, batch []job.Event) error
	// Count is told how many bytes of output were printed, and how many of them reach no reader.
	Count func(printed, missed int64)
}

// Start starts the sender. Nothing is sent any more once hold has ended because the lease was lost: the events would
// mix with those of the attempt that has it now. Close ends the sender.
func Start(hold context.Context, to Sink) *Stream {
	s := &Stream{
		to: to, lost: func() bool { return verdict.Lost(context.Cause(hold)) },
		sending: make(chan struct{}, 1),
		wake:    make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	s.done.Go(func() { s.loop(context.WithoutCancel(hold)) })
	return s
}

// Close sends what is left and ends the sender.
func (s *Stream) Close() {
	close(s.quit)
	s.done.Wait()
}

// Add queues one event.
func (s *Stream) Add(ev job.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admit(ev)
	signal(s.wake)
}

// Output queues a piece of a step's output, a copy of p.
func (s *Stream) Output(step int, stream string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printed += int64(len(p))
	for len(p) > 0 {
		piece := p[:min(len(p), pieceSize)]
		p = p[len(piece):]
		if s.weight+len(piece) > queueSize {
			s.dropped += int64(len(piece))
			s.missed += int64(len(piece))
			continue
		}
		if s.extend(step, stream, piece) {
			continue
		}
		s.admit(job.Event{Kind: job.EventOutput, Step: step, Stream: stream, Data: append([]byte(nil), piece...)})
	}
	signal(s.wake)
}

// extend puts p into the last event, if that is of the same stream: a program
// that prints byte by byte would otherwise make an event of each.
func (s *Stream) extend(step int, stream string, p []byte) bool {
	if len(s.pending) == 0 || s.dropped > 0 {
		return false
	}
	last := &s.pending[len(s.pending)-1]
	if last.Kind != job.EventOutput || last.Step != step || last.Stream != stream || len(last.Data)+len(p) > pieceSize {
		return false
	}
	last.Data = append(last.Data, p...)
	s.grow(len(p))
	return true
}

// admit numbers ev and queues it, after the news of what was dropped before it.
func (s *Stream) admit(ev job.Event) {
	if n := s.dropped; n > 0 {
		s.dropped = 0
		s.admit(job.Event{Kind: job.EventDropped, Bytes: n})
	}
	s.seq++
	ev.Seq, ev.Time = s.seq, time.Now()
	s.pending = append(s.pending, ev)
	s.grow(eventWeight + len(ev.Data))
}

func (s *Stream) grow(n int) {
	if s.weight += n; s.weight >= batchSize {
		signal(s.full)
	}
}

// loop sends a while after the first event of a batch, or once the batch is full.
func (s *Stream) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.wake:
		case <-s.quit:
			s.Flush(ctx)
			return
		}
		timer.Reset(batchDelay)
		select {
		case <-timer.C:
		case <-s.full:
		case <-s.quit:
		}
		s.Flush(ctx)
	}
}

// Flush sends everything that waits, and returns when it is sent or given up.
func (s *Stream) Flush(ctx context.Context) {
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	for {
		batch := s.take()
		if len(batch) == 0 {
			break
		}
		s.send(ctx, batch)
	}
	s.mu.Lock()
	printed, missed := s.printed, s.missed
	s.printed, s.missed = 0, 0
	s.mu.Unlock()
	if printed > 0 || missed > 0 {
		s.to.Count(printed, missed)
	}
}

// send emits one batch. Events are news, not records: what can't be sent is counted.
func (s *Stream) send(ctx context.Context, batch []job.Event) {
	if !s.lost() {
		if err := panics.Catch(func() error { return s.to.Emit(ctx, batch) }); err == nil {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		s.missed += int64(len(batch[i].Data))
	}
}

// take removes the next batch from the queue.
func (s *Stream) take() []job.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped > 0 && len(s.pending) == 0 {
		n := s.dropped
		s.dropped = 0
		s.admit(job.Event{Kind: job.EventDropped, Bytes: n})
	}
	n, weight := 0, 0
	for n < len(s.pending) && weight < batchSize {
		weight += eventWeight + len(s.pending[n].Data)
		n++
	}
	batch := s.pending[:n:n]
	s.pending = s.pending[n:]
	s.weight -= weight
	return batch
}

// signal wakes the one who waits on c, once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
