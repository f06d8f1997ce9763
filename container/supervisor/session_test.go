package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

func TestSilenceTooLong(t *testing.T) {
	const every = deadMan / 4
	for _, tt := range []struct {
		name  string
		heard time.Duration
		looks []time.Duration
		want  bool // of the last look
	}{
		{"just not", 0, []time.Duration{every, 2 * every, 3 * every, deadMan}, false},
		{"silent", 0, []time.Duration{every, 2 * every, 3 * every, deadMan, deadMan + 1}, true},
		{"heard in between", every, []time.Duration{every, 2 * every, 3 * every, 4 * every, 5 * every}, false},
		{"this process stood still", 0, []time.Duration{every, 10 * every}, false},
		{"and the box is silent after that too", 0, []time.Duration{10 * every, 11 * every, 12 * every, 13 * every, 14*every + 1}, true},
	} {
		q := silence{limit: deadMan}
		for i, now := range tt.looks {
			if got := q.tooLong(now, tt.heard); got != (tt.want && i == len(tt.looks)-1) {
				t.Errorf("%s: look at %v: got %t", tt.name, now, got)
			}
		}
	}
}

// Whatever is no greeting makes a lost box, and the connection is closed.
func TestConnectBadGreeting(t *testing.T) {
	ready := wire.AppendFrame(nil, wire.Ready, 0, wire.Report{PID: 1}.Encode())
	var other wire.Enc
	other.Str("someone else")
	for _, tt := range []struct {
		name, text string
		says       []byte
	}{
		{"nothing", "ended before it was ready", nil},
		{"half a frame", "ended before it was ready", ready[:len(ready)-1]},
		{"another frame", "does not speak the protocol", wire.AppendFrame(nil, wire.Data, 0, ready[9:])},
		{"another program", "no slipway supervisor", wire.AppendFrame(nil, wire.Ready, 0, other.B)},
		{"half a report", "malformed", wire.AppendFrame(nil, wire.Ready, 0, ready[9:len(ready)-1])},
		{"a reason", "no workspace", wire.AppendFrame(nil, wire.Ready, 0, wire.Report{Error: "no workspace"}.Encode())},
	} {
		closed := 0
		s, err := Connect(t.Context(), conn{bytes.NewReader(tt.says), io.Discard, func() { closed++ }}, Config{})
		if !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), tt.text) || closed != 1 {
			t.Errorf("%s: got %v, the connection closed %d times; want ErrBoxLost with %q, and once", tt.name, err, closed, tt.text)
		}
		if s != nil {
			_ = s.Close()
		}
	}
}

// Close returns when the session's goroutines have ended, also if the connection is slow to let go of one.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		ready := bytes.NewReader(wire.AppendFrame(nil, wire.Ready, 0, wire.Report{PID: 1}.Encode()))
		slow := readFunc(func(b []byte) (int, error) {
			if ready.Len() > 0 {
				return ready.Read(b)
			}
			<-closed
			<-time.After(time.Minute)
			return 0, io.ErrClosedPipe
		})
		s, err := Connect(t.Context(), conn{slow, io.Discard, func() { close(closed) }}, Config{DeadMan: deadMan})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []time.Duration{time.Minute, 0} {
			begin := time.Now()
			if err := s.Close(); err != nil || time.Since(begin) != want {
				t.Errorf("Close: got %v after %v, want no error after %v, when the reader has ended", err, time.Since(begin), want)
			}
		}
	})
}

type readFunc func([]byte) (int, error)

func (r readFunc) Read(b []byte) (int, error) { return r(b) }

// A box that shows no sign is lost after DeadMan, and one that answers is not.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := connect(t)
		<-time.After(10 * deadMan)
		if err := s.Err(); err != nil {
			t.Errorf("a box that answers: got %v, want no error", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s, _ := connect(t, func(p *peer) { p.mute = true })
		<-s.Done()
		took := time.Since(begin)
		if err := s.Err(); !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), "no sign") || took <= deadMan || took > deadMan*5/4 {
			t.Errorf("a mute box: got %v after %v, want ErrBoxLost after %v", err, took, deadMan*5/4)
		}
	})
}

