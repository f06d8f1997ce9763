package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func FuzzReadFrame(f *testing.F) {
	f.Add(AppendFrame(nil, Open, 1, []byte{1, 2, 3}))
	f.Add(AppendFrame(AppendFrame(nil, Ping, 0, nil), Data, 7, bytes.Repeat([]byte("x"), MaxData)))
	f.Add([]byte{byte(Data), 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("POST / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var again []byte
		for {
			fr, err := ReadFrame(r, func(n int) []byte {
				if n > MaxPayload {
					t.Fatalf("asked for %d bytes", n)
				}
				return Alloc(n)
			})
			if err != nil {
				break
			}
			again = AppendFrame(again, fr.Type, fr.ID, fr.Payload)
			Free(fr.Payload)
		}
		if !bytes.HasPrefix(in, again) {
			t.Error("what was read encodes to something else")
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(Settings{Workdir: "/w", UID: 1, GID: 2, Env: []string{"A=b"}, Scratch: []string{"/tmp"}, DeadMan: 1, Lifetime: 1}.Encode())
	f.Add(Command{Args: []string{"a", "b"}, Dir: "d", UID: -1, GID: -1, Timeout: 5, Stdin: true}.Encode())
	f.Add(Exit{Code: 1, Error: "e", OOM: true, CPU: 7, MaxRSS: 8, Output: 9}.Encode())
	f.Add(Report{PID: 1, Error: "x"}.Encode())
	f.Fuzz(func(t *testing.T, in []byte) {
		if s, err := DecodeSettings(in); err == nil {
			same(t, s, s.Encode(), DecodeSettings)
		}
		if c, err := DecodeCommand(in); err == nil {
			same(t, c, c.Encode(), DecodeCommand)
		}
		if x, err := DecodeExit(in); err == nil {
			same(t, x, x.Encode(), DecodeExit)
		}
		if r, err := DecodeReport(in); err == nil {
			same(t, r, r.Encode(), DecodeReport)
		}
		d := NewDec(in)
		GetStatus(d)
		GetInfo(d)
		GetEntry(d)
		_ = d.Err()
	})
}

func same[T any](t *testing.T, v T, b []byte, decode func([]byte) (T, error)) {
	t.Helper()
	again, err := decode(b)
	if err != nil || !reflect.DeepEqual(v, again) {
		t.Errorf("%+v becomes %+v, %v", v, again, err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 0, 1, 9})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(_ *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		var buf []byte
		for {
			if _, err := ReadRecord(r, &buf); err != nil {
				return
			}
		}
	})
}

// FuzzDispatch feeds a Mux with whatever a peer may send, on both sides.
func FuzzDispatch(f *testing.F) {
	f.Add(AppendFrame(AppendFrame(nil, Data, 1, []byte("x")), End, 1, []byte("y")))
	f.Add(AppendFrame(nil, WindowUpdate, 1, []byte{0xff, 0xff, 0xff, 0xff}))
	f.Add(AppendFrame(nil, EOF, 2, nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		m := NewMux(io.Discard)
		s, err := m.Open(byte(KindExec), nil)
		if err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(in)
		for {
			fr, err := ReadFrame(r, Alloc)
			if err == nil {
				err = m.Dispatch(fr)
			}
			if err != nil {
				m.Fail(err)
				break
			}
		}
		if s.held > Window {
			t.Errorf("%d units held, more than %d", s.held, Window)
		}
		for {
			if _, _, err := s.Next(); err != nil {
				return
			}
		}
	})
}

func TestVersion(t *testing.T) {
	good := Report{PID: 3}.Encode()
	bad := append([]byte(nil), good...)
	bad[len(protocolName)+1]++
	if _, err := DecodeReport(bad); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", protocolVersion+1)) {
		t.Errorf("another version = %v", err)
	}
	bad[1] = 'X'
	if _, err := DecodeReport(bad); !errors.Is(err, ErrProtocol) {
		t.Errorf("another program = %v", err)
	}
	if _, err := DecodeReport(append(good, 0)); !errors.Is(err, ErrProtocol) {
		t.Errorf("trailing bytes = %v", err)
	}
}

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
