package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
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
