//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/internal/wire"
)

func TestLifeState(t *testing.T) {
	l := newLifeState()
	if l.isStopping() || l.isKilling() {
		t.Errorf("at first: stopping %t, killing %t; want neither", l.isStopping(), l.isKilling())
	}
	if !l.stop(3*time.Second) || l.stop(time.Hour) {
		t.Error("stop: want it true for the first call only")
	}
	if !l.isStopping() || l.stopGrace() != 3*time.Second {
		t.Errorf("after stop: stopping %t, grace %v; want true, and the first grace", l.isStopping(), l.stopGrace())
	}
	l.end(exitSilent, "first")
	l.end(exitStopped, "second")
	if got, want := l.wait(), (ending{exitSilent, "first"}); got != want {
		t.Errorf("wait: got %+v, want %+v: the first reason stays", got, want)
	}
	l.kill()
	if !l.isKilling() {
		t.Error("after kill: killing is false, want true")
	}
	l.end(exitStopped, "late")
	if !l.isKilling() || l.wait().reason != "first" {
		t.Errorf("an end while killing: got killing %t, %+v; want nothing changed", l.isKilling(), l.wait())
	}
	l = newLifeState()
	l.end(exitEOF, "without a stop")
	if l.isStopping() || l.wait().code != exitEOF {
		t.Errorf("an end without a stop: got stopping %t, %+v", l.isStopping(), l.wait())
	}
	if l.stop(0); l.wait().code != exitEOF {
		t.Errorf("a stop after the end: got %+v, want the end as it was", l.wait())
	}
}

// Of many reasons at once exactly one is the end.
func TestLifeStateAtOnce(t *testing.T) {
	l := newLifeState()
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() { l.end(i, "x"); l.stop(time.Duration(i)) })
	}
	first := l.wait()
	all.Wait()
	if got := l.wait(); got != first {
		t.Errorf("got %+v, then %+v; want one end", first, got)
	}
}

const (
	deadMan  = 8 * time.Second
	lifetime = time.Hour
	every    = deadMan / 8
)

func TestWatchdogLook(t *testing.T) {
	for _, tt := range []struct {
		name string
		seen time.Duration   // the worker's last sign
		at   []time.Duration // of the looks
		want int             // exit code of the last look; -1: none
	}{
		{"just silent enough", 0, ticks(every, deadMan), -1},
		{"silent", 0, ticks(every, deadMan+every), exitSilent},
		{"silent since its last sign", 5 * time.Second, ticks(every, 5*time.Second+deadMan), -1},
		{"the box stood still, and the signs may be in the pipe", 0, append(ticks(every, deadMan), 5*deadMan), -1},
		{"after that silence counts anew", 0, append(ticks(every, deadMan), ticksFrom(5*deadMan, every, 6*deadMan)...), -1},
		{"and ends the box", 0, append(ticks(every, deadMan), ticksFrom(5*deadMan, every, 6*deadMan+every)...), exitSilent},
		{"looks three times as far apart are no standstill", 0, ticks(3*every, deadMan+3*every), exitSilent},
		{"its time is over", lifetime, []time.Duration{lifetime, lifetime + 1}, exitLifetime},
		{"its time is over, even if it stood still", 0, []time.Duration{2 * lifetime}, exitLifetime},
		{"its time is just not over", lifetime, []time.Duration{lifetime}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWatchdog(time.Now(), deadMan, lifetime)
			w.seen.Store(int64(tt.seen))
			got := -1
			for i, at := range tt.at {
				e := w.look(at)
				if e != nil && i < len(tt.at)-1 {
					t.Fatalf("the box ends at %v already: %+v", at, e)
				}
				if e != nil {
					got = e.code
				}
			}
			if got != tt.want {
				t.Errorf("got exit code %d at %v, want %d", got, tt.at[len(tt.at)-1], tt.want)
			}
		})
	}
}

// ticks are the times from one step to end, that far apart.
func ticks(step, end time.Duration) []time.Duration { return ticksFrom(step, step, end) }

