package supervisor

import (
	"errors"
	"io"
	"slices"
	"testing"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// What a reader gets of an answer that breaks off does not look like the end of a file that shrank.
func TestReadAllBrokenOff(t *testing.T) {
	s, p := connect(t)
	data := slices.Concat(
		record(t, func(e *wire.Enc) { wire.Status{}.Put(e); wire.Info{Path: "a", Type: 'f', Size: 9}.Put(e) }),
		record(t, func(e *wire.Enc) { e.Raw([]byte("1234")) }))
	go p.answer(data, good())
	boom := errors.New("boom")
	err := s.Files().ReadAll(t.Context(), []string{"a"}, func(c container.FileContent) error {
		b, err := io.ReadAll(c.Reader)
		if string(b) != "1234" || err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the reader: got %q, %v; want what came, and an error of its own", b, err)
		}
		if _, err := c.After(); err == nil {
			t.Error("After: got no error, want one")
		}
		return boom
	})
	if !errors.Is(err, container.ErrBoxLost) || errors.Is(err, boom) {
		t.Errorf("ReadAll: got %v, want ErrBoxLost, which is why the function failed", err)
	}
}

// A file that fails while it is read is After's error and no other's; the next one follows, until the function fails.
func TestReadAllGoesOn(t *testing.T) {
	info := func(st wire.Status) []byte {
		return record(t, func(e *wire.Enc) { st.Put(e); wire.Info{Path: "a", Type: 'f', Size: 1}.Put(e) })
	}
	file := func(after wire.Status) []byte {
		return slices.Concat(info(wire.Status{}), record(t, func(e *wire.Enc) { e.Raw([]byte("x")) }), record(t, func(*wire.Enc) {}), info(after))
	}
	boom := errors.New("boom")
	s, p := connect(t)
	go p.answer(slices.Concat(file(wire.Status{Code: wire.CodePermission, Message: "a: denied"}), file(wire.Status{}), file(wire.Status{})), good())
	calls := 0
	err := s.Files().ReadAll(t.Context(), []string{"a", "a", "a"}, func(c container.FileContent) error {
		calls++
		if calls == 2 {
			return boom
		}
		if _, err := c.After(); !errors.Is(err, container.ErrPermission) {
			t.Errorf("After: got %v, want ErrPermission", err)
		}
		return nil
	})
	if !errors.Is(err, boom) || calls != 2 {
		t.Errorf("ReadAll: got %v after %d calls, want the function's error after 2", err, calls)
	}
	s, p = connect(t)
	go p.answer([]byte{1, 0}, good())
	err = s.Files().ReadAll(t.Context(), []string{"a"}, func(c container.FileContent) error {
		t.Errorf("the function was called with %+v, which nobody sent", c.Info)
		return nil
	})
	if !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("ReadAll of something malformed: got %v, want ErrBoxLost", err)
	}
}