// A box that does not read holds up a Ping, not the judgment.
func TestBeatBehindFullPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		toWorker, fromBox := io.Pipe()
		w := &stuckWriter{release: stuck}
		go func() { _, _ = fromBox.Write(wire.AppendFrame(nil, wire.Ready, 0, wire.Report{PID: 1}.Encode())) }()
		var once sync.Once
		c := conn{toWorker, w, func() { once.Do(func() { close(stuck) }); _ = toWorker.Close() }}
		s, err := Connect(t.Context(), c, Config{DeadMan: deadMan})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-s.Done()
		if took := time.Since(begin); took > deadMan*5/4 || !errors.Is(s.Err(), container.ErrBoxLost) {
			t.Errorf("got %v after %v, want ErrBoxLost after %v", s.Err(), took, deadMan*5/4)
		}
		_ = s.Close()
		_ = fromBox.Close()
	})
}

// stuckWriter takes the greeting and then blocks until it is released.
type stuckWriter struct {
	first   sync.Once
	release chan struct{}
}

func (w *stuckWriter) Write(b []byte) (int, error) {
	greeting := false
	w.first.Do(func() { greeting = true })
	if greeting {
		return len(b), nil
	}
	<-w.release
	return 0, io.ErrClosedPipe
}

// A command that does not end exitMargin after its last deadline is stuck if its box lives. Without a sign of the box it is the
// box that is at fault, and has longer.
func TestExitMargin(t *testing.T) {
	for name, tt := range map[string]struct {
		cmd    container.Command
		cancel bool
		mute   bool
		want   time.Duration
	}{
		"timeout and grace":  {command(func(c *container.Command) { c.Timeout, c.Grace = 10*time.Second, 5*time.Second }), false, false, 15*time.Second + exitMargin},
		"cancel and grace":   {command(func(c *container.Command) { c.Grace = 5 * time.Second }), true, false, 5*time.Second + exitMargin},
		"timeout and a mute": {command(func(c *container.Command) { c.Timeout = time.Second }), false, true, time.Second + silentMargin},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := connect(t, func(p *peer) { p.mute, p.config.DeadMan = tt.mute, time.Hour })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				cancel()
			}
			begin := time.Now()
			_, err := s.Exec(ctx, tt.cmd)
			if took := time.Since(begin); !errors.Is(err, container.ErrBoxLost) || errors.Is(err, container.ErrStuck) == tt.mute || took != tt.want {
				t.Errorf("%s: got %v after %v, want ErrBoxLost after %v, with ErrStuck %t", name, err, took, tt.want, !tt.mute)
			}
		})
	}
}

// What is known of the loss of a box is asked for once, and told to all.
func TestLostIsAsked(t *testing.T) {
	asked := 0
	asking, answer := make(chan struct{}), make(chan struct{})
	s, p := connect(t, func(p *peer) {
		p.config.Lost = func(err error) error {
			asked++
			close(asking)
			<-answer
			return fmt.Errorf("%w: %w", container.ErrBoxOOM, err)
		}
	})
	go func() { <-p.opened; _ = p.out.Close() }()
	first := make(chan error, 1)
	go func() { _, err := s.Exec(t.Context(), command()); first <- err }()
	<-asking
	time.AfterFunc(50*time.Millisecond, func() { close(answer) }) // while this is asked, a command meets a closed connection
	_, again := s.Exec(t.Context(), command())
	err := <-first
	for _, err := range []error{err, again, s.Err()} {
		if !errors.Is(err, container.ErrBoxLost) || !errors.Is(err, container.ErrBoxOOM) || !strings.Contains(err.Error(), "its output ended") {
			t.Errorf("got %v, want ErrBoxLost with ErrBoxOOM and how it was lost", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// While Output is at work the box can't be blamed for an exit that does not come.
func TestExitMarginWithSlowOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t)
		go func() {
			f := <-p.opened
			p.send(wire.Stdout, f.ID, []byte("x"))
			<-time.After(time.Hour / 2)
			p.send(wire.End, f.ID, wire.Exit{Code: 3, TimedOut: true}.Encode())
		}()
		x, err := s.Exec(t.Context(), command(func(c *container.Command) {
			c.Timeout = time.Second
			c.Output = func(container.Stream, []byte) { <-time.After(time.Hour) }
		}))
		if err != nil || x.Code != 3 {
			t.Errorf("got %+v, %v; want the exit", x, err)
		}
	})
}

