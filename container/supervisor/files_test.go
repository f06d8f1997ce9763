package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// fileOps is every method of Files, at work on one entry.
var fileOps = []struct {
	name string
	run  func(context.Context, container.Files) error
}{
	{"Stat", func(ctx context.Context, f container.Files) error { _, err := f.Stat(ctx, "a"); return err }},
	{"Read", func(ctx context.Context, f container.Files) error {
		_, err := f.Read(ctx, "a", io.Discard, 0)
		return err
	}},
	{"Write", func(ctx context.Context, f container.Files) error {
		return f.Write(ctx, "a", strings.NewReader("x"), 0o644)
	}},
	{"List", func(ctx context.Context, f container.Files) error { _, err := f.List(ctx, "a"); return err }},
	{"Mkdir", func(ctx context.Context, f container.Files) error { return f.Mkdir(ctx, "a", 0o755) }},
	{"Delete", func(ctx context.Context, f container.Files) error { return f.Delete(ctx, "a") }},
	{"Walk", func(ctx context.Context, f container.Files) error {
		return f.Walk(ctx, func(container.FileInfo) error { return nil })
	}},
	{"Hash", func(ctx context.Context, f container.Files) error {
		return f.Hash(ctx, []string{"a"}, func(container.Sum) error { return nil })
	}},
	{"ReadAll", func(ctx context.Context, f container.Files) error {
		return f.ReadAll(ctx, []string{"a"}, func(container.FileContent) error { return nil })
	}},
	{"WriteAll", func(ctx context.Context, f container.Files) error {
		_, err := f.WriteAll(ctx, oneFile)
		return err
	}},
}

var oneFile iter.Seq2[container.NewFile, error] = func(yield func(container.NewFile, error) bool) {
	yield(container.NewFile{Path: "a", Type: container.TypeFile, Size: 1, Content: strings.NewReader("x")}, nil)
}

// good is the end of an operation that went well, with its result.
func good(result ...byte) []byte {
	var e wire.Enc
	wire.Status{}.Put(&e)
	return append(e.B, result...)
}

// record is one record of an answer.
func record(t testing.TB, put func(*wire.Enc)) []byte {
	t.Helper()
	var e wire.Enc
	put(&e)
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := errors.Join(wire.WriteRecord(w, &e), w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// No operation succeeds, nor finds that something is not there, without an end that says so.
func TestFilesWithoutEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(p *peer)
		text   string
	}{
		"end of stream": {func(p *peer) { <-p.opened; _ = p.out.Close() }, "its output ended"},
		"empty end":     {func(p *peer) { p.answer(nil, nil) }, "malformed"},
		"cut end":       {func(p *peer) { p.answer(nil, []byte{byte(wire.CodeNotFound)}) }, "malformed"},
	} {
		for _, op := range fileOps {
			t.Run(name+"/"+op.name, func(t *testing.T) {
				s, p := connect(t)
				go tt.answer(p)
				if err := op.run(t.Context(), s.Files()); !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("got %v, want ErrBoxLost with %q", err, tt.text)
				}
			})
		}
	}
}

// An answer that is too short, or none of the protocol, makes the box one that can't be used, although it says that all went well.
func TestFilesBadAnswer(t *testing.T) {
	info := func(e *wire.Enc) { wire.Status{}.Put(e); wire.Info{Path: "a", Type: 'f', Size: 1}.Put(e) }
	content := slices.Concat(record(t, info), record(t, func(e *wire.Enc) { e.Raw([]byte("x")) }))
	contentEnd := record(t, func(*wire.Enc) {})
	tooLarge := []byte{0xff, 0xff, 0xff, 0x7f}
	malformed := []byte{1, 0}
	records := []string{"List", "Walk", "Hash", "ReadAll", "WriteAll"}
	for _, tt := range []struct {
		name string
		data []byte
		ops  []string
	}{
		{"nothing", nil, []string{"Stat", "Read", "Hash", "ReadAll", "WriteAll"}},
		{"a record of half its bytes", []byte{9, 0, 0}, records},
		{"a record of half its length", []byte{0x80}, records},
		{"a record that is too large", tooLarge, records},
		{"a malformed record", malformed, records},
		{"content without an end", content, []string{"ReadAll"}},
		{"content that goes on too large", slices.Concat(content, tooLarge), []string{"ReadAll"}},
		{"content with nothing after it", slices.Concat(content, contentEnd), []string{"ReadAll"}},
		{"content with something malformed after it", slices.Concat(content, contentEnd, malformed), []string{"ReadAll"}},
	} {
		for _, op := range fileOps {
			if !slices.Contains(tt.ops, op.name) {
				continue
			}
			t.Run(tt.name+"/"+op.name, func(t *testing.T) {
				s, p := connect(t)
				go p.answer(tt.data, good())
				if err := op.run(t.Context(), s.Files()); !errors.Is(err, container.ErrBoxLost) {
					t.Errorf("got %v, want ErrBoxLost", err)
				}
				if err := s.Err(); err != nil {
					t.Errorf("the session ended by it: %v", err)
				}
			})
		}
	}
}

