//go:build linux

package main

import (
	"sync/atomic"
	"time"
)

// watchdog ends the box when its worker is silent or its time is over. Its clock is monotonic and starts
// with the box.
type watchdog struct {
	start             time.Time
	deadMan, lifetime time.Duration

	seen          atomic.Int64  // when the last frame came
	last, excused time.Duration // of watch's goroutine
}

func newWatchdog(start time.Time, deadMan, lifetime time.Duration) *watchdog {
	w := &watchdog{start: start, deadMan: deadMan, lifetime: lifetime}
	w.touch()
	return w
}

// touch records a sign of the worker.
func (w *watchdog) touch() { w.seen.Store(int64(time.Since(w.start))) }

// watch returns when the box has to end, and why.
func (w *watchdog) watch() ending {
	tick := time.NewTicker(w.every())
	defer tick.Stop()
	w.last = time.Since(w.start)
	for range tick.C {
		if e := w.look(time.Since(w.start)); e != nil {
			return *e
		}
	}
	panic("unreachable: a ticker's channel is never closed")
}

// every is the time between two looks.
func (w *watchdog) every() time.Duration { return max(w.deadMan/8, time.Millisecond) }

// look returns how the box has to end at the time now, or nil. A look that comes late means that the box
// itself stood still (paused, starved): the worker's signs may still be in the pipe, so that silence counts
// from then on.
func (w *watchdog) look(now time.Duration) *ending {
	if now-w.last > 3*w.every() {
		w.excused = now
	}
	w.last = now
	if now > w.lifetime {
		return &ending{exitLifetime, "its lifetime is over"}
	}
	if now-max(time.Duration(w.seen.Load()), w.excused) > w.deadMan {
		return &ending{exitSilent, "no sign of the worker"}
	}
	return nil
}