func ticksFrom(start, step, end time.Duration) (at []time.Duration) {
	for now := start; now <= end; now += step {
		at = append(at, now)
	}
	return at
}

// The watch ends no box whose worker shows itself, and one whose worker does not within DeadMan and an eighth of it.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w := newWatchdog(begin, deadMan, lifetime)
		const signs = 10
		go func() {
			for range signs {
				<-time.After(deadMan - every)
				w.touch()
			}
		}()
		e := w.watch()
		took, last := time.Since(begin), signs*(deadMan-every)
		if e.code != exitSilent || took < last+deadMan || took > last+deadMan+2*every {
			t.Errorf("got %+v after %v, want %d after %v", e, took, exitSilent, last+deadMan)
		}
	})
}

func TestWatchLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w := newWatchdog(begin, 2*lifetime, lifetime)
		if e := w.watch(); e.code != exitLifetime || time.Since(begin) < lifetime {
			t.Errorf("got %+v after %v, want %d after %v", e, time.Since(begin), exitLifetime, lifetime)
		}
	})
}

// The greeting is the first frame, and comes in time; else the box ends with a code for each reason.
func TestGreetFails(t *testing.T) {
	good := wire.Settings{Workdir: t.TempDir(), DeadMan: time.Second, Lifetime: time.Second}
	missing := good
	missing.Workdir = good.Workdir + "/no"
	hello := func(payload []byte) []byte { return wire.AppendFrame(nil, wire.Hello, 0, payload) }
	for _, tt := range []struct {
		name  string
		in    []byte
		code  int
		ready bool // it answers
	}{
		{"end of input", nil, exitEOF, false},
		{"half a frame", hello(good.Encode())[:12], exitProtocol, false},
		{"another frame", wire.AppendFrame(nil, wire.Ping, 0, nil), exitProtocol, false},
		{"a person's words", []byte("hello, is anybody there?\n"), exitProtocol, false},
		{"another version", hello(append([]byte{11}, "slipway-box\x63"...)), exitStart, true},
		{"no settings", hello(nil), exitStart, true},
		{"a workspace that is missing", hello(missing.Encode()), exitStart, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			e := newBox(&out, oom.Score{}).greet(bytes.NewReader(tt.in), nil)
			if e == nil || e.code != tt.code || e.reason == "" {
				t.Fatalf("got %+v, want exit code %d with a reason", e, tt.code)
			}
			if !tt.ready {
				if out.Len() > 0 {
					t.Errorf("answer: got %q, want none", out.String())
				}
				return
			}
			f, err := wire.ReadFrame(&out, wire.Alloc)
			report, derr := wire.DecodeReport(f.Payload)
			if err != nil || derr != nil || f.Type != wire.Ready || report.Error == "" {
				t.Errorf("answer: got %+v, %+v, %v, %v; want Ready with an error", f, report, err, derr)
			}
		})
	}
}

func TestGreetWaitsNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, w := io.Pipe()
		defer w.Close()
		begin := time.Now()
		e := newBox(io.Discard, oom.Score{}).greet(in, nil)
		if e == nil || e.code != exitSilent || time.Since(begin) != helloTime {
			t.Errorf("got %+v after %v, want %d after %v", e, time.Since(begin), exitSilent, helloTime)
		}
		term := make(chan os.Signal, 1)
		term <- unix.SIGTERM
		if e = newBox(io.Discard, oom.Score{}).greet(in, term); e == nil || e.code != exitStopped {
			t.Errorf("at SIGTERM: got %+v, want %d", e, exitStopped)
		}
	})
}

// A worker that does not read costs one waiting Pong, however many Pings it sends.
func TestPongWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := io.Pipe()
		b := newBox(w, oom.Score{})
		for range 100 {
			b.pong()
			synctest.Wait()
		}
		_ = w.CloseWithError(io.ErrClosedPipe)
		synctest.Wait()
		if b.ponging.Load() {
			t.Error("a Pong waits although stdout is closed")
		}
		_ = out.Close()
	})
}
