package supervisor

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// Session is the worker's end of a running box. It is safe for concurrent use.
type Session struct {
	cfg   Config
	mux   *wire.Mux
	files files

	hangUp func() // closes the connection, once

	pinging atomic.Bool  // one Ping is on its way: a Send may be stuck behind a box that does not read
	heard   atomic.Int64 // when the last frame came, by the clock of start
	start   time.Time
	stopped atomic.Bool // the end was asked for
	done    chan struct{}
	failing sync.Once
	broken  chan struct{} // closed when the session begins to end; until done it may take a while to find out why
	err     error         // set before done is closed
	loops   sync.WaitGroup
	closing sync.Mutex
	closed  bool // Close waits: no loop begins any more. Guarded by closing
}

// Connect greets the supervisor behind conn and returns when it is ready. It owns conn from
// then on, also after an error. ctx bounds the greeting only. Errors: ErrBoxLost, and those of ctx.
func Connect(ctx context.Context, conn io.ReadWriteCloser, cfg Config) (*Session, error) {
	cfg = cfg.withDefaults()
	s := &Session{cfg: cfg, mux: wire.NewMux(conn), start: time.Now(), done: make(chan struct{}), broken: make(chan struct{})}
	s.files = files{s}
	s.hangUp = sync.OnceFunc(func() { _ = conn.Close() }) // there is nothing to do about an error
	in := bufio.NewReaderSize(conn, 128<<10)
	if err := s.greet(ctx, in); err != nil {
		s.hangUp()
		return nil, fmt.Errorf("greet supervisor: %w", err)
	}
	s.touch()
	s.loops.Go(func() { s.read(in) })
	s.loops.Go(s.beat)
	return s, nil
}

// greet closes conn when ctx ends: nothing else wakes a reader of it.
func (s *Session) greet(ctx context.Context, in io.Reader) error {
	stop := context.AfterFunc(ctx, s.hangUp)
	err := s.mux.Send(wire.Hello, 0, s.cfg.settings().Encode())
	var f wire.Frame
	if err == nil {
		f, err = wire.ReadFrame(in, wire.Alloc)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: it ended before it was ready: %w", container.ErrBoxLost, err)
	}
	if f.Type != wire.Ready {
		return fmt.Errorf("%w: it does not speak the protocol", container.ErrBoxLost)
	}
	report, err := wire.DecodeReport(f.Payload)
	if err != nil {
		return fmt.Errorf("%w: %w", container.ErrBoxLost, err)
	}
	if report.Error != "" {
		return fmt.Errorf("%w: %s", container.ErrBoxLost, report.Error)
	}
	return nil
}

// Done is closed when the connection has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is nil until Done. Then it matches ErrStopped if Stop or Close was called, else ErrBoxLost.
func (s *Session) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends all commands (TERM, grace, KILL) and the box, and waits until it has said
// goodbye or ctx ends. The Session must still be closed.
func (s *Session) Stop(ctx context.Context, grace time.Duration) error {
	if s.stopped.Swap(true) {
		return s.awaitEnd(ctx)
	}
	payload := binary.BigEndian.AppendUint64(nil, uint64(max(grace, 0)))
	sent := make(chan error, 1)
	go func() { sent <- s.mux.Send(wire.Stop, 0, payload) }() // ends with the connection at the latest
	select {
	case err := <-sent:
		if err != nil {
			s.fail(err)
		}
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("stop box: %w", context.Cause(ctx))
	}
	return s.awaitEnd(ctx)
}

func (s *Session) awaitEnd(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop box: %w", context.Cause(ctx))
	}
}

// Close drops the connection, which ends the box, and waits for the Session's goroutines. It is safe to call
// more than once.
func (s *Session) Close() error {
	s.stopped.Store(true)
	s.fail(errors.New("connection closed"))
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	s.loops.Wait()
	return nil
}

// fail ends the session. The first call says why.
func (s *Session) fail(cause error) {
	s.failing.Do(func() {
		close(s.broken)
		s.hangUp()
		switch {
		case s.stopped.Load():
			s.err = fmt.Errorf("%w: %w", container.ErrStopped, cause)
		case s.cfg.Lost != nil && !errors.Is(cause, container.ErrStuck):
			s.err = fmt.Errorf("%w: %w", container.ErrBoxLost, s.cfg.Lost(cause))
		default:
			s.err = fmt.Errorf("%w: %w", container.ErrBoxLost, cause)
		}
		close(s.done) // first: a caller whose command has failed must find the session over
		s.mux.Fail(s.err)
	})
}

func (s *Session) touch() { s.heard.Store(int64(time.Since(s.start))) }

// read takes frames until the connection ends. It waits for no reader of a stream.
func (s *Session) read(in io.Reader) {
	for {
		f, err := wire.ReadFrame(in, wire.Alloc)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("its output ended")
			}
			s.fail(err)
			return
		}
		s.touch()
		if err := s.handle(f); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *Session) handle(f wire.Frame) error {
	switch f.Type {
	case wire.Pong:
		return nil
	case wire.Data, wire.Stdout, wire.Stderr, wire.WindowUpdate, wire.End:
		return s.mux.Dispatch(f)
	case wire.Bye:
		d := wire.NewDec(f.Payload)
		code, reason := d.Uint(), d.Str()
		return fmt.Errorf("the box ended by itself: %s (%d)", reason, code)
	default:
		return fmt.Errorf("%w: frame of type %d", wire.ErrProtocol, f.Type)
	}
}

// beat tells the box that its worker lives, and listens for it. A box that is silent
// for DeadMan counts as lost; it will think the same of this side.
func (s *Session) beat() {
	tick := time.NewTicker(s.cfg.DeadMan / 4)
	defer tick.Stop()
	silence := silence{limit: s.cfg.DeadMan, last: time.Since(s.start)}
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		if silence.tooLong(time.Since(s.start), time.Duration(s.heard.Load())) {
			s.fail(fmt.Errorf("no sign of it for %v", s.cfg.DeadMan))
			return
		}
		s.ping(s.mux.Send)
	}
}

// ping asks the box for a sign of life, by Send or TrySend. It waits for nothing.
func (s *Session) ping(send func(wire.Type, uint32, []byte) error) {
	s.closing.Lock() // a command's clock may call this beside Close
	defer s.closing.Unlock()
	if s.closed || !s.pinging.CompareAndSwap(false, true) {
		return
	}
	s.loops.Go(func() {
		defer s.pinging.Store(false)
		if err := send(wire.Ping, 0, nil); err != nil {
			s.fail(err)
		}
	})
}

// silence judges a peer by the time of its last sign. A look that comes late means that this process itself
// stood still: the peer's signs may still be in the pipe, so that silence counts from then on.
type silence struct {
	limit         time.Duration
	last, excused time.Duration // of the looks
}

func (q *silence) tooLong(now, heard time.Duration) bool {
	if now-q.last > q.limit*3/4 {
		q.excused = now
	}
	q.last = now
	return now-max(heard, q.excused) > q.limit
}
