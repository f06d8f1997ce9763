package events

import (
	"bytes"
	"context"
	"sync"
	"time"

	"slipway/job"
	"slipway/runner/internal/excerpt"
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

// Stream sends the events of an attempt in batches, in order, from one goroutine. Add, Output and Missing never wait: a
// step must not stand still because a reader is slow. All methods are safe for concurrent use.
type Stream struct {
	to   Sink
	lost func() bool // the lease is gone: publish nothing

	mu      sync.Mutex
	pending []job.Event
	weight  int // of pending
	seq     uint64
	budget  budget
	gap     gap  // output since the last event that was admitted
	tail    tail // output after gap
	counts  counts

	sending chan struct{} // holds one token while a batch is sent: one at a time, so that they stay in order
	wake    chan struct{}
	full    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
}

// Sink is where a Stream ends.
type Sink struct {
	// Emit sends one batch, and returns nil once the queue has it. It is called by one goroutine at a time. What it can't
	// send is counted, not sent again.
	Emit func(ctx context.Context, batch []job.Event) error
	// Printed is told how many bytes were printed, and Missed how many of them reach no reader, and why: one of the Missed
	// constants.
	Printed func(n int64)
	Missed  func(n int64, why string)
	// Limit bounds what the events take in the queue, in bytes. 0: no limit.
	Limit int64
}

// Start starts the sender. Nothing is sent any more once hold has ended because the lease was lost: the events would
// mix with those of the attempt that has it now. Close ends the sender.
func Start(hold context.Context, to Sink) *Stream {
	s := &Stream{
		to: to, budget: newBudget(to.Limit), lost: func() bool { return verdict.Lost(context.Cause(hold)) },
		sending: make(chan struct{}, 1),
		wake:    make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	s.done.Go(func() { s.loop(context.WithoutCancel(hold)) })
	return s
}

// Close sends what is left and ends the sender.
func (s *Stream) Close() {
	s.mu.Lock()
	s.releaseTail()
	s.mu.Unlock()
	close(s.quit)
	s.done.Wait()
}

// Add queues one event.
func (s *Stream) Add(ev job.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseTail()
	s.admit(ev)
	signal(s.wake)
}

// Output queues a piece of a step's output, a copy of p.
func (s *Stream) Output(step int, stream string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.printed += int64(len(p))
	for len(p) > 0 {
		piece := p[:min(len(p), pieceSize)]
		p = p[len(piece):]
		switch {
		case !s.budget.admits(len(piece)):
			s.hold(step, stream, piece)
		case s.weight+len(piece) > queueSize:
			s.leaveOut(step, piece, MissedSlow)
		case !s.extend(step, stream, piece):
			s.admitOutput(step, stream, bytes.Clone(piece))
		}
	}
	if !s.budget.spent || s.budget.noticeDue() {
		signal(s.wake)
	}
}

// Missing tells of n bytes of a step's output that did not arrive from the box.
func (s *Stream) Missing(step int, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseTail()
	s.counts.printed += n
	s.counts.miss(n, MissedBox)
	s.gap.add(step, n, 0, MissedBox)
}

// hold keeps the newest output of a job that has used up its budget, in case it is the last of its step.
func (s *Stream) hold(step int, stream string, p []byte) {
	s.tail.add(step, stream, p)
	for s.tail.size > s.budget.tailSize {
		s.leaveOut(step, s.tail.trim(s.tail.size-s.budget.tailSize), MissedLimit)
	}
}

// leaveOut counts p as output that no reader sees.
func (s *Stream) leaveOut(step int, p []byte, why string) {
	s.counts.miss(int64(len(p)), why)
	s.gap.add(step, int64(len(p)), excerpt.LineEnds(p), why)
}

// extend puts p into the last event, if that is of the same stream: a program
// that prints byte by byte would otherwise make an event of each.
func (s *Stream) extend(step int, stream string, p []byte) bool {
	if len(s.pending) == 0 || s.gap.bytes > 0 {
		return false
	}
	last := &s.pending[len(s.pending)-1]
	if last.Kind != job.EventOutput || last.Step != step || last.Stream != stream || len(last.Data)+len(p) > pieceSize {
		return false
	}
	last.Data = append(last.Data, p...)
	s.budget.take(0, len(p))
	s.grow(len(p))
	return true
}

// releaseTail queues the end of a step's output that the budget held back, as far as it has room for it.
func (s *Stream) releaseTail() {
	if s.tail.size == 0 {
		return
	}
	if s.gap.bytes > 0 {
		s.leaveOut(s.gap.step, s.tail.trimLine(), MissedLimit)
	}
	pieces := s.tail.take()
	fits := s.budget.fits(pieces)
	for _, p := range pieces {
		if fits {
			s.admitOutput(p.step, p.stream, p.data)
		} else {
			s.leaveOut(p.step, p.data, MissedLimit)
		}
	}
}

func (s *Stream) admitOutput(step int, stream string, data []byte) {
	s.admit(job.Event{Kind: job.EventOutput, Step: step, Stream: stream, Data: data})
}

// admit numbers ev and queues it, after the news of what was left out before it.
func (s *Stream) admit(ev job.Event) {
	if g := s.gap; g.bytes > 0 {
		s.gap = gap{}
		s.budget.noticed()
		s.admit(g.event())
	}
	s.seq++
	ev.Seq, ev.Time = s.seq, time.Now()
	s.pending = append(s.pending, ev)
	s.budget.take(1, len(ev.Data))
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

// Flush sends everything that waits, and returns when it is sent or given up. What comes meanwhile is the next one's: a step
// that prints faster than the queue confirms would keep this one busy until its time is over, and then lose what waits.
func (s *Stream) Flush(ctx context.Context) {
	s.sending <- struct{}{}
	defer func() { <-s.sending }()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	s.mu.Lock()
	last := s.seq
	s.mu.Unlock()
	for {
		batch := s.take(last)
		if len(batch) == 0 {
			break
		}
		s.send(ctx, batch)
	}
	s.mu.Lock()
	c := s.counts
	s.counts = counts{}
	s.mu.Unlock()
	if c.printed > 0 {
		s.to.Printed(c.printed)
	}
	for why, n := range c.missed {
		s.to.Missed(n, why)
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
		s.counts.miss(int64(len(batch[i].Data)), MissedQueue)
	}
}

// take removes the next batch from the queue, up to the event with the number last, and the news of a gap at its very end.
func (s *Stream) take(last uint64) []job.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gap; g.bytes > 0 && len(s.pending) == 0 && (g.why != MissedLimit || s.budget.noticeDue() || s.closed()) {
		s.gap = gap{}
		s.budget.noticed()
		s.admit(g.event())
		last = s.seq
	}
	n, weight := 0, 0
	for n < len(s.pending) && weight < batchSize && s.pending[n].Seq <= last {
		weight += eventWeight + len(s.pending[n].Data)
		n++
	}
	batch := s.pending[:n:n]
	s.pending = s.pending[n:]
	s.weight -= weight
	return batch
}

func (s *Stream) closed() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

// signal wakes the one who waits on c, once.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