// Success needs the box's own End: nothing else makes an Exit.
func TestNoExitWithoutEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(p *peer, id uint32)
		text   string
	}{
		"end of stream":   {func(p *peer, _ uint32) { _ = p.out.Close() }, "its output ended"},
		"bye":             {func(p *peer, _ uint32) { p.send(wire.Bye, 0, append([]byte{71}, "\x04over"...)) }, "the box ended by itself: over (71)"},
		"lost":            {func(p *peer, id uint32) { p.send(wire.End, id, wire.Exit{Lost: "its step process died"}.Encode()) }, "its step process died"},
		"malformed end":   {func(p *peer, id uint32) { p.send(wire.End, id, []byte{1}) }, "malformed"},
		"empty end":       {func(p *peer, id uint32) { p.send(wire.End, id, nil) }, "malformed"},
		"protocol broken": {func(p *peer, id uint32) { p.send(wire.Hello, 0, nil) }, "frame of type"},
		"another stream":  {func(p *peer, id uint32) { p.send(wire.End, id+7, nil) }, "never opened"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := connect(t)
			go func() { tt.answer(p, (<-p.opened).ID) }()
			x, err := s.Exec(t.Context(), command())
			if !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %+v, %v; want ErrBoxLost with %q", x, err, tt.text)
			}
		})
	}
}

// The reasons of an end: Stop and Close make it ErrStopped, and the first reason stays.
func TestErrOfEnd(t *testing.T) {
	s, p := connect(t)
	if s.Err() != nil {
		t.Errorf("while it runs: got %v, want no error", s.Err())
	}
	go func() {
		<-p.stops
		p.send(wire.Bye, 0, append([]byte{0}, "\x07stopped"...))
	}()
	if err := s.Stop(t.Context(), time.Second); err != nil {
		t.Errorf("Stop: got %v, want no error", err)
	}
	if err := s.Err(); !errors.Is(err, container.ErrStopped) || errors.Is(err, container.ErrBoxLost) {
		t.Errorf("after Stop: got %v, want ErrStopped alone", err)
	}
	s, _ = connect(t)
	_ = s.Close()
	if err := s.Err(); !errors.Is(err, container.ErrStopped) {
		t.Errorf("after Close: got %v, want ErrStopped", err)
	}
	s, p = connect(t)
	_ = p.out.Close()
	<-s.Done()
	_ = s.Close()
	if err := s.Err(); !errors.Is(err, container.ErrBoxLost) {
		t.Errorf("a loss, and then Close: got %v, want ErrBoxLost", err)
	}
}

// Stop waits no longer than its context, also for a second caller.
func TestStopWaitsForContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := connect(t)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			begin := time.Now()
			if err := s.Stop(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
				t.Errorf("Stop of a box that does not end: got %v after %v, want the context's error after a minute", err, time.Since(begin))
			}
			cancel()
		}
	})
}

// What a box answers is bounded by this side: it can't make the worker hold what it likes.
func TestAnswersAreBounded(t *testing.T) {
	s, p := connect(t)
	go func() {
		f := <-p.opened
		var e wire.Enc
		e.Uint(1 << 40) // the index of an entry that nobody sent
		wire.Info{Path: "x", Type: 'f'}.Put(&e)
		var b strings.Builder
		w := bufio.NewWriter(&b)
		_ = wire.WriteRecord(w, &e)
		_ = w.Flush()
		var end wire.Enc
		wire.Status{}.Put(&end)
		_ = p.mux.Send(wire.Data, f.ID, []byte(b.String())) // the session may be over by then
		_ = p.mux.Send(wire.End, f.ID, end.B)
	}()
	nothing := func(func(container.NewFile, error) bool) {}
	if infos, err := s.Files().WriteAll(t.Context(), nothing); err == nil {
		t.Errorf("got %d entries and no error, want one", len(infos))
	}
}
