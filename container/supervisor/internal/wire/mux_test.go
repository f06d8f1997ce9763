package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"
)

// pair connects two Muxes; serve is called for each stream that the first one opens.
func pair(t *testing.T, serve func(*Stream)) *Mux {
	t.Helper()
	ar, aw := io.Pipe()
	br, bw := io.Pipe()
	a, b := NewMux(aw), NewMux(bw)
	var all sync.WaitGroup
	read := func(m *Mux, r io.Reader) {
		for {
			f, err := ReadFrame(r, Alloc)
			if err != nil {
				m.Fail(err)
				return
			}
			if f.Type == Open {
				s, err := m.Accept(f.ID)
				if err != nil {
					t.Error(err)
					return
				}
				all.Go(func() { serve(s) })
				continue
			}
			if err := m.Dispatch(f); err != nil {
				t.Error(err)
				m.Fail(err)
				return
			}
		}
	}
	all.Go(func() { read(a, br) })
	all.Go(func() { read(b, ar) })
	t.Cleanup(func() {
		_, _ = aw.Close(), bw.Close()
		all.Wait()
	})
	return a
}

func TestEcho(t *testing.T) {
	m := pair(t, func(s *Stream) {
		n, err := io.Copy(struct{ io.Writer }{s}, struct{ io.Reader }{s})
		var e Enc
		e.Int(n)
		e.Bool(err == nil)
		if err := s.End(e.B); err != nil {
			t.Error(err)
		}
	})
	in := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // four windows
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := m.Open(1, nil)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				for rest := in; len(rest) > 0; {
					n := min(len(rest), 1000)
					if _, err := s.Write(rest[:n]); err != nil {
						t.Error(err)
					}
					rest = rest[n:]
				}
				_ = s.CloseWrite()
			}()
			out, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(in, out) {
				t.Errorf("%d bytes came back, %v", len(out), err)
			}
			result, err := s.Result()
			d := NewDec(result)
			if n, ok := d.Int(), d.Bool(); err != nil || n != int64(len(in)) || !ok || d.Err() != nil {
				t.Errorf("result = %d %v, %v", n, ok, err)
			}
		})
	}
	all.Wait()
}

// One reader that stands still holds up its own stream, no other.
func TestSlowStream(t *testing.T) {
	m := pair(t, func(s *Stream) {
		_, _ = s.Write(make([]byte, 10*Window))
		_ = s.End(nil)
	})
	slow, err := m.Open(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := m.Open(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, quick); n != 10*Window || err != nil {
		t.Errorf("the quick one read %d, %v", n, err)
	}
	slow.mu.Lock()
	held := slow.held
	slow.mu.Unlock()
	if held > Window {
		t.Errorf("the slow one holds %d, more than %d", held, Window)
	}
	if n, err := io.Copy(io.Discard, slow); n != 10*Window || err != nil {
		t.Errorf("the slow one read %d, %v", n, err)
	}
}

func TestWindowIsEnforced(t *testing.T) {
	m := NewMux(io.Discard)
	s, err := m.Open(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for err == nil && n < Window {
		err = m.Dispatch(Frame{Data, s.id, []byte("x")})
		n++
	}
	if !errors.Is(err, ErrProtocol) || n > Window/frameCost+1 {
		t.Errorf("%d tiny frames were taken, %v", n, err)
	}
	if err := m.Dispatch(Frame{WindowUpdate, s.id, []byte{0, 0, 0, 1}}); !errors.Is(err, ErrProtocol) {
		t.Errorf("more window than was used = %v", err)
	}
}

func TestStreamLimit(t *testing.T) {
	m := NewMux(io.Discard)
	for range MaxStreams {
		if _, err := m.Open(1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Open(1, nil); err == nil {
		t.Error("one more was opened")
	}
}

func TestFailWakesAll(t *testing.T) {
	m := NewMux(io.Discard)
	s, err := m.Open(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	time.AfterFunc(10*time.Millisecond, func() { m.Fail(boom) })
	if _, err := s.Write(make([]byte, 2*Window)); !errors.Is(err, boom) {
		t.Errorf("Write = %v", err)
	}
	if _, _, err := s.Next(); !errors.Is(err, boom) {
		t.Errorf("Next = %v", err)
	}
	if _, err := s.Result(); !errors.Is(err, boom) {
		t.Errorf("Result = %v", err)
	}
	if _, err := m.Open(1, nil); !errors.Is(err, boom) {
		t.Errorf("Open = %v", err)
	}
}