// The box's reason is the error of an operation that it does not bring to its end, wherever the answer broke off.
func TestFilesRefused(t *testing.T) {
	var end wire.Enc
	wire.Status{Code: wire.CodeNoSpace, Message: "a: the disk is full"}.Put(&end)
	begun := record(t, func(e *wire.Enc) { wire.Status{}.Put(e); wire.Info{Path: "a", Type: 'f', Size: 9}.Put(e) })
	for name, data := range map[string][]byte{"at once": nil, "in a record": {9, 0, 0}, "in content": append(begun, 9, 0)} {
		for _, op := range fileOps {
			if name != "at once" && op.name == "Hash" || name == "in content" && op.name != "ReadAll" {
				continue
			}
			t.Run(name+"/"+op.name, func(t *testing.T) {
				s, p := connect(t)
				go p.answer(data, end.B)
				if err := op.run(t.Context(), s.Files()); !errors.Is(err, container.ErrNoSpace) || !strings.Contains(err.Error(), "a: the disk is full") {
					t.Errorf("got %v, want ErrNoSpace with the box's text", err)
				}
			})
		}
	}
}

// After the end nothing is asked of the box.
func TestFilesAfterEnd(t *testing.T) {
	s, _ := connect(t)
	_ = s.Close()
	for _, op := range fileOps {
		if err := op.run(t.Context(), s.Files()); !errors.Is(err, container.ErrStopped) {
			t.Errorf("%s: got %v, want ErrStopped", op.name, err)
		}
	}
}

// A context that ends is the error, at once, whatever the box does; one that has ended asks nothing of it.
func TestFilesCanceled(t *testing.T) {
	boom := errors.New("boom")
	for _, op := range fileOps {
		synctest.Test(t, func(t *testing.T) {
			s, p := connect(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, boom)
			defer cancel()
			begin := time.Now()
			if err := op.run(ctx, s.Files()); !errors.Is(err, boom) || time.Since(begin) != time.Second {
				t.Errorf("%s that is not answered: got %v after %v, want the cause after a second", op.name, err, time.Since(begin))
			}
			if err := op.run(ctx, s.Files()); !errors.Is(err, boom) {
				t.Errorf("%s afterwards: got %v, want the cause", op.name, err)
			}
			if n := len(p.opened); n != 1 {
				t.Errorf("%s: the box was asked %d times, want once", op.name, n)
			}
			if err := s.Err(); err != nil {
				t.Errorf("%s: the session ended by it: %v", op.name, err)
			}
		})
	}
}

// An operation that the box has canceled for the context's sake returns the context's cause, and any other the box's word.
func TestFilesCanceledByBox(t *testing.T) {
	boom := errors.New("boom")
	var end wire.Enc
	wire.Status{Code: wire.CodeCanceled, Message: "a: canceled"}.Put(&end)
	for _, tt := range []struct {
		name   string
		cancel bool
		want   error
	}{{"after the context", true, boom}, {"by itself", false, errCanceled}} {
		synctest.Test(t, func(t *testing.T) {
			s, p := connect(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go p.answer([]byte("x"), end.B)
			_, err := s.Files().Read(ctx, "a", writeFunc(func() {
				synctest.Wait() // the end has come
				if tt.cancel {
					cancel(boom)
				}
			}), 0)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
			}
		})
	}
}

// writeFunc is called for each Write.
type writeFunc func()

func (w writeFunc) Write(b []byte) (int, error) { w(); return len(b), nil }
