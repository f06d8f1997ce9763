package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrEnded is returned by a write to a stream whose peer has already sent its End.
var ErrEnded = errors.New("stream has ended")

// Stream is one command or file operation. One goroutine may read and others write.
type Stream struct {
	m  *Mux
	id uint32

	mu       sync.Mutex
	cond     *sync.Cond
	queue    []chunk
	held     int    // units in queue, and the chunk that is being read
	taken    int    // units that were read but not yet returned to the peer
	current  []byte // given out by Next
	pending  []byte // rest of current for Read
	credit   int
	eof      bool
	end      []byte
	ended    bool
	err      error
	canceled chan struct{}
}

type chunk struct {
	tag  Type
	data []byte
}

func newStream(m *Mux, id uint32) *Stream {
	s := &Stream{m: m, id: id, credit: Window, canceled: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// Next returns the next piece of data, valid until the following call. It returns
// io.EOF when the peer has sent EOF or End and all data before it was read.
func (s *Stream) Next() (Type, []byte, error) {
	s.mu.Lock()
	s.release()
	for len(s.queue) == 0 && !s.eof && !s.ended && s.err == nil {
		s.cond.Wait()
	}
	var c chunk
	var err error
	switch {
	case len(s.queue) > 0: // also after a failure: the data that arrived is worth reading
		c = s.queue[0]
		s.queue = s.queue[1:]
		s.current = c.data
	case s.err != nil && !s.ended:
		err = s.err
	default:
		err = io.EOF
	}
	update := s.returned()
	s.mu.Unlock()
	if update > 0 {
		var p [4]byte
		binary.BigEndian.PutUint32(p[:], uint32(update))
		if werr := s.m.Send(WindowUpdate, s.id, p[:]); werr != nil && err == nil && !s.isEnded() {
			return 0, nil, werr
		}
	}
	return c.tag, c.data, err
}

// Read reads the data frames as one stream of bytes.
func (s *Stream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		_, b, err := s.Next()
		if err != nil {
			return 0, err
		}
		s.pending = b
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// release counts the chunk that Next gave out last as read.
func (s *Stream) release() {
	if s.current == nil {
		return
	}
	n := len(s.current) + frameCost
	s.held -= n
	s.taken += n
	Free(s.current)
	s.current, s.pending = nil, nil
}

// returned is how many units to give back to the peer now: half a window at least, not each few bytes.
func (s *Stream) returned() int {
	if s.taken < Window/2 || s.ended || s.eof {
		return 0
	}
	n := s.taken
	s.taken = 0
	return n
}

// Write sends p as data frames.
func (s *Stream) Write(p []byte) (int, error) { return s.WriteTagged(Data, p) }

// WriteTagged sends p in frames of type t, and waits while the peer's window is full.
func (s *Stream) WriteTagged(t Type, p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := s.reserve(min(len(p)-sent, MaxData))
		if err != nil {
			return sent, err
		}
		if err := s.m.Send(t, s.id, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

func (s *Stream) reserve(want int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit <= frameCost && !s.ended && s.err == nil {
		s.cond.Wait()
	}
	switch {
	case s.ended:
		return 0, ErrEnded
	case s.err != nil:
		return 0, s.err
	}
	n := min(want, s.credit-frameCost)
	s.credit -= n + frameCost
	return n, nil
}

// CloseWrite says that no more data comes.
func (s *Stream) CloseWrite() error { return s.m.Send(EOF, s.id, nil) }

// SendCancel asks the peer to end the stream early.
func (s *Stream) SendCancel() error { return s.m.Send(Cancel, s.id, nil) }

// End sends the result and forgets the stream.
func (s *Stream) End(result []byte) error {
	s.m.remove(s.id)
	s.Fail(ErrEnded)
	return s.m.Send(End, s.id, result)
}

// Result returns the peer's End. Only after Next or Read returned io.EOF, or a write ErrEnded.
func (s *Stream) Result() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.ended && s.err == nil {
		s.cond.Wait()
	}
	if s.ended {
		return s.end, nil
	}
	return nil, s.err
}

// Canceled is closed when the peer has sent Cancel.
func (s *Stream) Canceled() <-chan struct{} { return s.canceled }

// Fail makes every wait of the stream return err, unless it has ended.
func (s *Stream) Fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.cond.Broadcast()
}

func (s *Stream) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *Stream) receive(t Type, p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.eof {
		return fmt.Errorf("%w: data after the end of stream %d", ErrProtocol, s.id)
	}
	if len(p) == 0 {
		return fmt.Errorf("%w: empty data frame in stream %d", ErrProtocol, s.id)
	}
	s.held += len(p) + frameCost
	if s.held+s.taken > Window {
		return fmt.Errorf("%w: stream %d exceeds its window", ErrProtocol, s.id)
	}
	s.queue = append(s.queue, chunk{t, p})
	s.cond.Broadcast()
	return nil
}

func (s *Stream) receiveEOF() {
	s.mu.Lock()
	s.eof = true
	s.mu.Unlock()
	s.cond.Broadcast()
}

func (s *Stream) receiveEnd(p []byte) {
	s.mu.Lock()
	s.end, s.ended = p, true
	s.mu.Unlock()
	s.cond.Broadcast()
}

func (s *Stream) grant(n uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > Window || s.credit+int(n) > Window {
		return fmt.Errorf("%w: window of stream %d grows beyond its bound", ErrProtocol, s.id)
	}
	s.credit += int(n)
	s.cond.Broadcast()
	return nil
}

func (s *Stream) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.canceled:
	default:
		close(s.canceled)
	}
}
