package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// MaxStreams bounds how many streams may be open at once.
const MaxStreams = 1024

// Mux carries the streams of one connection. It is safe for concurrent use. Its owner reads
// frames with ReadFrame and Alloc, and hands those that belong to a stream to Dispatch.
type Mux struct {
	wmu  sync.Mutex
	w    io.Writer
	wbuf []byte

	opening sync.Mutex // held from taking an id to sending it: ids must arrive in order

	mu      sync.Mutex
	streams map[uint32]*Stream
	last    uint32
	err     error
}

// NewMux returns a Mux that writes frames to w, one Write each.
func NewMux(w io.Writer) *Mux {
	return &Mux{w: w, streams: map[uint32]*Stream{}}
}

// Send writes one frame.
func (m *Mux) Send(t Type, id uint32, payload []byte) error {
	m.wmu.Lock()
	defer m.wmu.Unlock()
	return m.write(t, id, payload)
}

// TrySend writes one frame, unless another is being written: then it does nothing, and waits for nothing.
func (m *Mux) TrySend(t Type, id uint32, payload []byte) error {
	if !m.wmu.TryLock() {
		return nil
	}
	defer m.wmu.Unlock()
	return m.write(t, id, payload)
}

// write needs wmu.
func (m *Mux) write(t Type, id uint32, payload []byte) error {
	m.wbuf = AppendFrame(m.wbuf[:0], t, id, payload)
	_, err := m.w.Write(m.wbuf)
	if cap(m.wbuf) > MaxData+headerSize {
		m.wbuf = nil
	}
	return err
}

// Open begins a stream of the given kind and tells the peer.
func (m *Mux) Open(kind byte, params []byte) (*Stream, error) {
	if len(params)+1 > MaxPayload {
		return nil, fmt.Errorf("request of %d bytes: at most %d", len(params), MaxPayload-1)
	}
	m.opening.Lock()
	defer m.opening.Unlock()
	m.mu.Lock()
	m.last++
	s, err := m.add(m.last)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := m.Send(Open, s.id, append([]byte{kind}, params...)); err != nil {
		m.remove(s.id)
		return nil, err
	}
	return s, nil
}

// Accept registers the stream that the peer began with id. Ids grow.
func (m *Mux) Accept(id uint32) (*Stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id <= m.last {
		return nil, fmt.Errorf("%w: stream %d opened after %d", ErrProtocol, id, m.last)
	}
	m.last = id
	return m.add(id)
}

func (m *Mux) add(id uint32) (*Stream, error) {
	if m.err != nil {
		return nil, m.err
	}
	if len(m.streams) >= MaxStreams {
		return nil, fmt.Errorf("more than %d commands and file operations at once", MaxStreams)
	}
	s := newStream(m, id)
	m.streams[id] = s
	return s, nil
}

func (m *Mux) remove(id uint32) {
	m.mu.Lock()
	delete(m.streams, id)
	m.mu.Unlock()
}

// Dispatch takes a frame of a stream. It never waits. Frames of a stream that
// has ended are dropped: they crossed its end on the way. An error means that the peer broke the protocol.
func (m *Mux) Dispatch(f Frame) error {
	m.mu.Lock()
	s, known := m.streams[f.ID], f.ID <= m.last && f.ID != 0
	m.mu.Unlock()
	if s == nil {
		if !known {
			return fmt.Errorf("%w: frame of type %d for stream %d, which was never opened", ErrProtocol, f.Type, f.ID)
		}
		Free(f.Payload)
		return nil
	}
	switch f.Type {
	case Data, Stdout, Stderr:
		return s.receive(f.Type, f.Payload)
	case EOF:
		s.receiveEOF()
	case WindowUpdate:
		if len(f.Payload) != 4 {
			return fmt.Errorf("%w: window of %d bytes", ErrProtocol, len(f.Payload))
		}
		return s.grant(binary.BigEndian.Uint32(f.Payload))
	case Cancel:
		s.cancel()
	case End:
		m.remove(f.ID)
		s.receiveEnd(f.Payload)
	default:
		return fmt.Errorf("%w: frame of type %d in a stream", ErrProtocol, f.Type)
	}
	return nil
}

// Fail ends every stream with err, and every later one.
func (m *Mux) Fail(err error) {
	m.mu.Lock()
	if m.err == nil {
		m.err = err
	}
	all := make([]*Stream, 0, len(m.streams))
	for _, s := range m.streams {
		all = append(all, s)
	}
	m.mu.Unlock()
	for _, s := range all {
		s.Fail(err)
	}
}

var pool = sync.Pool{New: func() any { return new([MaxData]byte) }}

// poolFrom is the size from which a payload takes a whole pooled buffer: smaller
// ones would waste more than they save.
const poolFrom = MaxData / 4

// Alloc returns n bytes for ReadFrame.
func Alloc(n int) []byte {
	if n < poolFrom || n > MaxData {
		return make([]byte, n)
	}
	return pool.Get().(*[MaxData]byte)[:n]
}

// Free returns what Alloc gave. Nobody may use b afterwards.
func Free(b []byte) {
	if len(b) >= poolFrom && cap(b) == MaxData {
		pool.Put((*[MaxData]byte)(b[:MaxData]))
	}
}
